"""Turns what readers give into the block of a frame: fields by layers, as 32-bit floats."""

from __future__ import annotations

from typing import Any

from ..runs import LAYER_FIELDS

GRADIENT, WEIGHTS = 0, 1


class Sums:
    """Sums of one step over all layers, that parts of a sharded tensor can be added to.

    `gradient` and `weights` are (layers, columns) as the kernel gives them; a layer that was not
    read is told by the masks.
    """

    def __init__(self, layers: int) -> None:
        """Begin with nothing read."""
        import numpy as np

        self.gradient, self.weights = np.zeros((layers, 6)), np.zeros((layers, 6))
        self.has_gradient, self.has_weights = np.zeros(layers, bool), np.zeros(layers, bool)
        self.has_moves = np.zeros(layers, bool)

    def take(self, kind: int, places: Any, columns: Any) -> None:
        """Put in what a reader read."""
        into, seen = (
            (self.gradient, self.has_gradient)
            if kind == GRADIENT
            else (self.weights, self.has_weights)
        )
        into[places] = columns
        seen[places] = True


def block(sums: Sums, counts: Any, blank: Any, factor: float = 1.0) -> Any:
    """Give the fields of LAYER_FIELDS; gradients are divided by `factor`, their scale or clip."""
    import numpy as np

    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        made = whole_block(sums.gradient, sums.weights, counts, factor)
    counts_of = made[3:5]
    counts_of[np.isnan(counts_of)] = blank  # a reader that did not count this time
    made[:5, ~sums.has_gradient] = blank
    made[5, ~sums.has_weights] = blank
    made[6, ~(sums.has_weights & sums.has_moves)] = blank
    return made


def whole_block(gradient: Any, weights: Any, counts: Any, factor: Any = 1.0) -> Any:
    """Give the block of a step in which every layer was read, or the blocks of many such steps.

    Of many, `factor` may be one for each, in an array that fits the blocks. What is divided and
    rooted here may not be finite; the recorder's thread does not mind.
    """
    import numpy as np

    made = np.empty((*gradient.shape[:-2], len(LAYER_FIELDS), len(counts)), np.float32)
    columns, moved = gradient.swapaxes(-1, -2), weights.swapaxes(-1, -2)
    made[..., 0, :] = np.sqrt(columns[..., 0, :])
    finite = counts - np.nan_to_num(columns[..., 3, :])
    made[..., 1, :] = columns[..., 1, :] / np.fmax(finite, 1)
    made[..., 2:5, :] = columns[..., 2:5, :]
    made[..., 5:, :] = np.sqrt(moved[..., ::5, :])  # squares and moves, the first and the last
    if not isinstance(factor, float) or factor != 1.0:
        made[..., :3, :] /= factor
    return made
