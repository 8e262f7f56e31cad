"""Attention that is a choice of one: its softmax has no slope, and queries and keys learn nothing.

Scores are divided by the root of their width so that their spread is about one. Where they spread
over tens, the softmax answers one and zeros, and its slope is zero but for ties: from batch to
batch the gradients of queries and keys are what rounding leaves, or a leap.
"""

from __future__ import annotations

import numpy as np

from ...records.runs import Fix, RunFinding
from ..signs.degrees import LASTING, PART, RECENT, THRICE, TWICE
from ..signs.gates import asking
from ..signs.harms import Harm
from ..signs.layers import initial_scales, median
from ..signs.sight import Sight
from ..signs.wording import above, finding

_NOTHING = 1e-5  # of the gradient of other layers; healthy queries and keys get a tenth
_LEAST = 1e-30  # of it: all that is smaller counts alike


def sharp_attention(seen: Sight, told: Harm) -> list[RunFinding]:
    """Find queries and keys that get next to nothing at many of the first steps."""
    columns = np.flatnonzero(seen.layers.trained)
    asked = asking(seen.layers, columns)
    ratios = seen.layers.gradient
    if ratios is None or not asked or len(asked) == len(columns) or len(ratios) < RECENT:
        return []
    first = ratios[:RECENT][:, columns]
    others = [place for place in range(len(columns)) if place not in asked]
    usual = median(first[:, others], axis=1)[:, None]
    if not ((usual > 0) & np.isfinite(usual)).all():
        return []
    parts = np.maximum(np.nan_to_num(first[:, asked] / usual), _LEAST)
    # Attention that is even has little slope as well, and about the same at every batch.
    shares = np.where(np.log10(parts).std(axis=0) > TWICE, (parts < _NOTHING).mean(axis=0), 0.0)
    if shares.max() < PART:
        return []
    order = [asked[int(i)] for i in np.argsort(-shares, kind="stable") if shares[i] > 0]
    scales = initial_scales(seen.layers)
    large = len(scales) > 0 and float(np.nan_to_num(scales[columns[asked]]).max()) > THRICE
    return finding(
        "vanishing",
        "critical" if seen.loss.n >= LASTING and told.kind == "stuck" else "warning",
        f"queries and keys of {len(order)} matrices got less than {_NOTHING:g} of the gradient "
        f"of other layers, at up to {float(shares.max()):.0%} of the first {RECENT} points; "
        f"{told.said}",
        {"share": float(shares.max()), "share_threshold": PART, "loss_fall": told.figure},
        since=int(seen.steps[0]),
        layers=seen.layers.named(columns[order]),
        cause="scores are so large that attention picks one place and has no slope: "
        + (
            "queries and keys start too large"
            if large
            else "they are multiplied, or not divided by the root of their width"
        ),
        advice=[
            "divide the scores by the root of the width of a head",
            "normalise queries and keys",
        ],
        signs=[above(float(shares.max()), PART / 2)],
        fix=Fix("reinitialise", {"scheme": "xavier", "layers": []})
        if large
        else Fix("scale_attention"),
    )
