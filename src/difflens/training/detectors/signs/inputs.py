"""Where what goes into the network changes its size at one step: for good, or for one batch."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .degrees import NEARLY, PART, RECENT, SHORT, TENFOLD
from .layers import median
from .proportions import is_a_sum
from .sight import Sight

_ALIKE = 1e-6  # of the inputs themselves: what is left of the spread of examples that are alike
TOO_SMALL = 0.03  # spread or mean of inputs of which initial weights make next to nothing


def input_size(seen: Sight) -> float | None:
    """Return the spread or the mean of the first inputs, whichever is larger; None of tokens."""
    given: Any = seen.history.fact("input")
    if not isinstance(given, dict) or "float" not in str(given.get("dtype", "float")):
        return None
    found = [abs(float(given.get(key) or 0.0)) for key in ("features_std_max", "std", "mean")]
    return max(found) or None


def are_alike(seen: Sight) -> bool:
    """Are all examples of the first batch the same, as far as one sees? None of tokens."""
    given: Any = seen.history.fact("input")
    if not isinstance(given, dict) or "float" not in str(given.get("dtype", "float")):
        return False
    spread = given.get("features_std_max")
    size = max(abs(float(given.get(key) or 0.0)) for key in ("std", "mean"))
    several = seen.batch is not None and seen.batch > 1
    return several and isinstance(spread, (int, float)) and spread <= _ALIKE * size


class Swell(NamedTuple):
    """The step at which inputs swelled, by how many times, and whether they stay so."""

    step: int
    times: float
    lasts: bool


def swell(seen: Sight) -> Swell | None:
    """Find the first step whose inputs are many times as large as those before.

    The spread of what the first layer gives, by the size of its weights, is that of its inputs but
    for a factor. Weights change it as well, so the steps before must have left them about as they
    were, and it must come at once.
    """
    spread, weights, updates = seen.layers.field("act_std"), seen.layers.weights, seen.layers.update
    if spread is None or weights is None or updates is None:
        return None
    known = np.flatnonzero(np.isfinite(spread).any(axis=0))
    # Behind a layer whose activations are not known (an LSTM), states grow as they are learned.
    if not len(known) or known[0] != 0 or len(spread) <= SHORT:
        return None
    with np.errstate(divide="ignore", invalid="ignore"):
        sizes = np.where(weights[:, 0] > 0, spread[:, 0] / weights[:, 0], np.nan)
    usual = _usual(sizes)
    with np.errstate(divide="ignore", invalid="ignore"):
        times = np.where(usual > 0, sizes / usual, np.nan)
    # Batches of healthy runs stay within 2.4, small ones included.
    for at in np.flatnonzero(times > TENFOLD):
        calm = np.nan_to_num(updates[max(at - RECENT, 0) : at], nan=np.inf).max() < PART
        after = sizes[at + 1 : at + 5]
        after = after[np.isfinite(after)]
        if calm and len(after) and sizes[at] > TENFOLD / 2 * sizes[at - 1]:
            lasts = bool(np.median(after) > TENFOLD / 2 * usual[at])
            return Swell(int(seen.steps[at]), float(times[at]), lasts)
    return None


def _usual(sizes: NDArray[Any]) -> NDArray[Any]:
    """Return the median of the points before each point; NaN if they are too few."""
    padded = np.concatenate([np.full(RECENT, np.nan), sizes[:-1]])
    windows = np.lib.stride_tricks.sliding_window_view(padded, RECENT)
    known = np.isfinite(windows).sum(axis=1) >= SHORT
    return np.where(known, median(windows, axis=1), np.nan)


def target_size(seen: Sight) -> float | None:
    """Return the size of the targets if a squared error shows it; None if the outputs hide it.

    The first loss of a regression is the mean square of target less output. Where its root is far
    beyond the largest output, it is about that of the targets.
    """
    output: Any = seen.history.fact("output")
    if not isinstance(output, dict) or not seen.loss.n or _may_be_entropy(seen):
        return None
    ends = [
        abs(each) for key in ("min", "max") if isinstance(each := output.get(key), (int, float))
    ]
    size = max(float(seen.loss.values[0]), 0.0) ** 0.5
    return size if ends and size > 3 * max(ends) else None


def _may_be_entropy(seen: Sight) -> bool:
    """Can several outputs have made the first loss as a cross entropy, of one example or summed?"""
    loss = seen.loss
    if loss.chance is None:
        return False
    first = float(loss.values[0])
    one = first / (seen.batch or 1)
    summed = one >= NEARLY * loss.chance and loss.could_cost(one)  # first outputs know nothing
    if loss.is_of_outputs or summed:
        return True
    return first > 0 and is_a_sum(loss.chance / first, seen.history)
