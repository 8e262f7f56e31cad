"""A linear model whose errors may be of unequal size: least squares with HC3 standard errors.

HC3 (MacKinnon & White 1985) divides each residual by 1 - leverage, so that it holds in samples as
small as 25 (Long & Ervin 2000), where the plain errors and HC0 promise too much.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from .comparison import quantile, two_sided
from .samples import probability, sample

if TYPE_CHECKING:
    from numpy.typing import NDArray

_DEPENDENT = 1e-10  # part of a column that may be left by the others
_FIXED = 1e-9  # 1 - leverage of a point that decides its own fit


class Coefficient(NamedTuple):
    """How much the outcome changes with one unit of a column, all others held."""

    value: float
    low: float
    high: float
    standard_error: float
    p: float


class Regression(NamedTuple):
    """The coefficients by column, without the intercept; `note` says why where there are none."""

    coefficients: tuple[Coefficient, ...]
    intercept: float | None
    df: int
    n: int
    note: str = ""


def regression(
    outcome: Sequence[float], columns: Sequence[Sequence[float]], level: float = 0.95
) -> Regression:
    """Fit outcome = b0 + Σ b_i column_i.

    V = (X'X)⁻¹ X' diag(e_i²/(1 - h_i)²) X (X'X)⁻¹ with leverages h; intervals by Student's t with
    n - k degrees of freedom.

    >>> found = regression([1.0, 3.1, 4.9, 7.0, 9.1], [[0, 1, 2, 3, 4]])
    >>> round(found.coefficients[0].value, 2)
    2.01
    """
    import numpy as np

    probability(level, "level")
    y = sample(outcome, "outcome")
    x = np.column_stack([np.ones(y.size), *(sample(each, "column") for each in columns)])
    df = y.size - x.shape[1]
    if df < 1:
        note = f"{y.size} values for {x.shape[1]} coefficients leave nothing to judge them by"
        return Regression((), None, df, y.size, note)
    scales = np.linalg.norm(x, axis=0)
    if not scales.all() or np.linalg.svd(x / scales, compute_uv=False)[-1] < _DEPENDENT**0.5:
        note = "columns move together, so that their effects cannot be told apart"
        return Regression((), None, df, y.size, note)
    return _fitted(y, x / scales, scales, level)


def _fitted(y: NDArray[Any], x: NDArray[Any], scales: NDArray[Any], level: float) -> Regression:
    """Fit columns of unit length, and give the coefficients of the columns as they were."""
    import numpy as np

    df = y.size - x.shape[1]
    inverse = np.linalg.inv(x.T @ x)
    weights = inverse @ x.T @ y
    free = 1 - np.einsum("ij,jk,ik->i", x, inverse, x)
    if free.min() < _FIXED:
        note = "a value decides a coefficient alone, so that its error is not known"
        return Regression((), None, df, y.size, note)
    pulled = x * ((y - x @ weights) / free)[:, None]
    errors = np.sqrt(np.diag(inverse @ (pulled.T @ pulled) @ inverse)) / scales
    values, reach = weights / scales, quantile((1 + level) / 2, df)
    return Regression(
        tuple(
            _coefficient(float(value), float(error), reach, df)
            for value, error in zip(values[1:], errors[1:], strict=True)
        ),
        float(values[0]),
        df,
        y.size,
    )


def _coefficient(value: float, error: float, reach: float, df: int) -> Coefficient:
    p = two_sided(value / error, df) if error else (0.0 if value else 1.0)
    return Coefficient(value, value - reach * error, value + reach * error, error, p)
