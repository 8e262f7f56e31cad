"""The squared norm of a tensor that both sides hold alike: the standard pass only compared it."""

from __future__ import annotations

from math import isfinite, sqrt
from typing import TYPE_CHECKING, Any, Self

from ..records import Delta, Record
from .differences import finite
from .matrices import has_numbers

if TYPE_CHECKING:
    from .values import Values


class Energy(Record, frozen=True):
    """‖W‖² over finite elements, None where it is too large. Memory: a few MB."""

    square_sum: float | None

    @classmethod
    def wants(cls, delta: Delta) -> bool:
        """Take what is bit-identical: all else has a scan."""
        left = delta.pair.left
        return delta.kind == "identical" and left is not None and has_numbers(left)

    @classmethod
    def of(cls, left: Values | None, right: Values | None) -> Self | None:  # noqa: ARG003
        """Read one side: the other holds the same."""
        import numpy as np

        if left is None:
            return None
        total = 0.0
        with np.errstate(over="ignore"):
            for piece in left.pieces():
                wide = finite(piece).astype(np.float64, copy=False)
                total += float(wide @ wide)
        return cls(total if isfinite(total) else None)

    def figures(self) -> dict[str, Any]:
        """Give the norm of both sides."""
        return {"norm": None if self.square_sum is None else sqrt(self.square_sum)}
