"""What the user decides: thresholds, rules of metrics, and what a gate answers."""

from __future__ import annotations

from typing import Any, Literal

from .record import Record


class Threshold(Record, frozen=True):
    """The default of a number or word that an analysis judges by, and its meaning."""

    value: Any
    why: str


class MetricRule(Record, frozen=True):
    """The rule of one metric: which direction is better, and how much worse is accepted."""

    direction: Literal["higher", "lower"] | None = None
    margin: float | None = None
    threshold: float | None = None  # a limit in the units of the metric


GateWord = Literal["passed", "failed", "cannot_tell"]  # the result of a gate


class Policy(Record, frozen=True):
    """The thresholds and rules that the user set; others keep their defaults."""

    thresholds: dict[str, dict[str, Any]] = {}
    metrics: dict[str, MetricRule] = {}
    required: tuple[str, ...] | None = None  # gates that must pass; None is the default list
    direction: Literal["higher", "lower"] | None = None  # of metrics whose names do not show it

    def threshold(self, analysis: str, name: str, default: Any) -> Any:
        """Return the threshold of the user, or the default; hyphens are as good as underscores."""
        for section in (analysis, analysis.replace("-", "_"), analysis.replace("_", "-")):
            if section in self.thresholds:
                return self.thresholds[section].get(name, default)
        return default
