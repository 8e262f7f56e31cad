"""What hyper-parameters differ between two models, and what a table of runs shows they do."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from math import isfinite
from typing import Any, NamedTuple

from difflens.core.policy import Threshold
from difflens.models.anatomy.settings import settings
from difflens.stats.decision import holm
from difflens.stats.effect import sample_size
from difflens.stats.means import welch
from difflens.stats.paired import paired
from difflens.stats.regression import regression

from ..answer import Answer
from ..diff import Diff
from ..evidence.records import Evidence, Side
from ..methods.training.runs import Table, columns, scale, table
from . import analysis

_UNSAVED = frozenset({"params", "names", "initial_lr"})


@analysis(
    thresholds={
        "outcome": Threshold(None, "the column of --runs that tells how good a run was"),
        "log_scales": Threshold(
            [
                "lr",
                "learning_rate",
                "weight_decay",
                "batch",
                "batch_size",
                "warmup_steps",
                "epochs",
            ],
            "factors that enter the model by their natural logarithm",
        ),
        "level": Threshold(0.95, "level of the intervals"),
        "effect": Threshold(0.8, "effect in standard deviations that a comparison should find"),
    },
    fields={
        "impact": "",
        "significance": "",
        "interval": "",
        "changed": "",
        "design": "columns of --runs",
    },
    constants=("design",),
)
def hyperparameter_impact(diff: Diff, evidence: Evidence, answer: Answer) -> None:
    """Which hyper-parameters differ, and how much each one matters in a table of runs."""
    changes = _changed(answer, diff, evidence)
    if not evidence.runs:
        _without_runs(answer, changes)
        return
    known = table(evidence.runs, answer["outcome"], answer.policy)
    if isinstance(known, str):
        needs = "outcome in [hyperparameter_impact] of --policy"
        answer.lack_rest(needs=needs, why=known)
        return
    found = effects(known, answer["log_scales"], answer["level"])
    if not found.found:
        needs = f"--runs with {_runs_needed(answer)}"
        answer.lack_rest(needs=needs, why=found.note)
        return
    _impact(answer, known, found)


def _changed(answer: Answer, diff: Diff, evidence: Evidence) -> int:
    """List what differs in configurations and optimiser settings, and say how many that is."""
    left, right = _settings(diff, evidence, "left"), _settings(diff, evidence, "right")
    if not left or not right:
        answer.lack(
            "changed",
            needs="--config-left/--config-right or --optimizer-left/-right",
            why="hyper-parameters are in no weight",
        )
        return 0
    names = sorted(left.keys() | right.keys())
    differing = [
        {"name": name, "left": left.get(name), "right": right.get(name)}
        for name in names
        if left.get(name) != right.get(name)
    ]
    basis = f"{len(names)} settings of configurations and optimisers, compared"
    answer.say("changed", differing, basis=basis, uncertainty="exact")
    return len(differing)


def _settings(diff: Diff, evidence: Evidence, side: str) -> dict[str, Any]:
    """Gather one side's settings as plain values: its configuration, its optimiser's groups."""
    about: Side = evidence.left if side == "left" else evidence.right
    found = dict(settings(about.config, diff.described[side]).config)
    groups = about.optimizer.groups if about.optimizer else ()
    for at, group in enumerate(groups):
        place = f"optimizer.{at}" if len(groups) > 1 else "optimizer"
        found |= {f"{place}.{key}": value for key, value in group.items() if key not in _UNSAVED}
    return {name: _json_value(value) for name, value in found.items()}


def _json_value(value: Any) -> Any:
    """Return what JSON can say; anything else as text."""
    if isinstance(value, list | tuple):
        return [_json_value(each) for each in value]
    if isinstance(value, dict):
        return {str(key): _json_value(each) for key, each in value.items()}
    if isinstance(value, float) and not isfinite(value):
        return str(value)
    return value if value is None or isinstance(value, str | int | float) else str(value)


def _runs_needed(answer: Answer) -> str:
    n = sample_size(answer["effect"])
    return f"{n} runs of each setting (two at least) to find {answer['effect']:g} of a deviation"


def _without_runs(answer: Answer, changes: int) -> None:
    names = f"{changes} settings differ at once" if changes > 1 else "there is one run of each"
    why = f"{names}: their effect cannot be told from that of the seed or of each other"
    answer.lack_rest(needs=f"--runs with {_runs_needed(answer)}", why=why)


def _impact(answer: Answer, known: Table, found: Effects) -> None:
    """Answer with the effect of each hyperparameter on the outcome."""
    units = {"log": "per e-fold", "linear": "per unit", "levels": "between levels"}
    told = ", ".join(f"{name} {units[how]}" for name, how in found.scales.items())
    basis = f"change of {known.outcome}, {found.method}, {len(known.runs)} runs: {told}"
    answer.say(
        "impact",
        {each.name: each.value for each in found.found},
        basis=basis,
        uncertainty=f"see interval, level {answer['level']:g}",
    )
    alike = "runs of one setting all came out alike"
    ends = {each.name: [each.low, each.high] for each in found.found if each.low is not None}
    answer.either(
        "interval",
        ends or None,
        basis=f"{answer['level']:.0%}, {found.method}",
        needs="runs that differ",
        why=alike,
    )
    ps = {each.name: each.adjusted for each in found.found if each.adjusted is not None}
    answer.either(
        "significance",
        ps or None,
        basis=f"p, Holm's over {len(ps)} effects",
        needs="runs that differ",
        why=alike,
    )
    design = {
        "method": found.method,
        "outcome": known.outcome,
        "factors": list(known.factors),
        "scales": found.scales,
        "seed": known.seed,
        "replicated": known.is_replicated,
        "runs": len(known.runs),
        "p_all_levels": found.p,
    }
    answer.say("design", design, uncertainty="exact")
    answer.assume("runs are taken for independent, and for what was varied; nothing else differs")
    if len(found.scales) > 1:
        answer.assume("effects are taken to add up: interactions are not in the model")
    if not known.is_replicated:
        answer.assume("not every setting was run twice: noise is judged by what the model leaves")


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
            made = paired(
                [left[each] for each in shared], [right[each] for each in shared], level=level
            )
        else:
            made = welch(list(left.values()), list(right.values()), level=level)
        label = f"{name}: {first} -> {other}"
        found.append(Effect(label, made.difference, made.low, made.high, made.p))
    together = None
    if others[1:] and all(len(set(each.values())) > 1 for each in groups.values()):
        together = float(alexandergovern(*(list(each.values()) for each in groups.values())).pvalue)
    return Effects(_adjusted(found), how, scales, together)


def _grouped(table: Table) -> dict[Any, dict[Any, float]]:
    """Return the outcomes by level, then by seed; by number where no seed is told or it repeats."""
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
    found = [
        Effect(name, each.value, each.low, each.high, each.p)
        for name, each in zip(terms, made.coefficients, strict=True)
    ]
    return Effects(
        _adjusted(found), f"linear model, HC3 errors, {made.df} degrees of freedom", scales
    )


def _adjusted(found: list[Effect]) -> tuple[Effect, ...]:
    """Adjust the p-values for how many effects were looked at."""
    tested = [each for each in found if each.p is not None]
    values = holm([each.p for each in tested if each.p is not None])
    ps = {each.name: p for each, p in zip(tested, values, strict=True)}
    return tuple(each._replace(adjusted=ps.get(each.name)) for each in found)
