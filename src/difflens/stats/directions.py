"""Which direction of a metric is better, told by the words of its name, or not at all."""

from __future__ import annotations

import re
from typing import Literal

HIGHER = frozenset({
    "acc", "accuracy", "auc", "auroc", "auprc", "ap", "map", "mrr", "ndcg", "precision",
    "recall", "sensitivity", "specificity", "f1", "fbeta", "dice", "iou", "miou", "jaccard",
    "bleu", "sacrebleu", "chrf", "chrf++", "rouge", "rougel", "rougelsum", "meteor", "comet",
    "bertscore", "bleurt", "em", "correct", "exact_match", "pass", "passed", "success",
    "solved", "hits", "win_rate", "likelihood", "log_likelihood", "loglikelihood", "r2",
    "correlation", "pearson", "spearman", "kendall", "kappa", "mcc", "psnr", "ssim",
    "similarity", "throughput", "qps", "rps", "tps", "per_second", "per_s", "reward", "return",
    "elo", "inception_score", "agreement", "faithfulness", "helpfulness", "truthfulness",
    "groundedness", "true_positive_rate", "tpr", "true_negative_rate", "tnr",
})  # fmt: skip
LOWER = frozenset({
    "loss", "error", "errors", "err", "perplexity", "ppl", "nll", "crossentropy",
    "cross_entropy", "entropy_loss", "bpb", "bpc", "bits_per_byte", "bits_per_character", "mae",
    "mse", "rmse", "mape", "smape", "rmsle", "deviance", "brier", "ece", "calibration_error",
    "wer", "cer", "ter", "der", "latency", "time", "runtime", "duration", "seconds", "ms",
    "ttft", "tpot", "memory", "rss", "energy", "cost", "flops", "fid", "kid", "lpips", "regret",
    "incorrect", "wrong", "failures", "failed", "fail", "misses", "toxicity", "hallucination",
    "hallucinations", "harmfulness", "negative_log_likelihood", "log_loss",
    "false_positive_rate", "fpr", "false_negative_rate", "fnr", "timeouts", "crashes",
})  # fmt: skip
# A spread, a setting or a change of a metric is not the metric.
NEITHER = frozenset({
    "std", "stderr", "sd", "se", "var", "variance", "ci", "stdev", "deviation", "weight",
    "weights", "scale", "threshold", "drop", "gap", "delta", "change", "diff", "difference",
    "ratio", "improvement",
})  # fmt: skip

_WORDS = re.compile(r"[a-z0-9+]+")
_HUMPS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_TRAILING_DIGITS = re.compile(r"(?<=[a-z])\d+$")


def direction(metric: str) -> Literal["higher", "lower"] | None:
    """Give the better direction of a metric, or None where its name does not tell.

    Words are compared whole, prefixes such as `eval_` are no obstacle, and a phrase of up to
    three words goes before its parts: likelihood is better higher, its negative log is not.

    >>> direction("eval_loss"), direction("Accuracy@5"), direction("sparkle")
    ('lower', 'higher', None)
    """
    humped = _WORDS.findall(_HUMPS.sub(" ", metric).lower())
    return _told(humped) or _told(_WORDS.findall(metric.lower()))


def _told(words: list[str]) -> Literal["higher", "lower"] | None:
    if NEITHER.intersection(words):
        return None
    votes, place = set(), 0
    while place < len(words):
        length, vote = _vote(words, place)
        votes.add(vote)
        place += length
    votes.discard(None)
    return votes.pop() if len(votes) == 1 else None


def _vote(words: list[str], place: int) -> tuple[int, Literal["higher", "lower"] | None]:
    """Say how many words from here are one, and what they vote for."""
    for length in (3, 2, 1):
        phrase = "_".join(words[place : place + length])
        for spelling in (phrase, _TRAILING_DIGITS.sub("", phrase)):
            if spelling in HIGHER:
                return length, "higher"
            if spelling in LOWER:
                return length, "lower"
    return 1, None
