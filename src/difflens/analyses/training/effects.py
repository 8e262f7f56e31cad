"""What hyper-parameters did to an outcome, from runs that vary them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple

from ...stats.adjust import holm
from ...stats.paired import paired
from ...stats.regression import regression
from ...stats.welch import welch
from .runs import Table, columns, scale

_PAIRS = 3  # seeds on both sides from which pairs tell more than groups


class Effect(NamedTuple):
    """One effect: how much the outcome changes, and how sure that is."""

    name: str
    value: float
    low: float | None
    high: float | None
    p: float | None
    adjusted: float | None = None


class Effects(NamedTuple):
    """All effects, the method behind them, the test of all levels, or why there are none."""

    found: tuple[Effect, ...]
    method: str
    scales: dict[str, str]
    p: float | None = None
    note: str = ""


def effects(table: Table, log_scales: Sequence[str], level: float) -> Effects:
    """Compare levels where one factor was varied, fit a linear model where several were."""
    scales = {name: scale(table.values(name), name, log_scales) for name in table.factors}
    if not table.factors:
        return Effects((), "", scales, note="no column beside outcome and seed varies")
    if len(table.factors) == 1 and not _is_gradual(table, scales):
        return _levels(table, level)
    return _model(table, scales, level)


def _is_gradual(table: Table, scales: dict[str, str]) -> bool:
    """Does one number take three or more values, so that a slope says more than levels?"""
    (name,) = table.factors
    return scales[name] != "levels" and len(set(table.values(name))) > 2


def _levels(table: Table, level: float) -> Effects:
    """Hold every level against the first: by Welch, or paired where the same seeds were run."""
    from scipy.stats import alexandergovern

    (name,) = table.factors
    groups = _grouped(table)
    scales = {name: "levels"}
    if min(map(len, groups.values())) < 2:
        note = "a level with a single run has no spread: run every setting with two seeds at least"
        return Effects((), "", scales, note=note)
    first, *others = sorted(groups, key=str)
    found, how = [], "Welch"
    for other in others:
        left, right = groups[first], groups[other]
        shared = sorted(left.keys() & right.keys(), key=str)
        if table.seed and len(shared) >= _PAIRS:
            how = f"paired by {table.seed}"
            made = paired([left[each] for each in shared], [right[each] for each in shared],
                          level=level)  # fmt: skip
        else:
            made = welch(list(left.values()), list(right.values()), level=level)
        label = f"{name}: {first} -> {other}"
        found.append(Effect(label, made.difference, made.low, made.high, made.p))
    together = None
    if others[1:] and all(len(set(each.values())) > 1 for each in groups.values()):
        together = float(alexandergovern(*(list(each.values()) for each in groups.values())).pvalue)
    return Effects(_adjusted(found), how, scales, together)


def _grouped(table: Table) -> dict[Any, dict[Any, float]]:
    """Give the outcomes by level, then by seed; by number where no seed is told or it repeats."""
    (name,) = table.factors
    groups: dict[Any, dict[Any, float]] = defaultdict(dict)
    for at, (run, outcome) in enumerate(zip(table.runs, table.outcomes, strict=True)):
        seed = run.get(table.seed) if table.seed else None
        taken = seed is None or seed in groups[run[name]]
        groups[run[name]][("run", at) if taken else seed] = outcome
    return groups


def _model(table: Table, scales: dict[str, str], level: float) -> Effects:
    terms: dict[str, list[float]] = {}
    for name in table.factors:
        terms |= columns(table.values(name), name, scales[name])
    made = regression(table.outcomes, list(terms.values()), level)
    if made.note:
        return Effects((), "", scales, note=made.note)
    found = [Effect(name, each.value, each.low, each.high, each.p)
             for name, each in zip(terms, made.coefficients, strict=True)]  # fmt: skip
    return Effects(
        _adjusted(found), f"linear model, HC3 errors, {made.df} degrees of freedom", scales
    )


def _adjusted(found: list[Effect]) -> tuple[Effect, ...]:
    """Adjust the p-values for how many effects were looked at."""
    tested = [each for each in found if each.p is not None]
    values = holm([each.p for each in tested if each.p is not None])
    ps = {each.name: p for each, p in zip(tested, values, strict=True)}
    return tuple(each._replace(adjusted=ps.get(each.name)) for each in found)
