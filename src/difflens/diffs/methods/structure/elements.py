"""One model as elements of others: a random part of a move, or the largest ones with their signs.

With an origin o and t = W - o: a random part of one t, rescaled (DARE, Yu et al. 2023); the largest
elements of each t, those of the elected sign averaged (TIES, Yadav et al. 2023).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from .mixtures import REST, Mixture, read_pieces

if TYPE_CHECKING:
    from numpy.typing import NDArray

_MOST = 16  # pieces of a tensor that are compared element by element
_FAIR = 1 << 12  # elements from which a tensor tells a density well
_PROBES = 6  # tensors that are compared before all are
_CLEAR = 4.0  # units in the last place above which an element moved


class Elements(NamedTuple):
    """Sums over the elements of some tensors: the move, and what an explanation leaves of it."""

    rest: float
    moved: float
    noise: float

    @property
    def fits(self) -> bool:
        """Is it explained, but for rounding?"""
        return self.rest - self.noise <= REST * self.moved


class Sparse(NamedTuple):
    """Elements of the only part that were dropped, and what the others were multiplied by."""

    kept: float  # part of the elements
    scale: float
    largest: float  # part of the kept elements that are among as many largest ones
    elements: Elements


def fit_sparse(mixture: Mixture) -> Sparse | None:
    """See whether the right has some elements of the only part's move, all times one number.

    A few tensors tell the scale, and whether it is worth reading the others.
    """
    import numpy as np

    chosen = _by_size(mixture)
    if len(mixture.parts) != 1 or not chosen:
        return None
    ratios = []
    for (part, moved), floor in _moves(mixture, chosen[:_PROBES]):
        mask = (np.abs(moved) > floor) & (part != 0)
        if mask.any():
            ratios.append(float(np.median(moved[mask] / part[mask])))
    scale = float(np.median(ratios)) if ratios else 0.0
    if scale == 0 or not _sparse(mixture, chosen[:_PROBES], scale).elements.fits:
        return None
    found = _sparse(mixture, chosen, scale)
    return found if found.elements.fits else None


def _sparse(mixture: Mixture, names: list[str], scale: float) -> Sparse:
    """Take each element as dropped or kept, whichever is nearer; count where rounding allows."""
    import numpy as np

    kept = largest = among = 0
    rest = total = noise = 0.0
    for (part, moved), floor in _moves(mixture, names):
        is_kept = np.abs(moved - scale * part) < np.abs(moved)
        noise += float(np.square(floor).sum()) / (12 * _CLEAR**2)
        rest += float(np.square(moved - np.where(is_kept, scale * part, 0)).sum())
        total += float(np.square(moved).sum())
        clear = np.abs(scale * part) > floor
        sizes, mask = np.abs(part[clear]), is_kept[clear]
        number = int(mask.sum())
        kept, among = kept + number, among + mask.size
        if 0 < number < mask.size:
            bar = np.partition(sizes, mask.size - number)[mask.size - number]
            largest += int((sizes[mask] >= bar).sum())
        else:
            largest += number
    elements = Elements(rest, total, noise)
    return Sparse(kept / max(1, among), scale, largest / max(1, kept), elements)


def _by_size(mixture: Mixture) -> list[str]:
    """List the tensors that moved, the least of a fair size first."""
    sizes = {
        name: int(mixture.origin.diff.values("right", name).info.count) for name in mixture.known
    }
    return sorted(sizes, key=lambda name: (sizes[name] < _FAIR, sizes[name], name))


def _moves(
    mixture: Mixture, names: Iterable[str]
) -> Iterator[tuple[tuple[NDArray[Any], ...], NDArray[Any]]]:
    """Yield the moves of the parts and of the right, and what rounding of each element may be.

    A tensor at a time; of a large one a part.
    """
    import numpy as np

    sources = [mixture.origin, *mixture.parts]
    deltas = [source.deltas() for source in sources]
    for name in names:
        rows = np.concatenate(list(read_pieces(sources, deltas, name, _MOST)), axis=1)
        floor = _CLEAR * mixture.units[name] * np.abs(rows[0] + rows[-1])
        yield tuple(rows[1:]), floor


class Elected(NamedTuple):
    """Trimming to the largest elements, and an average of those with the elected sign."""

    density: float
    scale: float
    elements: Elements


def fit_elected(mixture: Mixture) -> Elected | None:
    """Do what TIES does, with the density that leaves as many zeros as the right has."""
    import numpy as np

    chosen = _by_size(mixture)
    if not chosen or len(mixture.parts) < 2:
        return None
    densities: list[float] = []
    for (*parts, moved), floor in _moves(mixture, chosen[:_PROBES]):
        wanted = int((np.abs(moved) > floor).sum())
        if not 0 < wanted < moved.size:
            return None
        densities.append(_density(np.stack(parts), wanted))
    density = float(np.median(densities))
    if not _sums_of_elected(mixture, chosen[:_PROBES], density).elements.fits:
        return None
    found = _sums_of_elected(mixture, chosen, density)
    return found if found.elements.fits else None


def _sums_of_elected(mixture: Mixture, names: list[str], density: float) -> Elected:
    import numpy as np

    dot = size = total = noise = 0.0
    for (*parts, moved), floor in _moves(mixture, names):
        made = _elected(np.stack(parts), density)
        noise += float(np.square(floor).sum()) / (12 * _CLEAR**2)
        dot += float(made @ moved)
        size += float(made @ made)
        total += float(moved @ moved)
    scale = dot / size if size else 0.0
    return Elected(density, scale, Elements(max(0.0, total - scale * dot), total, noise))


def _density(parts: NDArray[Any], wanted: int) -> float:
    """Find by bisection the density that leaves so many elements."""
    low, high = 0.0, 1.0
    while high - low > 1 / parts.shape[1]:
        middle = (low + high) / 2
        if int((_elected(parts, middle) != 0).sum()) < wanted:
            low = middle
        else:
            high = middle
    return high


def _elected(parts: NDArray[Any], density: float) -> NDArray[Any]:
    import numpy as np

    number = max(1, int(density * parts.shape[1]))
    sizes = np.abs(parts)
    bars = np.partition(sizes, parts.shape[1] - number, axis=1)[:, parts.shape[1] - number, None]
    trimmed = np.where((sizes >= bars) & (sizes > 0), parts, 0)
    signs = np.sign(trimmed.sum(axis=0))
    agreeing = np.where(np.sign(trimmed) == signs, trimmed, 0)
    made: NDArray[Any] = agreeing.sum(axis=0) / np.maximum((agreeing != 0).sum(axis=0), 1)
    return made
