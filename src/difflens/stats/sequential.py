"""Looking again and again: tests and intervals that stay right however often one looks.

A fixed-n test looked at a hundred times at 5 % raises an alarm in 37 % of the cases in which
nothing is there (Armitage, McPherson & Rowe 1969). These keep their promise at every look at
once, so one may stop whenever one likes. `values` are in the order they came in.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from .samples import probability, sample

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

START = 50  # values before which the asymptotic sequence says nothing
_GRID = 1000  # candidate means of the betting sequence
_STEP = 1000  # values taken up at a time
_CAUTION = 0.5  # the part of its capital that a bet may lose at most


class AlwaysValid(NamedTuple):
    """A p after every value, valid at all of them at once; `stopped` is the first below alpha."""

    p: tuple[float, ...]
    stopped: int | None


class Sequence_(NamedTuple):
    """Placeholder."""


def msprt(
    values: Sequence[float],
    *,
    deviation: float,
    mixture: float | None = None,
    alpha: float = 0.05,
) -> AlwaysValid:
    """Test a zero mean at every n by the mixture likelihood ratio (Johari et al. 2022).

    Λ_n = sqrt(σ² / (σ² + nτ²)) · exp(τ² S_n² / (2σ² (σ² + nτ²))), p_n = min(1, min 1/Λ_k). σ is
    `deviation`, known; τ is `mixture`, the size of effect looked for (σ/10 if not given).
    """
    import numpy as np

    probability(alpha, "alpha")
    array = sample(values, "values")
    tau = deviation / 10 if mixture is None else mixture
    if not (deviation > 0 and tau > 0):
        raise ValueError("deviation and mixture must be above zero")
    sums, n = np.cumsum(array), np.arange(1, array.size + 1)
    total = deviation**2 + n * tau**2
    log_ratio = np.log(deviation**2 / total) / 2 + (tau * sums / deviation) ** 2 / (2 * total)
    p = np.exp(np.minimum(0.0, np.minimum.accumulate(-log_ratio)))
    return AlwaysValid(tuple(float(each) for each in p), _first(p <= alpha))
