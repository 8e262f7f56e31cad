"""Scores of heads: Michel's where gradients were taken, norms of circuits where not."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, Any

from ...stats.bootstrap import bootstrap
from .reading import Layer
from .tables import number

if TYPE_CHECKING:
    from numpy.typing import NDArray

Rows = list[dict[str, Any]]


def norm_shares(layers: tuple[Layer, ...]) -> dict[str, Rows]:
    """Give each head's circuit norms over the l2 norm of its layer's: ‖OV_h‖ / sqrt(Σ ‖OV‖²)."""
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
                    rows.append({"layer": layer.depth, "head": head, "ov_norm_share": shares[0],
                                 "qk_norm_share": shares[1]})  # fmt: skip
    return sides


def michel(run: Any, resamples: int, seed: int) -> dict[str, Rows] | None:
    """Give I_h = E|⟨A_h, dL/dA_h⟩| of every head over the l2 norm of its layer's, with intervals.

    Michel, Levy and Neubig (2019), Are Sixteen Heads Really Better than One? The interval is of
    the head's own mean over examples, divided by the same norm. None where a side was not scored.
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
                found[name].append({"layer": layer, "head": head, "loss_change": spread["mean"],
                                    "low": spread["low"], "high": spread["high"]})  # fmt: skip
    return found


def rank_correlation(left: Rows, right: Rows, name: str) -> float | None:
    """Give Spearman's correlation over the heads both sides have; None where it is undefined."""
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
                    **{each: None if spread[each] is None else spread[each] / length
                       for each in ("low", "high")},
                }
            )  # fmt: skip
    return rows


def _mean(values: Any, resamples: int, seed: int) -> dict[str, Any]:
    import numpy as np

    plain = [float(value) for value in values]
    if len(set(plain)) < 2:  # nothing varies, so nothing can be resampled
        return {"mean": plain[0], "low": None, "high": None}
    spread = bootstrap([plain], np.mean, resamples=resamples, seed=seed, vectorised=True)
    return {"mean": spread.value, "low": spread.low, "high": spread.high}
