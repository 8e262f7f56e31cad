"""How much of a matrix is in use: its directions, rows and bits beside those of a random one."""

from __future__ import annotations

from functools import cache
from math import exp, log, sqrt
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from ...diffs import Diff
from ...dtypes import FLOATS, OPAQUE, bits
from ...measure.spectrum import SideSpectrum
from ...records import TensorInfo
from ..anatomy.network import infos
from ..anatomy.roles import is_parameter
from ..anatomy.shapes import is_lookup
from .storage import stored

if TYPE_CHECKING:
    from numpy.typing import NDArray

Side = Literal["left", "right"]
_LEAST = 16  # rows and columns below which singular values say little
_LARGEST = 1 << 25  # elements: larger matrices are left out of the sample
_SAMPLED = 1 << 20  # elements whose bits are counted


class Used(NamedTuple):
    """One matrix; None is unknown."""

    name: str
    effective_rank: float | None
    utilization: float | None  # effective rank / that of a random matrix of its size
    stable_rank_ratio: float | None
    zero_share: float
    duplicate_rows: int
    entropy_bits: float | None  # of the stored codes, where they have 16 bits or fewer
    stored_bits: float


def random_effective_rank(rows: int, columns: int) -> float:
    """Give the effective rank of independent Gaussian numbers: n exp(ln E[s] - E[s ln s] / E[s]).

    s is a singular value under the Marchenko-Pastur law of β = n / m, n <= m; the rank is that of
    Roy & Vetterli (2007).

    >>> round(random_effective_rank(1000, 1000) / 1000, 3)
    0.805
    """
    small, large = sorted((rows, columns))
    return small * _part(small / large)


def random_stable_rank(rows: int, columns: int) -> float:
    """Give the stable rank of independent Gaussian numbers: m n / (√m + √n)²."""
    return rows * columns / (sqrt(rows) + sqrt(columns)) ** 2


@cache
def _part(beta: float) -> float:
    import numpy as np

    # x = 1 + β - 2 √β cos t makes the density's roots at both ends smooth.
    angles = (np.arange(20_000) + 0.5) * np.pi / 20_000
    places = 1 + beta - 2 * sqrt(beta) * np.cos(angles)
    weight = np.sin(angles) ** 2 / places
    weight /= weight.sum()
    sigma = np.sqrt(places)
    mean = float((weight * sigma).sum())
    return exp(log(mean) - float((weight * sigma * np.log(sigma)).sum()) / mean)


def sample(diff: Diff, side: Side, count: int) -> list[TensorInfo]:
    """Choose matrices evenly spread over the model, in its order; tables of words are not among."""
    fit = [info for info in infos(diff, side) if _is_candidate(info)]
    if len(fit) <= count:
        return fit
    return [fit[index * len(fit) // count] for index in range(count)]


def used(diff: Diff, side: Side, info: TensorInfo) -> Used:
    """Look at one matrix of one side, once a diff."""
    found: Used = diff.remember(("used", side, info.name), lambda: _used(diff, side, info))
    return found


def _used(diff: Diff, side: Side, info: TensorInfo) -> Used:
    values = diff.values(side, info.name)
    spectrum = SideSpectrum.of(values, None)
    rank = spectrum.left_effective_rank if spectrum else None
    stable = spectrum.left_stable_rank if spectrum else None
    rows, columns = info.shape[0], info.count // info.shape[0]
    zeros, duplicates = _counted(values)
    width = 8 * stored(info).bytes / info.count
    return Used(
        name=info.name,
        effective_rank=rank,
        utilization=None if rank is None else rank / random_effective_rank(rows, columns),
        stable_rank_ratio=None if stable is None else stable / random_stable_rank(rows, columns),
        zero_share=zeros / info.count,
        duplicate_rows=duplicates,
        entropy_bits=_entropy(values) if width <= 16 else None,
        stored_bits=width,
    )


def _is_candidate(info: TensorInfo) -> bool:
    numbers = info.dtype in FLOATS and info.dtype not in OPAQUE and bits(info.dtype) < 64
    if not numbers or len(info.shape) not in (2, 4) or not info.count or is_lookup(info):
        return False
    rows = info.shape[0]
    plain = is_parameter(info.name, info.dtype)
    return plain and min(rows, info.count // rows) >= _LEAST and info.count <= _LARGEST


def _counted(values: Any) -> tuple[int, int]:
    """Count the zeros, and the rows that repeat an earlier one."""
    zeros, rows = 0, 0
    seen: set[int] = set()
    for part in values.rows():
        zeros += int((part == 0).sum())
        rows += len(part)
        seen.update(hash(row.tobytes()) for row in part)
    return zeros, rows - len(seen)


def _entropy(values: Any) -> float:
    """Give the entropy of the values of some rows, in bits: -Σ p log2 p."""
    import numpy as np

    first: NDArray[Any] = next(iter(values.rows(_SAMPLED)))
    _, counts = np.unique(first, return_counts=True)
    shares = counts / counts.sum()
    return float(-(shares * np.log2(shares)).sum()) + 0.0
