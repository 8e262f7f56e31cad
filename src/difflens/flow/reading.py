"""One gradient in a few numbers: sizes over its finite values, counts of the rest.

Sums run in 64 bits on values divided by the largest, so that neither a norm of large values nor
one of tiny values is lost to its own square.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..errors import RunError

# A gradient of 16 bits hands over to 32 for arithmetic, but underflows as what it was.
_LEAST_NORMAL = {"float16": 2.0**-14, "bfloat16": 2.0**-126, "float32": 2.0**-126}


class Reading(NamedTuple):
    """What is kept of one layer at one step; NaN is no number. The order is that of a block."""

    mean_abs: float = np.nan
    max_abs: float = np.nan
    norm: float = np.nan
    elements: float = 0.0
    zeros: float = 0.0
    non_finite: float = 0.0
    underflow: float = np.nan  # share of the non-zero values below the least normal number
    weight_norm: float = np.nan


NOTHING = Reading()


def reading(name: str, gradient: Any, weight: Any = None) -> Reading:
    """Measure a gradient: anything numpy takes, a tensor of any framework, or None."""
    norm = _norm_of(name, weight)
    if gradient is None:
        return NOTHING._replace(weight_norm=norm)
    values, least_normal = _array(name, gradient)
    if not values.size:
        return NOTHING._replace(weight_norm=norm)
    finite = np.isfinite(values)
    odd = values.size - int(np.count_nonzero(finite))
    sizes = np.abs(values[finite] if odd else values)
    largest = float(sizes.max()) if sizes.size else np.nan
    there = int(np.count_nonzero(sizes))
    small = float(np.count_nonzero(sizes < least_normal) - (sizes.size - there))
    return Reading(
        _mean(sizes, largest),
        largest,
        _norm(sizes, largest),
        float(values.size),
        float(sizes.size - there),
        float(odd),
        small / there if there else np.nan,
        norm,
    )


def _mean(sizes: Any, largest: float) -> float:
    if not sizes.size or not largest:
        return largest
    return float(largest * (sizes / largest).mean())


def _norm(sizes: Any, largest: float) -> float:
    if not sizes.size or not largest:
        return largest
    scaled = sizes / largest
    with np.errstate(under="ignore"):
        norm = largest * float(np.sqrt(np.dot(scaled, scaled)))
    return min(norm, float(np.finfo(np.float64).max))


def _norm_of(name: str, weight: Any) -> float:
    if weight is None:
        return float("nan")
    values, _ = _array(name, weight)
    sizes = np.abs(values)
    if not sizes.size or not np.isfinite(sizes).all():
        return float("nan")
    return _norm(sizes, float(sizes.max()))


def _array(name: str, given: Any) -> tuple[Any, float]:
    """Give 64-bit values in one row, and the least normal number of the type they came in."""
    kind = str(getattr(given, "dtype", "float64")).rpartition(".")[2]
    try:
        values = np.asarray(_on_the_host(given))
        values = np.abs(values) if np.iscomplexobj(values) else values
        if values.dtype.kind not in "fiu" and values.dtype.name != "bfloat16":
            values = values.astype(np.float64, casting="safe")
        row = values.reshape(-1).astype(np.float64)
    except (TypeError, ValueError) as error:
        reason = str(error).partition("\n")[0]
        told = f"its values are no array of numbers: {reason}"
        raise RunError(f"layer {name!r}", told) from error
    return row, _LEAST_NORMAL.get(kind, float(np.finfo(np.float64).tiny))


def _on_the_host(given: Any) -> Any:
    """Fetch a tensor without importing its framework; bfloat16 is widened where numpy lacks it."""
    if getattr(given, "is_sparse", False):
        given = given.to_dense()
    for step in ("detach", "cpu"):
        if hasattr(given, step):
            given = getattr(given, step)()
    if str(getattr(given, "dtype", "")) == "torch.bfloat16":
        given = given.float()
    return given
