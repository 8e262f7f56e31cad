"""A sample of a tensor's elements: the same places for every tensor of that size."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...protocols import Values

if TYPE_CHECKING:
    from numpy.typing import NDArray

SAMPLE = 1 << 16  # elements up to which all are taken
_SPANS = 16  # stretches that are read of a larger one, evenly spread


def sampled(values: Values) -> NDArray[Any]:
    """Give all elements, or evenly spread stretches of a tensor with more than `SAMPLE`."""
    import numpy as np

    count = values.info.count
    if count <= SAMPLE:
        return values.span(0, count) if count else np.zeros(0)
    length = SAMPLE // _SPANS
    starts = [round(at * (count - length) / (_SPANS - 1)) for at in range(_SPANS)]
    return np.concatenate([values.span(start, start + length) for start in starts])
