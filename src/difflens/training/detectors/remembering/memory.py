"""Memories that fade in time: small recurrent matrices, and gates that start shut."""

from __future__ import annotations

from ...records.runs import Fix, RunFinding
from ..signs.degrees import LASTING
from ..signs.harms import Harm
from ..signs.limits import Limits
from ..signs.recurrence import biased_gates, wrong_memory
from ..signs.sight import Sight
from ..signs.wording import above, below, finding

# Of an LSTM's forget gate (Jozefowicz et al. 2015, An empirical exploration of recurrent networks).
_FORGET = 1.0


def fading_memory(seen: Sight, limit: Limits, told: Harm) -> list[RunFinding]:
    """Find what is forgotten from step to step of a sequence, where the loss is stuck."""
    memory = wrong_memory(seen.history, lambda gain: gain < limit["recurrent_gain"])
    if seen.loss.n < limit["recurrent_points"]:
        return []
    if memory is None:
        return _gates(seen, limit, told)
    gain = memory.gain
    return finding(
        "vanishing",
        "critical" if seen.loss.n >= 2 * LASTING else "warning",
        f"{memory.layers[0]} keeps {gain:.2g} of what it remembers at every step of a sequence "
        f"({gain**10:.1g} after ten); {told.said}",
        {
            "recurrent_gain": gain,
            "recurrent_gain_threshold": limit["recurrent_gain"],
            "loss_fall": told.figure,
        },
        since=told.since,
        layers=memory.layers,
        cause="the recurrent matrix is small: what came early is forgotten, and no gradient "
        "comes back from it",
        advice=[
            "initialise the recurrent matrix orthogonally",
            "use a GRU or an LSTM",
            "shorten the sequences",
        ],
        signs=[below(gain, limit["recurrent_gain"])],
        fix=memory.fix,
    )


def _gates(seen: Sight, limit: Limits, told: Harm) -> list[RunFinding]:
    """Find gates with large first biases beside a loss that is stuck: they are shut, not open."""
    names = biased_gates(seen.history)
    if not names or told.kind != "stuck":
        return []
    return finding(
        "vanishing",
        "critical" if seen.loss.n >= 2 * LASTING else "warning",
        f"the gates of {names[0]} start far from half open, and {told.said}",
        {"gates": len(names), "loss_fall": told.figure},
        since=told.since,
        layers=names,
        cause="gates that are shut forget at every step of a sequence what they were given",
        advice=["start the biases at zero, that of the forget gate at one"],
        signs=[above(seen.loss.n, limit["recurrent_points"] / 2)],
        fix=Fix("reinitialise", {"scheme": "orthogonal", "layers": names, **_opened(seen)}),
    )


def _opened(seen: Sight) -> dict[str, float]:
    """Ask for an open forget gate where there is one; those of a GRU start half open."""
    found = any(layer.kind.startswith("LSTM") for layer in seen.history.info.layers)
    return {"forget_bias": _FORGET} if found else {}
