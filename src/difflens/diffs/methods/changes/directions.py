"""Changes of few directions: a merged LoRA, an edit by one outer product, a direction removed."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from typing import TYPE_CHECKING, Any, NamedTuple

from difflens.measure.edits import digits
from difflens.measure.precision import unit
from difflens.measure.ranks import MARGIN, sigma_of_median
from difflens.measure.ranks import edge as noise_edge
from difflens.measure.spectrum import DeltaSpectrum
from difflens.models.anatomy.roles import role

from .change import Change
from .parts import CUT, Part, Tensor

if TYPE_CHECKING:
    from numpy.typing import NDArray

SPECTRA = 64  # matrices whose spectra are taken at most, evenly spread
_LEAST = 32  # rows of a sample at least
_PROFILED = 24
_CLEAREST = 4  # matrices of a role that are asked first
_SAMPLE = 1.2  # rows of a sample, relative to the rank that it must tell from a full one
_COMMON = 0.9  # |cosine| from which two directions are one
_REMOVED = 0.1  # part of a matrix along a direction that is left where it was projected out
_TWICE = 1.1  # what is left over what rounding adds, from which it is more than rounding
_GAP = 1.5  # one direction over the edge of noise, from which it is shown and no other is hidden
_MOST = 0.5  # of a change that directions hold, where rounding explains the rest
_OFTEN = 0.25  # part of the matrices of a role that must show a rank, two at least


def candidates(tensors: list[Tensor]) -> list[Tensor]:
    """List the matrices whose sample leaves a low rank possible."""
    return [tensor for tensor in tensors if tensor.is_matrix and _may_be_low(tensor)]


def _may_be_low(tensor: Tensor) -> bool:
    """Are few singular values of the sample's change above the edge of rounding or of its bulk?"""
    import numpy as np

    left, right, _ = tensor.sample
    limit = highest(tensor)
    step = max(1, int(len(left) // max(_LEAST, _SAMPLE * limit)))
    left, right = left[::step], right[::step]
    with np.errstate(invalid="ignore", over="ignore"):
        d = right.astype(np.float64) - left
    if not np.isfinite(d).all() or not d.any():
        return False
    if min(d.shape) < _SAMPLE * limit and len(d) < tensor.rows:
        limit = int(min(d.shape) / _SAMPLE)
    gram = d @ d.T if len(d) <= d.shape[1] else d.T @ d
    values = np.sqrt(np.maximum(np.linalg.eigvalsh(gram)[::-1], 0.0))
    edge = max(_edge(tensor, left, right), 5e-7 * float(values[0]))
    tensor.clarity = float(values[0]) / edge
    if (values > edge).sum() <= limit:
        return True
    # Noise beside a low rank: a bulk whose median gives an edge that few values pass.
    bulk = noise_edge(sigma_of_median(values, *d.shape), *d.shape) * (1 + MARGIN)
    above = values[values > bulk]
    held = float((above**2).sum() / (values**2).sum())
    return len(above) <= limit and held >= tensor.change.answer["rank_energy"]


def highest(tensor: Tensor) -> int:
    """Return the highest rank that is low: its factors hold fewer numbers than what moved."""
    rows, columns = tensor.reach
    return rows * columns // max(1, rows + columns)


def _edge(tensor: Tensor, left: NDArray[Any], right: NDArray[Any]) -> float:
    step = 1 + len(right) // _PROFILED  # some rows tell how large rounding is
    squares = unit(right[::step], tensor.formats[1]) ** 2
    if digits(tensor.formats[0]) <= digits(tensor.formats[1]):
        squares = squares + unit(left[::step], tensor.formats[0]) ** 2
    if tensor.is_coarser and tensor.lean > CUT:
        squares = 4 * squares
    rows, columns = squares.sum(axis=1).max() / 12, step * squares.sum(axis=0).max() / 12
    return float(sqrt(rows) + sqrt(columns)) * (1 + MARGIN)


def by_directions(change: Change, rest: list[Tensor]) -> list[Tensor]:
    """Name the matrices that changed in few directions; return the others."""
    asked = chosen = candidates(rest)
    clearest = _clearest(chosen)
    spectra = _spectra(change, clearest)
    if not any(_read(each, spectra[each.name]) for each in chosen if each.name in spectra):
        return rest  # what does not show where it is clearest shows nowhere
    if len(chosen) > SPECTRA:
        asked = [chosen[index * len(chosen) // SPECTRA] for index in range(SPECTRA)]
        asked += [each for each in clearest if each not in asked]
    spectra |= _spectra(change, [each for each in asked if each.name not in spectra])
    ranks = {
        tensor.name: reading
        for tensor in asked
        if (reading := _read(tensor, spectra[tensor.name])) is not None
    }
    refused = {_role(tensor) for tensor in asked if tensor.name not in ranks}
    found = [
        tensor
        for tensor in chosen
        if tensor.name in ranks or (tensor.name not in spectra and _role(tensor) not in refused)
    ]
    modes = typical(found, ranks)
    found += [
        tensor
        for tensor in asked
        if tensor not in found and _is_alike(tensor, spectra[tensor.name], modes)
    ]
    for tensor in found:
        spectrum = spectra.get(tensor.name)
        _say(tensor, spectrum, modes[_role(tensor)])
    rest = [tensor for tensor in rest if tensor not in found]
    return _without_peers(change, rest, modes)


def _clearest(chosen: list[Tensor]) -> list[Tensor]:
    """Choose the matrices of each role whose samples stand out most from rounding."""
    by_role: dict[str, list[Tensor]] = {}
    for tensor in sorted(chosen, key=lambda each: -each.clarity):
        by_role.setdefault(_role(tensor), []).append(tensor)
    return [tensor for group in by_role.values() for tensor in group[:_CLEAREST]]


def _spectra(change: Change, asked: list[Tensor]) -> dict[str, DeltaSpectrum | None]:
    measure: Any = DeltaSpectrum
    taken = change.diff.session.measure_whole(measure, [each.delta for each in asked])
    return {tensor.name: found for tensor, found in zip(asked, taken, strict=True)}


def _without_peers(change: Change, rest: list[Tensor], modes: dict[str, Reading]) -> list[Tensor]:
    """Name what the update of the others explains as well, whatever its size; return the rest."""
    rank = max((mode.rank for mode in modes.values() if mode.sure), default=0)
    asked = [tensor for tensor in rest if tensor.is_matrix and rank][:SPECTRA]
    spectra = _spectra(change, asked)
    for tensor in asked:
        spectrum = spectra[tensor.name]
        if spectrum is None or spectrum.rounding_edge is None or not min(tensor.reach) > rank:
            continue
        if sum(value > spectrum.rounding_edge for value in spectrum.values) <= rank:
            _say(tensor, spectrum, modes.get(_role(tensor), Reading(rank, sure=True)))
    return [tensor for tensor in rest if not tensor.parts]


class Reading(NamedTuple):
    """Directions above the noise, and whether a gap shows that there are no others."""

    rank: int
    sure: bool


def _read(tensor: Tensor, spectrum: DeltaSpectrum | None) -> Reading | None:
    """Accept a rank that is small and shown; beside more than rounding a gap must follow it."""
    if spectrum is None or not spectrum.rank_above_noise:
        return None
    rank, edge = spectrum.rank_above_noise, spectrum.noise_edge or 0.0
    if rank > highest(tensor) or spectrum.values[0] < _GAP * edge:
        return None
    held = spectrum.extractable_at_r or 0.0
    rest = (1 - held) * spectrum.norm**2
    rounding = spectrum.rounding_sum or 0.0
    exact = rest <= _TWICE * rounding
    explained = spectrum.noise_source == "rounding" and exact
    sure = _is_all(spectrum.values[:rank], edge)
    # Training moves a matrix in directions that fade: many hold most of it, and none is the last.
    if held < (_MOST if explained and sure else tensor.change.answer["rank_energy"]):
        return None
    most = float(tensor.change.answer["rank_fraction"]) * highest(tensor)
    if not (explained or sure) or (rank > most and not (exact and sure)):
        return None
    if not sure:  # what barely stands out may be noise
        rank = sum(value >= _GAP * edge for value in spectrum.values[:rank])
    return Reading(rank, sure)


def _is_all(values: Sequence[float], edge: float) -> bool:
    """Would a further direction show, if it were smaller by as much as the last ones are?"""
    last = values[-1]
    if len(values) == 1:
        return last >= _GAP * edge
    decay = min(last / values[-2], (last / values[0]) ** (1 / (len(values) - 1)))
    return last * decay >= _TWICE * edge


def _is_alike(tensor: Tensor, spectrum: DeltaSpectrum | None, modes: dict[str, Reading]) -> bool:
    """Do as many directions as its peers have hold most of its change?"""
    mode = modes.get(_role(tensor))
    if spectrum is None or mode is None:
        return False
    held = spectrum.extractable_at(mode.rank) or 0.0
    return bool(held >= tensor.change.answer["rank_energy"])


def _say(tensor: Tensor, spectrum: DeltaSpectrum | None, mode: Reading) -> None:
    energy, held, noise = tensor.energy, 1.0, 0.0
    if spectrum is not None:
        held = spectrum.extractable_at(mode.rank) or 0.0
        energy = held * tensor.energy
        rest = max(0.0, (1 - held) * tensor.energy)
        noise = min(rest, _TWICE * (spectrum.rounding_sum or 0.0))
    rank = mode.rank if mode.sure else None
    numbers = {"rank": rank, "least_rank": mode.rank, "energy": held, "rounding": noise}
    tensor.parts.append(Part("low_rank", (rank,), numbers, energy))


def _role(tensor: Tensor) -> str:
    return role(tensor.name)


def typical(found: list[Tensor], ranks: dict[str, Reading]) -> dict[str, Reading]:
    """Return the rank of each role: the highest that enough of its matrices show.

    Rounding hides small directions and adds none, so that a rank that is read is there; it is all
    there is where some matrix has a gap after it. A role without takes the rank of another, as
    one adapter has one rank.
    """
    by_role: dict[str, list[Reading]] = {}
    for tensor in found:
        if tensor.name in ranks:
            by_role.setdefault(_role(tensor), []).append(ranks[tensor.name])
    modes = {name: _typical(readings) for name, readings in by_role.items()}
    sure = [mode.rank for mode in modes.values() if mode.sure]
    common = max(sure, default=0)
    for name in {_role(each) for each in found}:
        mode = modes.get(name, Reading(1, sure=False))
        if not mode.sure and common:
            mode = Reading(common, sure=True)
        modes[name] = mode
    return modes


def _typical(readings: list[Reading]) -> Reading:
    least = min(len(readings), max(2, _OFTEN * len(readings)))
    rank = max(
        each.rank
        for each in readings
        if sum(other.rank >= each.rank for other in readings) >= least
    )
    most = max(each.rank for each in readings)
    return Reading(rank, rank == most and any(each.sure for each in readings if each.rank == rank))


# One direction that is common to all matrices, and gone from them, is an abliteration.


def leading(tensor: Tensor) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Return the change's leading left and right vectors, and both sides, as matrices."""
    import numpy as np

    sides = [side.array().reshape(tensor.rows, -1) for side in tensor.change.values(tensor.delta)]
    d = sides[1].astype(np.float32) - sides[0]
    v = d[int(np.abs(d).max(axis=1).argmax())].astype(np.float64)
    for _ in range(3):
        u = d @ v
        u /= np.linalg.norm(u) or 1.0
        v = d.T @ u
        v /= np.linalg.norm(v) or 1.0
    return u, v, sides[0], sides[1]


def removed(chosen: list[Tensor]) -> list[Tensor]:
    """List the matrices from which one direction, the same in all, was projected out."""
    import numpy as np

    common, found = None, []
    for tensor in chosen:
        u, v, left, right = leading(tensor)
        before, after = (float(np.linalg.norm(u @ side)) for side in (left, right))
        along = u
        if after > _REMOVED * before:
            before, after = (float(np.linalg.norm(side @ v)) for side in (left, right))
            along = v
        if not before or after > _REMOVED * before:
            continue
        if common is None:
            common = along
        if len(common) == len(along) and abs(float(common @ along)) >= _COMMON:
            found.append(tensor)
    return found
