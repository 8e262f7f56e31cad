"""A table of runs: which column is the outcome, which were varied, and on what scale."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import log
from typing import Any, NamedTuple

from difflens.core.policy import Policy

from .logs import better_way

SEEDS = ("seed", "random_seed", "data_seed")
_LABELS = frozenset({"run", "run_id", "id", "name", "run_name", "timestamp", "date", "time"})

Run = dict[str, Any]


class Table(NamedTuple):
    """Runs that have an outcome, the columns that vary among them, and their seeds."""

    runs: tuple[Run, ...]
    outcome: str
    factors: tuple[str, ...]
    seed: str | None

    def values(self, factor: str) -> list[Any]:
        """Return a factor's value in every run."""
        return [run[factor] for run in self.runs]

    @property
    def outcomes(self) -> list[float]:
        """The outcome of every run."""
        return [float(run[self.outcome]) for run in self.runs]

    @property
    def settings(self) -> Counter[tuple[Any, ...]]:
        """Count the runs of every combination of factors."""
        return Counter(tuple(run[factor] for factor in self.factors) for run in self.runs)

    @property
    def is_replicated(self) -> bool:
        """Was every setting run at least twice?"""
        return bool(self.runs) and min(self.settings.values()) >= 2


def table(runs: Sequence[Run], chosen: str | None, policy: Policy) -> Table | str:
    """Read the columns; a sentence where the outcome cannot be told."""
    columns = list(dict.fromkeys(name for run in runs for name in run))
    numeric = [
        name
        for name in columns
        if all(_is_number(run.get(name)) or run.get(name) is None for run in runs)
    ]
    known = [name for name in numeric if name in policy.metrics or better_way(name, policy)]
    outcome = chosen or (known[0] if len(known) == 1 else None)
    if outcome is None:
        return f"which column is the outcome: {', '.join(known or numeric) or 'none is a number'}"
    kept = tuple(run for run in runs if _is_number(run.get(outcome)))
    if not kept:
        return f"no run has a number under {outcome}"
    others = [
        name
        for name in columns
        if name != outcome and name not in known and name.lower() not in _LABELS
    ]
    seed = next((name for name in others if name.lower() in SEEDS), None)
    varied = tuple(
        name for name in others if name != seed and len({run.get(name) for run in kept}) > 1
    )
    whole = tuple(run for run in kept if all(run.get(name) is not None for name in varied))
    return Table(whole, outcome, varied, seed)


def scale(values: Sequence[Any], name: str, log_scales: Sequence[str]) -> str:
    """Say how a factor enters: as a number, as its logarithm where so declared, or by its levels.

    >>> scale([1e-4, 1e-3], "lr", ["lr"]), scale(["adam", "sgd"], "optimizer", [])
    ('log', 'levels')
    """
    if not all(_is_number(value) for value in values):
        return "levels"
    return "log" if name in log_scales and all(value > 0 for value in values) else "linear"


def columns(values: Sequence[Any], name: str, how: str) -> dict[str, list[float]]:
    """Return the columns of a linear model for one factor; levels are held against the first."""
    if how == "log":
        return {name: [log(value) for value in values]}
    if how == "linear":
        return {name: [float(value) for value in values]}
    _, *others = sorted(set(values), key=str)
    return {f"{name}={level}": [float(value == level) for value in values] for level in others}


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
