"""Rows that a table did not have before: zeros, the mean of the others, copies, or draws."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from difflens.core.protocols import Values
from difflens.measure.embeddings import picked_rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

_MOST_NEW = 2048  # new rows that are looked at, evenly spread
_SURE = 5.0  # standard errors within which a figure is that of independent draws


class NewRows(NamedTuple):
    """What rows hold that were not there before."""

    number: int
    kind: str  # zero, mean, copied, drawn, other
    std: float | None = None
    copied: int | None = None  # the row they are copies of, where it is one

    @property
    def text(self) -> str:
        """Say it."""
        number = f"{self.number:,} new row" + ("" if self.number == 1 else "s")
        return {
            "zero": f"{number} of zeros",
            "mean": f"{number} near the mean of the shared rows",
            "copied": f"{number} copied from "
            + (f"row {self.copied}" if self.copied is not None else "other rows"),
            "drawn": f"{number} as drawn at random (std {self.std or 0:.3g})",
        }.get(self.kind, number)


def describe_new(right: Values, fresh: NDArray[Any], shared: NDArray[Any]) -> NewRows:
    """Say what the new rows of the right hold: zeros, the mean of the others, copies, draws."""
    import numpy as np

    some = fresh[np.linspace(0, len(fresh) - 1, min(len(fresh), _MOST_NEW)).astype(np.int64)]
    new = picked_rows(right, some).astype(np.float64)
    if not new.any():
        return NewRows(len(fresh), "zero")
    if not np.isfinite(new).all():
        return NewRows(len(fresh), "other")
    mean, spread = _mean_and_spread(right, shared)
    if spread > 0 and np.square(new - mean).sum(axis=1).mean() <= (0.05 * spread) ** 2:
        return NewRows(len(fresh), "mean")
    sources = _sources(right, new, shared)
    if sources:
        return NewRows(len(fresh), "copied", copied=sources.pop() if len(sources) == 1 else None)
    std = _std_of_draws(new)
    return NewRows(len(fresh), "other" if std is None else "drawn", std)


def _mean_and_spread(values: Values, rows: NDArray[Any]) -> tuple[NDArray[Any], float]:
    """Return the mean of the rows, and the root mean square of their distance from it."""
    import numpy as np

    total, squares = np.zeros(values.info.shape[1]), 0.0
    for block in _blocks(values, rows):
        total += block.sum(axis=0)
        squares += float(np.square(block).sum())
    mean = total / max(1, len(rows))
    spread = squares / max(1, len(rows)) - float(mean @ mean)
    return mean, max(0.0, spread) ** 0.5


def _blocks(values: Values, rows: NDArray[Any]) -> Iterator[NDArray[Any]]:
    import numpy as np

    step = max(1, (1 << 20) // max(1, values.info.shape[1]))
    for first in range(0, len(rows), step):
        block = picked_rows(values, rows[first : first + step]).astype(np.float64)
        yield block[np.isfinite(block).all(axis=1)]


def _sources(values: Values, new: NDArray[Any], shared: NDArray[Any]) -> set[int]:
    """Return the shared rows that all new rows are copies of; empty unless every one is a copy."""
    wanted = {row.tobytes(): None for row in new}
    found: dict[bytes, int] = {}
    for first, block in zip(range(0, len(shared), 1 << 12), _chunks(values, shared), strict=True):
        for at, row in enumerate(block):
            key = row.tobytes()
            if key in wanted:
                found.setdefault(key, int(shared[first + at]))
    return set(found.values()) if len(found) == len(wanted) else set()


def _chunks(values: Values, rows: NDArray[Any]) -> Iterator[NDArray[Any]]:
    import numpy as np

    for first in range(0, len(rows), 1 << 12):
        yield picked_rows(values, rows[first : first + (1 << 12)]).astype(np.float64)


def _std_of_draws(new: NDArray[Any]) -> float | None:
    """Return the standard deviation where the numbers look like independent draws of one law.

    Normal draws have no excess kurtosis and uniform ones -1.2; the mean is near zero, and rows and
    columns differ in length by no more than chance allows.
    """
    import numpy as np

    n, (rows, columns) = new.size, new.shape
    std = float(new.std())
    if n < 256 or std == 0 or abs(new.mean()) > _SURE * std / n**0.5:
        return None
    kurtosis = float((((new - new.mean()) / std) ** 4).mean()) - 3
    error = _SURE * (24 / n) ** 0.5
    if min(abs(kurtosis), abs(kurtosis + 1.2)) > error:
        return None
    for axis, length in ((1, columns), (0, rows)):
        variances = np.square(new).mean(axis=axis) / std**2
        if abs(variances - 1).max() > _SURE * (2 / length) ** 0.5 + _SURE / length:
            return None
    return std
