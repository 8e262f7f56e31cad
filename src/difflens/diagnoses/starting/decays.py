"""A decay so strong that a step takes several times the weights: they turn about, and grow."""

from __future__ import annotations

from ...runs import Fix, RunFinding
from ..signs.decay import overdone
from ..signs.sight import Sight
from ..signs.wording import finding

_SOUND = 1e-4


def overdone_decay(seen: Sight) -> list[RunFinding]:
    """Find a decay that throws weights over zero and beyond where they were, at every step.

    No harm is asked for: they grow by a factor a step, until they are no numbers.
    """
    taken = overdone(seen)
    if taken is None:
        return []
    return [
        finding(
            "exploding",
            "critical",
            f"at each step weight decay takes {taken:.3g} times the weights: they turn and grow",
            {"taken_a_step": taken},
            since=int(seen.steps[0]),
            layers=seen.layers.named(range(len(seen.layers.matrices)))[:10],
            cause="rate times weight decay is far above one",
            advice=["lower the weight decay to 0.01 (AdamW) or 0.0001 (SGD)"],
            fix=Fix("regularise", {"weight_decay": _SOUND}),
        )
    ]
