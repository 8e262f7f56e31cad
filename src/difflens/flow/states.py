"""In which state each layer is at a step: eight words, the most alarming that applies.

An absolute threshold alone was not taken: an empty gradient, a frozen layer and one that
underflows would look alike, and a small gradient of small weights would look ill.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..flow_results import FLOW_STATES, GradientFlowConfig
from .reading import Reading

if TYPE_CHECKING:
    from numpy.typing import NDArray

ABSENT, NONE, FROZEN, HEALTHY, ZERO, VANISHING, EXPLODING, NON_FINITE = range(len(FLOW_STATES))
_ENOUGH = 3  # layers of a role whose median says what is usual


def states_of(
    block: NDArray[np.float64],
    present: NDArray[np.bool_],
    frozen: NDArray[np.bool_],
    roles: Sequence[str],
    config: GradientFlowConfig,
) -> NDArray[np.uint8]:
    """Judge a block of (fields, layers), one column a layer."""
    read = Reading(*block)  # each field is a row here
    states = np.full(block.shape[1], HEALTHY, np.uint8)
    mean_abs, max_abs, odd = map(np.asarray, (read.mean_abs, read.max_abs, read.non_finite))
    states[max_abs == 0] = ZERO
    small = (max_abs > 0) & (_under(mean_abs, config.vanishing_threshold)
             | (read.underflow > config.underflow_share)
             | unusually_small(read.norm, read.weight_norm, peers(roles), config))  # fmt: skip
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
    """Tell which layers are of one role, a mask a role."""
    named = np.array(roles, object)
    return [named == role for role in dict.fromkeys(roles)]


def unusually_small(
    norms: Any, weights: Any, groups: Sequence[NDArray[np.bool_]], config: GradientFlowConfig
) -> Any:
    """Find layers whose |g|/|w| is far below the median of their role's, in the same step."""
    found = np.zeros(np.shape(norms), bool)
    if config.relative_threshold is None or not np.isfinite(weights).any():
        return found
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.where(np.asarray(weights) > 0, norms / weights, np.nan)
    for group in groups:
        ours = group & (ratios > 0)
        if np.count_nonzero(ours) >= _ENOUGH:
            found |= ours & (ratios < config.relative_threshold * np.median(ratios[ours]))
    return found
