"""The sign-flip test of a mean: exact where each term is as likely as its mirror image.

Under a true mean μ the residuals may change sign. A flip asks whether the mean of those kept or
the mean of those flipped lies beyond μ, so the interval is read off the means of random subsets
(Hartigan 1969, "Using subsample values as typical values"): no search, no studentising, since
the sum of squares is the same under every flip. With whole clusters flipped together this is
the wild cluster bootstrap under the null (Cameron, Gelbach & Miller 2008).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_AT_ONCE = 2_000_000  # signs held in memory at a time
_TIE = 1 - 1e-9  # sums that differ by rounding alone are ties


class Flips(NamedTuple):
    """The p of a zero mean, its Monte-Carlo error, and an interval (None where unbounded)."""

    p: float
    p_error: float
    low: float | None
    high: float | None
    exact: bool


def flips(
    sums: NDArray[np.float64],
    sizes: NDArray[np.float64],
    level: float,
    resamples: int,
    seed: int,
) -> Flips:
    """Test a mean of terms given as sums over clusters and how many values each holds."""
    import numpy as np

    exact = 2**sums.size <= resamples + 1
    total, count = float(sums.sum()), float(sizes.sum())
    as_far, means = 0, []
    for kept in _signs(sums.size, resamples, seed, exact=exact):
        part, part_count = kept @ sums, kept @ sizes
        as_far += int(np.count_nonzero(np.abs(2 * part - total) >= abs(total) * _TIE))
        with np.errstate(divide="ignore", invalid="ignore"):
            means.append((part / part_count, (total - part) / (count - part_count)))
    ours, others = (np.concatenate(each) for each in zip(*means, strict=True))
    draws = ours.size
    p = as_far / draws if exact else (1 + as_far) / (1 + draws)
    # Keeping all or none leaves an empty subset, whose mean bounds nothing.
    low = np.where(np.isfinite(ours + others), np.minimum(ours, others), -np.inf)
    high = np.where(np.isfinite(ours + others), np.maximum(ours, others), np.inf)
    rank = int((1 - level) * (draws if exact else draws + 1)) - (not exact)
    ends = (np.sort(low)[rank], np.sort(high)[draws - 1 - rank]) if rank >= 0 else (-np.inf, np.inf)
    bounded = bool(np.isfinite(ends).all())
    error = 0.0 if exact else (p * (1 - p) / draws) ** 0.5
    return Flips(
        p, error, float(ends[0]) if bounded else None, float(ends[1]) if bounded else None, exact
    )


def _signs(n: int, resamples: int, seed: int, *, exact: bool) -> Iterator[NDArray[np.float64]]:
    import numpy as np

    if exact:
        masks = np.arange(2**n)[:, None] >> np.arange(n)
        yield (masks & 1).astype(np.float64)
        return
    generator = np.random.default_rng(seed)
    step = max(1, _AT_ONCE // n)
    for start in range(0, resamples, step):
        shape = min(step, resamples - start), n
        yield generator.integers(0, 2, shape).astype(np.float64)
