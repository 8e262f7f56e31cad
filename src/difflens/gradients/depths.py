"""How far an analysis goes: four depths, each holding what those before it hold.

Basic: statistics, health, suggestions, priorities. Standard adds trends, flow and comparison.
Comprehensive adds groups, levels and interactions. Expert adds spectra, tests and forecasts.
"""

from __future__ import annotations

from typing import get_args

from ..errors import InvalidConfig
from ..gradient_results import AnalysisDepth
from ..records import Missing

DEPTHS: tuple[AnalysisDepth, ...] = get_args(AnalysisDepth)


def depth_of(word: str) -> AnalysisDepth:
    """Give the depth that a word names, however it is spelt.

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
