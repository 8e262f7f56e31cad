"""What a detector says: what it found, or why it could not look."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from difflens.core.findings import Severity

SEVERITIES: tuple[Severity, ...] = ("info", "low", "medium", "high", "critical")


class Anomaly(NamedTuple):
    """One thing that should not be: where, what, the numbers that show it, and how bad."""

    kind: str
    where: str
    text: str
    numbers: Mapping[str, float | None]
    severity: Severity


class Detection(NamedTuple):
    """What one detector did: how much it looked at and what it found, or why it did not run."""

    name: str
    tested: int = 0
    found: tuple[Anomaly, ...] = ()
    needs: str = ""
    why: str = ""

    @property
    def has_run(self) -> bool:
        """Did it look at anything?"""
        return not self.why

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        if not self.has_run:
            return {"name": self.name, "run": False, "needs": self.needs, "why": self.why}
        return {"name": self.name, "run": True, "tested": self.tested, "found": len(self.found)}


def band(
    value: float, steps: Sequence[float], names: Sequence[Severity] = SEVERITIES[1:]
) -> Severity | None:
    """Name the last step that the value has reached; None below the first.

    >>> band(7.0, [2.0, 5.0, 10.0, 100.0])
    'medium'
    """
    reached = [name for step, name in zip(steps, names, strict=False) if value >= step]
    return reached[-1] if reached else None


def worst(found: Iterable[Anomaly]) -> list[Anomaly]:
    """Put the most severe first; equal ones stay in their order."""
    return sorted(found, key=lambda each: -SEVERITIES.index(each.severity))
