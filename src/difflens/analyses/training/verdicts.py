"""What to call a way of moving, and what to look at next."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

from .distances import Known
from .motion import Motion

Status = Literal["diverging", "oscillating", "converged", "slowing", "stable"]

NOISE = -0.5  # cosine of successive moves of noise about a point

_LOOK: dict[Status, str] = {
    "diverging": "look at the loss, at gradient norms and at the learning rate around the rise",
    "oscillating": "look at the learning rate: the weights jump back and forth about a point",
    "converged": "look at a validation metric: the weights have arrived, whether well is not known",
    "slowing": "look at the learning rate: moves shrink, and annealing alone would do that",
    "stable": "look at a loss or metric: the weights keep moving, whether for the better is open",
}
_WITH_LOSS: dict[tuple[Status, str], str] = {
    ("diverging", "improving"): "check the rise of the moves: the loss still improves",
    ("diverging", "degrading"): "stop and go back to an earlier checkpoint: moves and loss rise",
    ("diverging", "stable"): "lower the learning rate or look for a cause: moves rise, loss flat",
    ("oscillating", "improving"): "a lower learning rate may go on where this one jumps",
    ("oscillating", "degrading"): "lower the learning rate: it jumps about and the loss rises",
    ("oscillating", "stable"): "lower the learning rate, or stop: it jumps about at a flat loss",
    ("converged", "improving"): "check the log: the loss improves although the weights stand",
    ("converged", "degrading"): "check the data and the log: the loss rises at standing weights",
    ("converged", "stable"): "stop: weights and loss both stand",
    ("slowing", "improving"): "go on: the loss improves while the moves shrink",
    ("slowing", "degrading"): "keep the earlier checkpoint: the loss rises while moves shrink",
    ("slowing", "stable"): "stop, or raise the learning rate: moves shrink at a flat loss",
    ("stable", "improving"): "go on: the loss improves and the weights keep moving",
    ("stable", "degrading"): "stop and go back: the loss rises while the weights keep moving",
    ("stable", "stable"): "change something: the weights keep moving at a flat loss",
}


class Judged(NamedTuple):
    """A status, and the rule with the numbers that made it."""

    status: Status
    why: str


def judged(motion: Motion, limits: Mapping[str, float]) -> Judged:
    """Give the first status that applies: diverging, oscillating, converged, else stable.

    Shrinking moves may be the work of an annealed learning rate: where it is not known,
    `converged` is only `slowing`.
    """
    found = _diverging(motion, limits) or _oscillating(motion, limits)
    if found is not None:
        return found
    arrived = _stands(motion) or _arrives(motion, limits)
    if arrived is None:
        return Judged("stable", "none of the rules for diverging, oscillating, converged applies")
    if motion.clock.has_rates:
        return Judged("converged", arrived)
    return Judged("slowing", f"{arrived}; not called converged: the learning rate is not known")


def action(status: Status, loss: str | None) -> str:
    """Say what to do where the loss is known, what to look at where it is not."""
    return _WITH_LOSS.get((status, loss or ""), _LOOK[status])


def _diverging(motion: Motion, limits: Mapping[str, float]) -> Judged | None:
    if motion.newly_nonfinite > 0:
        return Judged("diverging", f"{motion.newly_nonfinite} values became NaN or infinite")
    first, last, p = motion.speeds[0], motion.speeds[-1], motion.rise.p
    ratio = last / first if first else float("inf")
    rises = motion.rise.s > 0 and p < limits["alpha"] and ratio >= limits["rise"]
    return Judged("diverging", f"moves rise {ratio:.3g}-fold, p={p:.3g}") if rises else None


def _oscillating(motion: Motion, limits: Mapping[str, float]) -> Judged | None:
    cosine = motion.cosine
    if cosine is None or cosine.high is None or cosine.high >= limits["oscillation"]:
        return None
    return Judged("oscillating", f"the interval of cos ends at {cosine.high:.3g}")


def _stands(motion: Motion) -> str | None:
    """Is it noise about a point: cos of -1/2 and no displacement with time?"""
    if _covers(motion.cosine, NOISE) and _covers(motion.exponent, 0.0):
        return "the intervals cover what noise about a point has: cos -1/2, exponent 0"
    return None


def _arrives(motion: Motion, limits: Mapping[str, float]) -> str | None:
    left, whole = motion.remaining, motion.last_norm
    if left is None or not left < limits["remaining"] * whole:
        return None
    return f"moves shrink; what remains is {left / whole:.2g} of the weights' norm"


def _covers(known: Known | None, value: float) -> bool:
    if known is None or known.low is None or known.high is None:
        return False
    return known.low <= value <= known.high
