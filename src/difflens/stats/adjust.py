"""Many tests at once: p-values adjusted so that the family keeps its error rate.

Holm for gates (no false alarm at all), Benjamini-Hochberg for screens (few among those found),
Benjamini-Yekutieli where nothing is known of how the tests depend on each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def holm(ps: Sequence[float]) -> tuple[float, ...]:
    """Adjust for the chance of any false alarm: max over ranks j <= i of (m - j + 1)·p_(j).

    >>> holm([0.01, 0.04])
    (0.02, 0.04)
    """
    import numpy as np

    array = _checked(ps)
    order = np.argsort(array, kind="stable")
    raised = np.maximum.accumulate(array[order] * np.arange(array.size, 0, -1))
    return _back(raised, order)


def benjamini_hochberg(ps: Sequence[float]) -> tuple[float, ...]:
    """Adjust for the part of false alarms among the found: min over j >= i of m·p_(j)/j.

    >>> benjamini_hochberg([0.01, 0.04])
    (0.02, 0.04)
    """
    return _stepped_up(_checked(ps), 1.0)


def benjamini_yekutieli(ps: Sequence[float]) -> tuple[float, ...]:
    """Adjust as Benjamini-Hochberg does, times Σ 1/k: right under any dependence (2001).

    >>> benjamini_yekutieli([0.01, 0.04])
    (0.03, 0.06)
    """
    array = _checked(ps)
    return _stepped_up(array, sum(1 / k for k in range(1, array.size + 1)))


def _stepped_up(array: NDArray[np.float64], factor: float) -> tuple[float, ...]:
    import numpy as np

    order = np.argsort(array, kind="stable")
    raised = array[order] * factor * array.size / np.arange(1, array.size + 1)
    return _back(np.minimum.accumulate(raised[::-1])[::-1], order)


def _back(raised: NDArray[np.float64], order: NDArray[np.int64]) -> tuple[float, ...]:
    import numpy as np

    found = np.empty_like(raised)
    found[order] = np.minimum(raised, 1.0)
    return tuple(float(each) for each in found)


def _checked(ps: Sequence[float]) -> NDArray[np.float64]:
    import numpy as np

    array = np.asarray(ps, dtype=np.float64)
    if not ((array >= 0) & (array <= 1)).all():
        raise ValueError("p-values lie between 0 and 1")
    return array
