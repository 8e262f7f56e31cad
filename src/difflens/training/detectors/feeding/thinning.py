"""Dropout so strong that hardly anything gets through: in training the network is mostly noise.

Whatever the labels are, training can do as well as guessing: it makes its outputs small.
"""

from __future__ import annotations

from ...records.runs import Fix, RunFinding
from ..signs.degrees import ENDURING, SOME, TWICE
from ..signs.harms import crawls
from ..signs.sight import Sight
from ..signs.wording import above, finding

# A share p that is dropped puts noise of p/(1-p) times the signal's power into every unit.


def thinned(seen: Sight) -> list[RunFinding]:
    """Find a loss that is high beside recorded dropout that drowns the signal."""
    noise, told = _noise(seen), crawls(seen.loss, ENDURING)
    if told is None or not is_drowned(seen):
        return []
    dropped = noise / (1 + noise)
    return finding(
        "plateau",
        "warning",
        f"{told.said}, and dropout takes {dropped:.0%} of what passes",
        {"dropout": dropped, "noise_by_signal": noise, "noise_threshold": TWICE, "harm": told.said},
        since=told.since,
        cause="dropout leaves too little (the share to keep given as the share to drop?)",
        advice=[f"lower dropout to {SOME:g}, and check which share the argument means"],
        signs=[above(noise, TWICE / 2)],
        fix=Fix("lower_dropout", {"value": SOME}),
    )


def _noise(seen: Sight) -> float:
    """Return the power of the noise that recorded dropout makes, by that of the signal."""
    dropped = seen.history.fact("dropout")
    if not isinstance(dropped, (int, float)) or not 0 <= dropped < 1:
        return 0.0
    return dropped / (1 - dropped)


def is_drowned(seen: Sight) -> bool:
    """Does recorded dropout put more noise into the network than it leaves of the signal?"""
    return _noise(seen) >= TWICE


def patience(seen: Sight) -> float:
    """Say how many times as long learning may take: of what passes, dropout leaves 1 - p."""
    return 1 + _noise(seen)
