"""One gradient in a few numbers, and in which of eight states that puts its layer.

Sums run in 64 bits on values divided by the largest, so that neither a norm of large values nor
one of tiny values is lost to its own square. The most alarming state that applies counts. An
absolute threshold alone was not taken: an empty gradient, a frozen layer and one that underflows
would look alike, and a small gradient of small weights would look wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from difflens.core.errors import RunError
from difflens.stats.explosion import parts_of_peers

from ..records.flow import FLOW_STATES, GradientFlowConfig

if TYPE_CHECKING:
    from numpy.typing import NDArray

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
    """Return 64-bit values in one row, and the least normal number of the type they came in."""
    kind = str(getattr(given, "dtype", "float64")).rpartition(".")[2]
    try:
        values = np.asarray(_on_the_host(given))
        values = np.abs(values) if np.iscomplexobj(values) else values
        if values.dtype.kind not in "fiu" and values.dtype.name != "bfloat16":
            values = values.astype(np.float64, casting="safe")
        row = values.reshape(-1).astype(np.float64)
    except (TypeError, ValueError) as error:
        reason = str(error).partition("\n")[0]
        text = f"its values are no array of numbers: {reason}"
        raise RunError(f"layer {name!r}", text) from error
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


ABSENT, NONE, FROZEN, HEALTHY, ZERO, VANISHING, EXPLODING, NON_FINITE = range(len(FLOW_STATES))
_ENOUGH = 3  # layers of a role whose median says what is usual


def states_of(
    block: NDArray[np.float64],
    present: NDArray[np.bool_],
    frozen: NDArray[np.bool_],
    roles: Sequence[str],
    config: GradientFlowConfig,
) -> NDArray[np.uint8]:
    """Judge a block of (fields, layers), one column per layer."""
    read = Reading(*block)  # each field is a row here
    states = np.full(block.shape[1], HEALTHY, np.uint8)
    mean_abs, max_abs, odd = map(np.asarray, (read.mean_abs, read.max_abs, read.non_finite))
    states[max_abs == 0] = ZERO
    small = (max_abs > 0) & (
        _under(mean_abs, config.vanishing_threshold)
        | (read.underflow > config.underflow_share)
        | unusually_small(read.norm, read.weight_norm, peers(roles), config)
    )
    states[small] = VANISHING
    if config.exploding_threshold is not None:
        states[max_abs > config.exploding_threshold] = EXPLODING
    states[odd > 0] = NON_FINITE
    states[np.asarray(read.elements) == 0] = NONE
    states[frozen & ((states == NONE) | (states == ZERO))] = FROZEN
    states[~present] = ABSENT
    return states


def _under(values: Any, threshold: float | None) -> Any:
    return np.zeros(values.shape, bool) if threshold is None else values < threshold


def peers(roles: Sequence[str]) -> list[NDArray[np.bool_]]:
    """Return a mask of the layers for each role."""
    named = np.array(roles, object)
    return [named == role for role in dict.fromkeys(roles)]


def unusually_small(
    norms: Any, weights: Any, groups: Sequence[NDArray[np.bool_]], config: GradientFlowConfig
) -> Any:
    """Find layers whose |g|/|w| is far below the median of their role's, in the same step."""
    small = np.zeros(np.shape(norms), bool)
    if config.relative_threshold is None or not np.isfinite(weights).any():
        return small
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.where(np.asarray(weights) > 0, norms / weights, np.nan)
    for group in groups:
        ours = group & (ratios > 0)
        if np.count_nonzero(ours) >= _ENOUGH:
            small[ours] |= parts_of_peers(ratios[ours]) < config.relative_threshold
    return small
