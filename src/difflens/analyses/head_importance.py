"""Which attention heads matter: by the loss where models can run, else by proxies of weights."""

from __future__ import annotations

from typing import Any

from ..answers import Answer
from ..diffs import Diff
from ..evidences import Evidence
from ..measure.scan import Scan
from ..records import Envelope, Policy, Threshold
from . import analysis
from .attention.layers import Attention, attention, parts
from .attention.scores import michel, norm_shares, prunable, rank_correlation

NAME = "head_importance"
SEED = 0
THRESHOLDS = {
    "heads": Threshold(None, "the number of query heads, where no configuration says it"),
    "listed": Threshold(64, "how many heads are ranked one by one, of each side"),
    "prune_margin": Threshold(
        None, "how much the mean loss may rise without a head that is called prunable"
    ),
    "resamples": Threshold(999, "bootstrap resamples of examples behind an interval"),
}
_BASIS = {
    "head_rankings": "heads of each side, by the score that `method` names, largest first",
    "method": "how heads were scored",
    "proxy": "is the score a proxy from weights, which says nothing of a task?",
    "rank_correlation_ab": "Spearman's rank correlation of the heads' scores, left against right",
    "importance": "E|⟨A_h, dL/dA_h⟩| a head, over the l2 norm of its layer (Michel et al. 2019)",
    "prunable": "heads whose removal raises the mean loss by less than `prune_margin`, by the upper"
    " limit of the interval, of those that were taken out",
}
_RUN = "--sample FILE with `labels`, and --model-code module:callable"
_CONFIG = "--config-left/--config-right, or `heads` in [head_importance] of --policy"


@analysis(needs=[Scan], thresholds=THRESHOLDS)
def head_importance(diff: Diff, evidence: Evidence, policy: Policy) -> Envelope:
    """Which attention heads matter: by gradients of the loss, or weight proxies said to be such."""
    answer = Answer(NAME, policy, THRESHOLDS)
    answer.seeded(SEED)
    scores = michel(evidence.activations, answer["resamples"], SEED)
    if scores is not None:
        return _measured(answer, evidence, scores)
    if not diff.has_values:
        return _silent(answer, _RUN, "only headers were read, and nothing was run")
    if not parts(diff):
        why = f"none of the {len(diff.deltas)} tensors is a projection of attention on both sides"
        return _silent(answer, "attention on both sides", why, status="not_applicable")
    found = attention(diff, evidence, answer["heads"])
    shares = norm_shares(found.layers)
    if not shares["left"]:
        return _silent(answer, _CONFIG, _unknown(found))
    method = "proxy: norms of OV and QK circuits, over the l2 norm of their layer"
    answer.say("method", method, basis=_BASIS["method"])
    answer.say("proxy", True, basis=_BASIS["proxy"])
    _rank(answer, shares, "ov_norm_share")
    _correlate(answer, shares, ("ov_norm_share", "qk_norm_share"))
    why = _why_not(evidence)
    for field in ("importance", "prunable"):
        answer.lack(field, needs=_RUN, why=why)
    answer.assume("a head with a large norm need not matter for any task: these are proxies")
    return answer.envelope()


def _measured(
    answer: Answer, evidence: Evidence, scores: dict[str, list[dict[str, Any]]]
) -> Envelope:
    answer.say("method", "gradient: |⟨A_h, dL/dA_h⟩|, mean over tokens, then examples",
               basis=_BASIS["method"])  # fmt: skip
    answer.say("proxy", False, basis=_BASIS["proxy"])
    _rank(answer, scores, "importance")
    _correlate(answer, scores, ("importance",))
    answer.say("importance", scores, basis=_BASIS["importance"],
               uncertainty="low and high of every head: bootstrap over examples")  # fmt: skip
    answer.assume("the score is of first order: only taking a head out shows what it does")
    margin = answer["prune_margin"]
    found = None if margin is None else prunable(
        evidence.activations, margin, answer["resamples"], SEED
    )  # fmt: skip
    why = (
        "what a rise of the loss may cost is not said" if margin is None else "no head was removed"
    )
    answer.either("prunable", found, basis=_BASIS["prunable"], why=why,
                  needs="`prune_margin` in [head_importance] of --policy")  # fmt: skip
    return answer.envelope()


def _rank(answer: Answer, scores: dict[str, list[dict[str, Any]]], by: str) -> None:
    most = answer["listed"]
    ranked = {side: sorted(rows, key=lambda row: -row[by])[:most] for side, rows in scores.items()}
    answer.say("head_rankings", ranked, basis=_BASIS["head_rankings"])
    total = max(len(rows) for rows in scores.values())
    if total > most:
        answer.assume(f"the {most} first of {total} heads a side are listed")


def _correlate(answer: Answer, scores: dict[str, list[dict[str, Any]]], names: Any) -> None:
    found = {name: rank_correlation(scores["left"], scores["right"], name) for name in names}
    known = {name: value for name, value in found.items() if value is not None}
    answer.either(
        "rank_correlation_ab",
        known or None,
        basis=_BASIS["rank_correlation_ab"],
        needs="the same heads on both sides, at least three, not all alike",
        why="the two sides have no heads to compare in rank",
    )


def _why_not(evidence: Evidence) -> str:
    run = evidence.activations
    if run is None:
        return "which head matters for a task is in no weight: it takes inputs, a loss and a run"
    reasons = {**run.left.reasons, **run.right.reasons}
    return str(reasons.get("head_scores", "the run gave no scores of heads"))


def _unknown(found: Attention) -> str:
    if None in found.heads.values():
        return "the number of heads is in no shape, and is never guessed"
    return next((layer.why for layer in found.layers if layer.why), "no layer has heads")


def _silent(
    answer: Answer, needs: str, why: str, status: Any = "not_enough_information"
) -> Envelope:
    for field in _BASIS:
        answer.lack(field, needs=needs, why=why)
    return answer.envelope(status)
