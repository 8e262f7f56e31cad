"""Does a name look as if it could be state beside the weights? Most models have no such name.

They are done with after this look, and the tables of `state` are not imported for them.
"""

from __future__ import annotations

LIGHTNING = "pytorch-lightning_version"
_WORDS = tuple(
    """
    opt ema swa avera shadow polyak teacher sched scaler amp rng random callback loops adam
    momentum rmsprop adagrad adadelta ftrl lamb beta1_power beta2_power
""".split()
)


def may_be_state(names: str) -> bool:
    """Is one of the words in a name, or in several names at once?

    >>> may_be_state("optimizer.state.0.exp_avg"), may_be_state("h.0.attn.c_attn.weight")
    (True, False)
    """
    low = names.lower()
    return any(word in low for word in _WORDS)
