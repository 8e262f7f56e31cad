"""One factor of a risk: its level, the rule that gave it, and what would lower it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from ...diffs import Diff
from ...evidences import Evidence
from ...records import Envelope, Policy

Level = Literal["low", "medium", "unknown", "high", "critical"]
LEVELS: tuple[Level, ...] = ("low", "medium", "unknown", "high", "critical")


class Situation(NamedTuple):
    """What factors look at; `ask` gives the answer of another analysis."""

    diff: Diff
    evidence: Evidence
    policy: Policy
    limits: Mapping[str, Any]
    ask: Callable[[str], Envelope]


class Factor(NamedTuple):
    """A factor: level, why, the rule and the numbers; `needs` fills one that is unknown."""

    name: str
    level: Level
    why: str
    rule: str
    numbers: dict[str, float | None] = {}  # noqa: RUF012  nobody writes into it
    needs: str = ""
    mitigation: str = ""

    def told(self) -> dict[str, Any]:
        """Give it as plain data."""
        return {"name": self.name, "level": self.level, "why": self.why, "rule": self.rule,
                "evidence": self.numbers, "needs": self.needs}  # fmt: skip


def stepped(value: float, steps: Sequence[float]) -> Level:
    """Name the level of a number: low, then medium, high and critical from each step on.

    >>> stepped(0.05, [0.01, 0.1])
    'medium'
    """
    names: tuple[Level, ...] = ("low", "medium", "high", "critical")
    return names[min(sum(value >= step for step in steps), len(names) - 1)]


def highest(levels: Sequence[Level]) -> Level:
    """Give the worst: unknown is worse than medium, for nobody looked."""
    return max(levels, key=LEVELS.index, default="low")
