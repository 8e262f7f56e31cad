"""Welch's test: two means of independent samples, whatever their variances.

Not Student's test: with unequal sizes and variances its error rate is not what it says, and
where they are equal Welch's loses next to nothing (Delacre, Lakens & Leys 2017).
"""

from __future__ import annotations

from collections.abc import Sequence

from .comparison import Comparison, by_t
from .effect import hedges_g
from .samples import probability, sample, variance

METHOD = "welch"


def welch(left: Sequence[float], right: Sequence[float], level: float = 0.95) -> Comparison:
    """Compare two means: t = d / sqrt(s_l²/n_l + s_r²/n_r), df by Satterthwaite (Welch 1947).

    df = (s_l²/n_l + s_r²/n_r)² / Σ (s²/n)² / (n - 1). The effect is Hedges' g.

    >>> welch([1.0, 2.0, 3.0], [2.0, 3.0, 4.0]).difference
    1.0
    """
    probability(level, "level")
    before, after = sample(left, "left"), sample(right, "right")
    difference = float(after.mean() - before.mean())
    sizes = before.size, after.size
    if min(sizes) < 2:
        note = "fewer than two values on a side, so no spread is known"
        return Comparison(difference, None, None, level, None, METHOD, *sizes, note=note)
    parts = variance(before) / before.size, variance(after) / after.size
    total = sum(parts)
    if not total:
        note = "both sides are constant, so there is no spread to test against"
        return Comparison(difference, None, None, level, None, METHOD, *sizes, note=note)
    # As shares of the total: their squares neither overflow nor vanish, whatever the unit.
    df = 1 / sum((part / total) ** 2 / (n - 1) for part, n in zip(parts, sizes, strict=True))
    effect = hedges_g(left, right, level)
    found = by_t(difference, total**0.5, df, level, METHOD, sizes)
    return found._replace(effect=effect.g, effect_low=effect.low, effect_high=effect.high)
