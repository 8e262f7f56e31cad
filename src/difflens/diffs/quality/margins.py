"""Which way a metric is better, and the loss that does not matter where the user sets none."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple

from msgspec.structs import replace

from difflens.core.policy import MetricRule, Policy, Threshold
from difflens.stats.decision import Direction

from .trials import Trial

OPTIONS = "--lower-is-better or --higher-is-better"
HIGHER = frozenset(
    """
    acc accuracy auc auroc auprc ap map mrr ndcg precision recall sensitivity specificity f1
    fbeta dice iou miou jaccard bleu sacrebleu chrf chrf++ rouge rougel rougelsum meteor
    comet bertscore bleurt em correct exact_match pass passed success solved hits win_rate
    likelihood log_likelihood loglikelihood r2 correlation pearson spearman kendall kappa
    mcc psnr ssim similarity throughput qps rps tps per_second per_s reward return elo
    inception_score agreement faithfulness helpfulness truthfulness groundedness
    true_positive_rate tpr true_negative_rate tnr
""".split()
)
LOWER = frozenset(
    """
    loss error errors err perplexity ppl nll crossentropy cross_entropy entropy_loss bpb bpc
    bits_per_byte bits_per_character mae mse rmse mape smape rmsle deviance brier ece
    calibration_error wer cer ter der latency time runtime duration seconds ms ttft tpot
    memory rss energy cost flops fid kid lpips regret incorrect wrong failures failed fail
    misses toxicity hallucination hallucinations harmfulness negative_log_likelihood
    log_loss false_positive_rate fpr false_negative_rate fnr timeouts crashes model_size
    size_mb size_bytes
""".split()
)
# A spread, a setting or a change of a metric is not the metric.
NEITHER = frozenset(
    """
    std stderr sd se var variance ci stdev deviation weight weights scale threshold drop gap
    delta change diff difference ratio improvement
""".split()
)

# A bare score says that more is better, and no more than that: it is assumed.
_ASSUMED = frozenset({"score", "scores"})
_SPLITS = frozenset({"train", "training", "val", "valid", "validation", "eval", "dev", "test"})

_WORDS = re.compile(r"[a-z0-9+]+")
_HUMPS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_TRAILING_DIGITS = re.compile(r"(?<=[a-z])\d+$")


class Better(NamedTuple):
    """A direction, or None if nobody knows it, and where it comes from."""

    direction: Direction | None
    source: Literal["policy", "option", "name", "assumed", "unknown"]


def better(metric: str, policy: Policy) -> Better:
    """Ask the policy first, then the name; an option decides where the name does not tell."""
    rule = policy.metrics.get(metric)
    if rule is not None and rule.direction:
        return Better(rule.direction, "policy")
    named = direction(metric)
    if named and not is_assumed(metric):
        return Better(named, "name")
    if policy.direction:
        return Better(policy.direction, "option")
    return Better(named, "assumed" if named else "unknown")


def direction_needs(metric: str) -> str:
    """Say what would tell the direction of a metric."""
    return f"[metrics.{metric}] direction in --policy, or {OPTIONS}"


def directions(metrics: Iterable[str], policy: Policy) -> dict[str, str]:
    """Say of each metric which way is better, by what, and how to change it."""
    how = {
        "policy": "by the policy",
        "option": "by the option",
        "name": "by its name; [metrics.NAME] direction in --policy changes it",
        "assumed": "assumed; --lower-is-better changes it",
    }
    known = {metric: better(metric, policy) for metric in metrics}
    return {
        metric: f"{each.direction} ({how[each.source]})" if each.direction else "unknown"
        for metric, each in known.items()
    }


def direction(metric: str) -> Direction | None:
    """Return the better direction of a metric, or None if its name does not tell.

    Words are compared whole, prefixes such as `eval_` are no obstacle, and a phrase of up to
    three words goes before its parts: likelihood is better higher, its negative log is not.

    >>> direction("eval_loss"), direction("Accuracy@5"), direction("sparkle")
    ('lower', 'higher', None)
    """
    humped = _WORDS.findall(_HUMPS.sub(" ", metric).lower())
    named = _direction_in(humped) or _direction_in(_WORDS.findall(metric.lower()))
    return "higher" if named is None and is_assumed(metric) else named


def is_assumed(metric: str) -> bool:
    """Is the direction of this metric assumed, because it is called a score and nothing else?

    >>> is_assumed("score"), is_assumed("val_score"), is_assumed("anomaly_score")
    (True, True, False)
    """
    words = _WORDS.findall(_HUMPS.sub(" ", metric).lower())
    return len(words) > 0 and words[-1] in _ASSUMED and _SPLITS.issuperset(words[:-1])


def is_accuracy(metric: str) -> bool:
    """Is it an accuracy, not one of the training set?

    >>> is_accuracy("eval_acc"), is_accuracy("train_accuracy"), is_accuracy("accuracy_drop")
    (True, False, False)
    """
    return _is_a(metric, {"acc", "accuracy"})


def is_loss(metric: str) -> bool:
    """Is it a loss, not one of the training set?

    >>> is_loss("eval/loss"), is_loss("training_loss"), is_loss("loss_weight")
    (True, False, False)
    """
    return _is_a(metric, {"loss"})


def _is_a(metric: str, names: set[str]) -> bool:
    words = _WORDS.findall(_HUMPS.sub(" ", metric).lower())
    other = NEITHER | {"train", "training"}
    return bool(names.intersection(words)) and not other.intersection(words)


def _direction_in(words: list[str]) -> Direction | None:
    if NEITHER.intersection(words):
        return None
    votes, place = set(), 0
    while place < len(words):
        length, vote = _vote(words, place)
        votes.add(vote)
        place += length
    votes.discard(None)
    return votes.pop() if len(votes) == 1 else None


def _vote(words: list[str], place: int) -> tuple[int, Direction | None]:
    """Say how many words from here are one, and what they vote for."""
    for length in (3, 2, 1):
        phrase = "_".join(words[place : place + length])
        for spelling in (phrase, _TRAILING_DIGITS.sub("", phrase)):
            if spelling in HIGHER:
                return length, "higher"
            if spelling in LOWER:
                return length, "lower"
    return 1, None


SECTION = "regression_test"
MARGINS = {
    "share_margin": Threshold(
        0.008, "loss of a share (accuracy and the like) that does not matter, without a margin"
    ),
    "relative_margin": Threshold(
        0.05, "the same for any other metric, as a part of its value before"
    ),
}
SHARES = frozenset({"train_accuracy", "val_accuracy", "test_accuracy"})


def default_margin(
    metric: str, before: float, direction: Direction, share: float, relative: float
) -> float:
    """Choose the margin of a metric: points of a share, a part of anything else."""
    part = relative * abs(before)
    looks_like_share = direction == "higher" and 0 <= before <= 1 and share < part
    return share if metric in SHARES or looks_like_share else part


def limits_of(policy: Policy) -> dict[str, float]:
    """Return the default margins in force: one section of the policy sets them for every gate."""
    return {
        name: float(policy.threshold(SECTION, name, each.value)) for name, each in MARGINS.items()
    }


def with_margins(
    policy: Policy, found: Iterable[Trial], limits: Mapping[str, float], part: float | None = None
) -> Policy:
    """Return a margin to every metric that has a direction and none of its own.

    It is the default one, or `part` of the value before where that is given.
    """
    rules: dict[str, MetricRule] = dict(policy.metrics)
    for trial in found:
        rule = rules.get(trial.metric, MetricRule())
        way = better(trial.metric, policy).direction
        if way and rule.margin is None:
            margin = abs(trial.left) * (part or 0.0)
            if part is None:
                margin = default_margin(
                    trial.metric, trial.left, way, limits["share_margin"], limits["relative_margin"]
                )
            rules[trial.metric] = replace(rule, margin=margin)
    return replace(policy, metrics=rules)
