"""Which attention heads matter: by the loss where models can run, else by proxies of weights."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, Any

from difflens.core.policy import Threshold
from difflens.stats.bootstrap import bootstrap

from ..answer import Answer
from ..diff import Diff
from ..evidence.records import Evidence
from ..methods.attention.layers import Attention, attention, number, parts
from ..methods.attention.reading import Layer
from . import analysis

if TYPE_CHECKING:
    from numpy.typing import NDArray


SEED = 0
_RUN = "--sample FILE with `labels`, and --model-code module:callable"
_CONFIG = "--config-left/--config-right, or `heads` in [head_importance] of --policy"


@analysis(
    thresholds={
        "heads": Threshold(None, "the number of query heads, where no configuration says it"),
        "listed": Threshold(64, "how many heads are ranked one by one, of each side"),
        "prune_margin": Threshold(
            None, "how much the mean loss may rise without a head that is called prunable"
        ),
        "resamples": Threshold(999, "bootstrap resamples of examples behind an interval"),
    },
    fields={
        "method": "how heads were scored",
        "proxy": "is the score a proxy from weights, which says nothing of a task?",
        "rank_correlation_ab": "Spearman's rank correlation of the heads' scores, left against"
        " right",
        "prunable": "heads whose removal raises the mean loss by less than `prune_margin`, by the"
        " upper limit of the interval, of those that were taken out",
        "head_rankings": "heads of each side, by the score that `method` names, largest first",
        "importance": "E|⟨A_h, dL/dA_h⟩| a head, over the l2 norm of its layer (Michel et al."
        " 2019)",
    },
)
def head_importance(diff: Diff, evidence: Evidence, answer: Answer) -> None:
    """Which attention heads matter: by gradients of the loss, or weight proxies said to be such."""
    answer.seeded(SEED)
    scores = michel(evidence.activations, answer["resamples"], SEED)
    if scores is not None:
        _measured(answer, evidence, scores)
        return
    if not diff.has_values:
        why = "only headers were read, and nothing was run"
        answer.lack_rest(needs=_RUN, why=why, status="not_enough_information")
        return
    if not parts(diff):
        why = f"none of the {len(diff.deltas)} tensors is a projection of attention on both sides"
        answer.lack_rest(needs="attention on both sides", why=why, status="not_applicable")
        return
    found = attention(diff, evidence, answer["heads"])
    shares = norm_shares(found.layers)
    if not shares["left"]:
        answer.lack_rest(needs=_CONFIG, why=_unknown(found))
        return
    method = "proxy: norms of OV and QK circuits, over the l2 norm of their layer"
    answer.say("method", method)
    answer.say("proxy", True)
    _rank(answer, shares, "ov_norm_share")
    _correlate(answer, shares, ("ov_norm_share", "qk_norm_share"))
    answer.lack_rest(needs=_RUN, why=_why_not(evidence))
    answer.assume("a head with a large norm need not matter for any task: these are proxies")


def _measured(answer: Answer, evidence: Evidence, scores: dict[str, list[dict[str, Any]]]) -> None:
    answer.say("method", "gradient: |⟨A_h, dL/dA_h⟩|, mean over tokens, then examples")
    answer.say("proxy", False)
    _rank(answer, scores, "importance")
    _correlate(answer, scores, ("importance",))
    answer.say(
        "importance", scores, uncertainty="low and high of every head: bootstrap over examples"
    )
    answer.assume("the score is of first order: only taking a head out shows what it does")
    margin = answer["prune_margin"]
    found = (
        None
        if margin is None
        else prunable(evidence.activations, margin, answer["resamples"], SEED)
    )
    why = (
        "what a rise of the loss may cost is not said" if margin is None else "no head was removed"
    )
    answer.either(
        "prunable", found, why=why, needs="`prune_margin` in [head_importance] of --policy"
    )


def _rank(answer: Answer, scores: dict[str, list[dict[str, Any]]], by: str) -> None:
    most = answer["listed"]
    ranked = {side: sorted(rows, key=lambda row: -row[by])[:most] for side, rows in scores.items()}
    answer.say("head_rankings", ranked)
    total = max(len(rows) for rows in scores.values())
    if total > most:
        answer.assume(f"the {most} first of {total} heads a side are listed")


def _correlate(answer: Answer, scores: dict[str, list[dict[str, Any]]], names: Any) -> None:
    found = {name: rank_correlation(scores["left"], scores["right"], name) for name in names}
    known = {name: value for name, value in found.items() if value is not None}
    answer.either(
        "rank_correlation_ab",
        known or None,
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


Rows = list[dict[str, Any]]


def norm_shares(layers: tuple[Layer, ...]) -> dict[str, Rows]:
    """Return each head's circuit norms over the l2 norm of its layer's: ‖OV_h‖ / sqrt(Σ ‖OV‖²)."""
    sides: dict[str, Rows] = {"left": [], "right": []}
    for layer in layers:
        if layer.qk is None or layer.ov is None:
            continue
        for side, rows in sides.items():
            ov = _relative(getattr(layer.ov, f"{side}_norm"))
            qk = _relative(getattr(layer.qk, f"{side}_norm"))
            for head in range(0 if ov is None else len(ov)):
                shares = number(ov, head), number(qk, head)
                if None not in shares:
                    rows.append(
                        {
                            "layer": layer.depth,
                            "head": head,
                            "ov_norm_share": shares[0],
                            "qk_norm_share": shares[1],
                        }
                    )
    return sides


def michel(run: Any, resamples: int, seed: int) -> dict[str, Rows] | None:
    """Return I_h = E|⟨A_h, dL/dA_h⟩| of every head over the l2 norm of its layer's, with intervals.

    Michel, Levy and Neubig (2019), Are Sixteen Heads Really Better than One? The interval is of
    the head's own mean over examples, divided by the same norm. None if a side was not scored.
    """
    if run is None or run.left.head_scores is None or run.right.head_scores is None:
        return None
    scored = {"left": run.left.head_scores, "right": run.right.head_scores}
    return {side: _michel(scores, resamples, seed) for side, scores in scored.items()}


def prunable(run: Any, margin: float, resamples: int, seed: int) -> dict[str, Rows] | None:
    """List the heads whose removal was seen to cost less than the margin, with their intervals."""
    found: dict[str, Rows] = {}
    for name, side in (("left", run.left), ("right", run.right)):
        if side.ablations is None:
            return None
        found[name] = []
        for (layer, head), rises in side.ablations.items():
            spread = _mean(rises, resamples, seed)
            if spread["high"] is not None and spread["high"] < margin:
                found[name].append(
                    {
                        "layer": layer,
                        "head": head,
                        "loss_change": spread["mean"],
                        "low": spread["low"],
                        "high": spread["high"],
                    }
                )
    return found


def rank_correlation(left: Rows, right: Rows, name: str) -> float | None:
    """Return Spearman's correlation over the heads both sides have; None if it is undefined."""
    from scipy.stats import spearmanr

    before = {(row["layer"], row["head"]): row[name] for row in left}
    both = [
        (before[key], row[name]) for row in right if (key := (row["layer"], row["head"])) in before
    ]
    if len(both) < 3 or any(len(set(side)) < 2 for side in zip(*both, strict=True)):
        return None
    value = float(spearmanr(*zip(*both, strict=True)).statistic)
    return value if isfinite(value) else None


def _relative(norms: NDArray[Any] | None) -> NDArray[Any] | None:
    import numpy as np

    if norms is None:
        return None
    finite = norms[np.isfinite(norms)]
    length = float(np.linalg.norm(finite))
    return norms / length if length > 0 else None


def _michel(scores: NDArray[Any], resamples: int, seed: int) -> Rows:
    """Turn scores by example, layer and head into rows; a layer without any score is zero."""
    import numpy as np

    means = scores.mean(axis=0)
    rows = []
    for layer, heads in enumerate(means):
        length = float(np.linalg.norm(heads)) or 1.0
        for head in range(len(heads)):
            if np.isnan(heads[head]):
                continue
            spread = _mean(scores[:, layer, head], resamples, seed)
            rows.append(
                {
                    "layer": layer,
                    "head": head,
                    "importance": spread["mean"] / length,
                    **{
                        each: None if spread[each] is None else spread[each] / length
                        for each in ("low", "high")
                    },
                }
            )
    return rows


def _mean(values: Any, resamples: int, seed: int) -> dict[str, Any]:
    import numpy as np

    plain = [float(value) for value in values]
    if len(set(plain)) < 2:  # nothing varies, so nothing can be resampled
        return {"mean": plain[0], "low": None, "high": None}
    spread = bootstrap([plain], np.mean, resamples=resamples, seed=seed, vectorised=True)
    return {"mean": spread.value, "low": spread.low, "high": spread.high}
