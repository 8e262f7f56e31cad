"""What hyper-parameters differ between two models, and what a table of runs shows they do."""

from __future__ import annotations

from math import isfinite
from typing import Any

from ..answers import Answer
from ..diffs import Diff
from ..evidences import Evidence, Side
from ..records import Envelope, Policy, Threshold
from ..stats.power import sample_size
from . import analysis
from .anatomy.settings import settings
from .training.effects import Effects, effects
from .training.runs import Table, table

NAME = "hyperparameter_impact"
THRESHOLDS = {
    "outcome": Threshold(None, "the column of --runs that tells how good a run was"),
    "log_scales": Threshold(
        ["lr", "learning_rate", "weight_decay", "batch", "batch_size", "warmup_steps", "epochs"],
        "factors that enter the model by their natural logarithm",
    ),
    "level": Threshold(0.95, "level of the intervals"),
    "effect": Threshold(0.8, "effect in standard deviations that a comparison should find"),
}
_UNSAVED = frozenset({"params", "names", "initial_lr"})


@analysis(needs=[], thresholds=THRESHOLDS, constants=("design",))
def hyperparameter_impact(diff: Diff, evidence: Evidence, policy: Policy) -> Envelope:
    """Which hyper-parameters differ, and how much each one matters in a table of runs."""
    answer = Answer(NAME, policy, THRESHOLDS)
    changes = _changed(answer, diff, evidence)
    if not evidence.runs:
        _without_runs(answer, changes)
        return answer.envelope()
    known = table(evidence.runs, answer["outcome"], policy)
    if isinstance(known, str):
        _lack(answer, "outcome in [hyperparameter_impact] of --policy", known)
        return answer.envelope()
    found = effects(known, answer["log_scales"], answer["level"])
    if not found.found:
        needs = f"--runs with {_runs_needed(answer)}"
        _lack(answer, needs, found.note)
        return answer.envelope()
    _impact(answer, known, found)
    return answer.envelope()


def _changed(answer: Answer, diff: Diff, evidence: Evidence) -> int:
    """List what differs in configurations and optimiser settings, and say how many that is."""
    left, right = _settings(diff, evidence, "left"), _settings(diff, evidence, "right")
    if not left or not right:
        answer.lack("changed", needs="--config-left/--config-right or --optimizer-left/-right",
                    why="hyper-parameters are in no weight")  # fmt: skip
        return 0
    names = sorted(left.keys() | right.keys())
    differing = [{"name": name, "left": left.get(name), "right": right.get(name)}
                 for name in names if left.get(name) != right.get(name)]  # fmt: skip
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
    return {name: _plain(value) for name, value in found.items()}


def _plain(value: Any) -> Any:
    """Give what JSON can say; anything else as text."""
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, dict):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, float) and not isfinite(value):
        return str(value)
    return value if value is None or isinstance(value, str | int | float) else str(value)


def _runs_needed(answer: Answer) -> str:
    n = sample_size(answer["effect"])
    return f"{n} runs of each setting (two at least) to find {answer['effect']:g} of a deviation"


def _without_runs(answer: Answer, changes: int) -> None:
    names = f"{changes} settings differ at once" if changes > 1 else "there is one run of each"
    why = f"{names}: their effect cannot be told from that of the seed or of each other"
    _lack(answer, f"--runs with {_runs_needed(answer)}", why)


def _lack(answer: Answer, needs: str, why: str) -> None:
    for field in ("impact", "interval", "significance", "design"):
        answer.lack(field, needs=needs, why=why)


def _impact(answer: Answer, known: Table, found: Effects) -> None:
    units = {"log": "per e-fold", "linear": "per unit", "levels": "between levels"}
    told = ", ".join(f"{name} {units[how]}" for name, how in found.scales.items())
    basis = f"change of {known.outcome}, {found.method}, {len(known.runs)} runs: {told}"
    answer.say("impact", {each.name: each.value for each in found.found}, basis=basis,
               uncertainty=f"see interval, level {answer['level']:g}")  # fmt: skip
    alike = "runs of one setting all came out alike"
    ends = {each.name: [each.low, each.high] for each in found.found if each.low is not None}
    answer.either("interval", ends or None, basis=f"{answer['level']:.0%}, {found.method}",
                  needs="runs that differ", why=alike)  # fmt: skip
    ps = {each.name: each.adjusted for each in found.found if each.adjusted is not None}
    answer.either("significance", ps or None, basis=f"p, Holm's over {len(ps)} effects",
                  needs="runs that differ", why=alike)  # fmt: skip
    design = {
        "method": found.method, "outcome": known.outcome, "factors": list(known.factors),
        "scales": found.scales, "seed": known.seed, "replicated": known.is_replicated,
        "runs": len(known.runs), "p_all_levels": found.p,
    }  # fmt: skip
    answer.say("design", design, basis="columns of --runs", uncertainty="exact")
    answer.assume("runs are taken for independent, and for what was varied; nothing else differs")
    if len(found.scales) > 1:
        answer.assume("effects are taken to add up: interactions are not in the model")
    if not known.is_replicated:
        answer.assume("not every setting was run twice: noise is judged by what the model leaves")
