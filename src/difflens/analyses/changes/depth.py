"""Does change grow or shrink with depth?"""

from __future__ import annotations

from collections import Counter
from math import isfinite
from typing import Any


def depth_correlation(profile: list[dict[str, Any]]) -> dict[str, Any] | None:
    """Correlate relative change with depth by Kendall's tau-b (Kendall 1945).

    Over the blocks of the longest stack; p is exact where no two blocks moved alike.
    """
    from scipy.stats import kendalltau

    stacks = Counter(_stack(each) for each in profile)
    longest = max(stacks, key=lambda stack: (stacks[stack], stack), default="")
    blocks = [each["relative_l2"] for each in profile if _stack(each) == longest]
    known = [(place, value) for place, value in enumerate(blocks) if value is not None]
    if len(known) < 3 or len({value for _, value in known}) < 2:
        return None
    places, values = zip(*known, strict=True)
    ties = len(set(values)) < len(values)
    found = kendalltau(places, values, method="asymptotic" if ties else "exact")
    if not (isfinite(found.statistic) and isfinite(found.pvalue)):
        return None
    method = "asymptotic" if ties else "exact"
    return {"tau": float(found.statistic), "p": float(found.pvalue), "n": len(known),
            "p_method": method}  # fmt: skip


def _stack(entry: dict[str, Any]) -> str:
    return str(entry["block"]).rpartition(".")[0]
