"""Gates about quality: no metric is worse by more than its margin, on the whole or in a slice."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from ...evidences import Example
from ..quality.check import Check
from ..quality.checks import checks, judged, stepped_down
from ..quality.joins import join, metrics_of
from ..quality.outcomes import Outcome, outcome, verdict
from ..quality.settings import Settings
from ..quality.trials import paired_trial
from .gate import Asked, Gate

_EVALS = "--eval-left/--eval-right"


def quality(asked: Asked) -> Gate:
    """Every metric with a margin is non-inferior, and none is surely worse."""
    settings = Settings.of(asked.answer)
    known = checks(asked.evidence, asked.policy, settings, diff=asked.diff)
    found = [outcome(each, settings.alpha, {}) for each in known if each.source != "latency"]
    failed = [each for each in found if each.passed is False]
    if failed:
        return Gate("quality", "fail", _told(failed))
    promised = [each for each in found
                if each.check.statistical and each.check.rule.margin is not None]  # fmt: skip
    if not promised:
        some = found[0].check.metric if found else "NAME"
        why = f"{len(found)} metrics, none tested against a margin"
        return Gate("quality", "unknown", why, f"{_EVALS} and [metrics.{some}] margin in --policy")
    if verdict(promised):
        return Gate("quality", "pass", _told(promised))
    is_open = [each for each in promised if each.passed is None]
    return Gate("quality", "unknown", _told(is_open), is_open[0].needs or _EVALS)


def slices(asked: Asked) -> Gate:
    """In every slice (a cluster of enough examples) the metrics are non-inferior, too (Holm)."""
    settings = Settings.of(asked.answer)
    found = list(_sliced(asked))
    if not found:
        least = asked.answer["slice_examples"]
        needs = f"{_EVALS} with a cluster column of two slices of {least} examples, and a margin"
        return Gate("slices", "unknown", "there are no slices with a margin", needs)
    told = [outcome(each, settings.alpha, {}) for each in _family(found, settings.alpha)]
    failed = [each for each in told if each.passed is False]
    if failed:
        return Gate("slices", "fail", _told(failed))
    is_open = [each for each in told if each.passed is None]
    if is_open:
        return Gate("slices", "unknown", _told(is_open), f"more examples in {_EVALS}")
    return Gate("slices", "pass", f"{len(told)} slices are non-inferior")


def _family(found: list[Check], alpha: float) -> list[Check]:
    return stepped_down(found, alpha, lambda check: check.rule.margin or 0.0)


def _sliced(asked: Asked) -> Iterator[Check]:
    """Judge each metric with a margin in each slice that has enough examples on both sides."""
    evidence, least = asked.evidence, asked.answer["slice_examples"]
    left, right = evidence.left.evals, evidence.right.evals
    for metric in metrics_of(left, right):
        rule = asked.policy.metrics.get(metric)
        if rule is None or rule.margin is None:
            continue
        parts = _by_cluster(left, metric), _by_cluster(right, metric)
        joins = {name: join(parts[0][name], parts[1][name], metric)
                 for name in sorted(parts[0].keys() & parts[1].keys())}  # fmt: skip
        large = {name: each._replace(clusters=None) for name, each in joins.items()
                 if len(each.ids) >= least}  # fmt: skip
        if len(large) > 1:
            for name, each in large.items():
                trial = paired_trial(metric, each)
                check = judged(trial, asked.policy, asked.answer["alpha"])
                yield check._replace(trial=trial._replace(metric=f"{metric} in {name}"))


def _by_cluster(examples: tuple[Example, ...], metric: str) -> dict[str, list[Example]]:
    groups: dict[str, list[Example]] = defaultdict(list)
    for each in examples:
        if each.metric == metric and each.cluster is not None:
            groups[each.cluster].append(each)
    return groups


def _told(found: list[Outcome]) -> str:
    shown = "; ".join(f"{each.check.metric}: {each.why}" for each in found[:3])
    return shown + (f"; and {len(found) - 3} more" if len(found) > 3 else "")
