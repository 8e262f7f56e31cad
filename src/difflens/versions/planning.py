"""What an A/B test could have seen: the least effect that matters, and the sample it needs."""

from __future__ import annotations

from math import ceil
from typing import Literal, NamedTuple

from ..ab_results import ABTestConfig
from ..stats.power import minimal_difference, sample_size
from ..stats.samples import sample, variance
from .arms import Sides
from .tested import Tested

Practical = Literal["yes", "no", "unclear"]


class Plan(NamedTuple):
    """What would be found with the power asked for; None where it cannot be told, with why."""

    detectable: float | None
    needed: int | None
    why: str = ""


def plan(found: Tested, sides: Sides, config: ABTestConfig) -> Plan:
    """Give the least difference this sample finds, and the sample that finds the least effect."""
    error = found.standard_error
    seen = None
    if error:
        seen = minimal_difference(error, found.made.df, alpha=config.alpha, power=config.power)
    effect, why = _standardised(sides, config)
    if effect is None:
        return Plan(seen, None, why)
    needed = sample_size(effect, alpha=config.alpha, power=config.power, paired=sides.is_paired)
    design = _design(found, sides)
    return Plan(seen, ceil(needed * design), "")


def _standardised(sides: Sides, config: ABTestConfig) -> tuple[float | None, str]:
    """Give the least effect that matters in units of the deviation that the test stands on."""
    least = config.min_effect_size
    if not least:
        return None, "no least effect that matters was named"
    if config.effect_unit == "standardised":
        return least, ""
    spread = _deviation(sides)
    if not spread:
        return None, "the values do not vary"
    if config.effect_unit == "absolute":
        return least / spread, ""
    mean = sum(sides.left) / len(sides.left)
    return (least * abs(mean) / spread, "") if mean else (None, "the mean of A is zero")


def _deviation(sides: Sides) -> float:
    if sides.is_paired:
        moves = [one - other for one, other in zip(sides.left, sides.right, strict=True)]
        return float(variance(sample(moves, "differences")) ** 0.5) if len(moves) > 1 else 0.0
    if min(len(sides.left), len(sides.right)) < 2:
        return 0.0
    parts = [variance(sample(each, "arm")) for each in (sides.left, sides.right)]
    return float((sum(parts) / 2) ** 0.5)


def _design(found: Tested, sides: Sides) -> float:
    """Say how much larger clusters make the sample that is needed: (error / plain error)²."""
    if found.made.clusters is None or not found.made.standard_error:
        return 1.0
    spread, n = _deviation(sides), len(sides.left)
    plain = spread**2 / n if sides.is_paired else spread**2 * (1 / n + 1 / len(sides.right))
    return max(1.0, found.made.standard_error**2 / plain) if plain else 1.0


def practical(found: Tested, sides: Sides, config: ABTestConfig) -> Practical:
    """Hold the whole interval against the least effect that matters, not the point."""
    ends = _in_unit(found, sides, config)
    least = config.min_effect_size
    if ends is None:
        return "unclear"
    low, high = ends
    if low > least or high < -least:
        return "yes"
    return "no" if -least < low and high < least else "unclear"


def _in_unit(found: Tested, sides: Sides, config: ABTestConfig) -> tuple[float, float] | None:
    """Give the interval in the unit of the least effect; in the metric's own where that is zero."""
    made = found.made
    if made.low is None or made.high is None:
        return None
    if config.effect_unit == "absolute" or not config.min_effect_size:
        return made.low, made.high
    if config.effect_unit == "relative":
        mean = abs(sum(sides.left) / len(sides.left))
        return (made.low / mean, made.high / mean) if mean else None
    if made.effect_low is not None and made.effect_high is not None:
        return made.effect_low, made.effect_high
    spread = _deviation(sides)
    return (made.low / spread, made.high / spread) if spread else None
