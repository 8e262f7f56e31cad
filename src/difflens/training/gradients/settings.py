"""What an analysis is asked with: the limits where a measure becomes a fault, and its depth.

Basic: statistics, health, suggestions, priorities. Standard adds trends, flow and comparison.
Comprehensive adds groups, levels and interactions. Expert adds spectra, tests and forecasts.
"""

from __future__ import annotations

from typing import get_args

from difflens.core.errors import InvalidConfig, SnapshotError
from difflens.core.findings import Missing
from difflens.core.kept import Settings, count, number

from ..records.gradients import AnalysisDepth


class GradientThresholds(Settings, frozen=True, kw_only=True):
    """The limits of the rules. They are policy, not measurements: set your own.

    A ratio of ten and a robust z of six mark an explosion; 10⁻³ of the median layer in 80 % of
    the records marks a vanishing gradient.
    """

    least_records: int = 10  # finite norms below which a layer is Unknown
    least_dead: int = 3  # records of exactly zero, up to the last, that make a layer dead
    jump_z: float = 6.0  # of one change of ln g, in robust standard deviations
    jump_ratio: float = 10.0  # of a norm to the median of the records before it
    trailing: int = 100  # records that this median is taken over
    absolute_norm: float = 1e6  # median norm in the window that is an explosion in itself
    growth_warning: float = 10.0  # factor that the trend makes over the window
    growth_critical: float = 1000.0
    vanishing: float = 1e-3  # of the median of the layers of the same role
    vanishing_critical: float = 1e-6
    vanishing_share: float = 0.8  # of the window's records
    zero_share: float = 0.99  # of the gradient's elements, median over the window
    underflow: float = 6e-8  # of max |g| in a layer of 16-bit floats: its least number
    weight_growth: float = 2.0  # factor of the weight norm over the window
    level: float = 0.05  # of false alarms among the layers that a test finds

    def _checked(self) -> None:
        for field in ("least_records", "least_dead", "trailing"):
            count(field, getattr(self, field), 1)
        for field in ("jump_z", "absolute_norm", "underflow"):
            number(field, getattr(self, field), 1e-300)
        for field in ("jump_ratio", "growth_warning", "growth_critical", "weight_growth"):
            number(field, getattr(self, field), 1)
        for field in ("vanishing", "vanishing_critical", "vanishing_share", "zero_share", "level"):
            number(field, getattr(self, field), 1e-300, 1)
        for lower, higher in (
            ("growth_warning", "growth_critical"),
            ("vanishing_critical", "vanishing"),
        ):
            if getattr(self, lower) > getattr(self, higher):
                raise SnapshotError(
                    f"{lower} is {getattr(self, lower):g}, above {higher}, "
                    f"which is {getattr(self, higher):g}"
                )


DEPTHS: tuple[AnalysisDepth, ...] = get_args(AnalysisDepth)


def depth_of(word: str) -> AnalysisDepth:
    """Return the depth that a word names, however it is spelt.

    >>> depth_of("standard")
    'Standard'
    """
    for depth in DEPTHS:
        if isinstance(word, str) and word.lower() == depth.lower():
            return depth
    known = ", ".join(each.lower() for each in DEPTHS)
    raise InvalidConfig(f"depth is {word!r}; it is one of {known}")


def reaches(depth: AnalysisDepth, least: AnalysisDepth) -> bool:
    """Does a depth hold what another one holds?

    >>> reaches("Expert", "Standard"), reaches("Basic", "Standard")
    (True, False)
    """
    return DEPTHS.index(depth) >= DEPTHS.index(least)


def not_before(least: AnalysisDepth, *fields: str) -> tuple[Missing, ...]:
    """Say of fields that they are known from a depth on."""
    needs = f'depth="{least.lower()}"'
    return tuple(Missing(each, needs, "this depth leaves it out") for each in fields)
