"""Names that account for every element: casts, scales, zeros, and edits of a few elements."""

from __future__ import annotations

import re
from math import comb, isfinite, log2, sqrt
from typing import Any

from difflens.core.dtypes import ROUNDING
from difflens.measure.edits import Edits, digits
from difflens.measure.precision import rounded, unit

from ..weights import stored
from .energy import is_rounding_only
from .parts import Part, Tensor

_HIDDEN = 0.1  # a change that rounding could hide more than a tenth of cannot be called a scale
_LEAST = 2.0**-20  # a factor below which nothing of a tensor is left to be compared
_STEPS = 2.0  # units in the last place by which a small update moves a value, rounding with it
_LOOKED = 1 << 16  # elements of a sample that are looked at for a pattern of zeros
_CHANCE = 24.0  # bits of evidence that groups of zeros were chosen
_GROUPS = (2, 4, 8, 16)  # weights in a row of which some are left
_RANKED = 1 << 13  # elements of a sample that are ranked against others
_FEW = 16  # elements that must have moved so, to be called an update


def by_scan(tensor: Tensor) -> bool:
    """Name what the standard pass alone proves; True if nothing is left to explain."""
    recast = tensor.delta.kind == "recast"
    if not tensor.moved:
        return not recast or _say(tensor, cast(tensor, 0.0))
    scan = tensor.scan
    if scan.right_zeros == scan.count > scan.left_zeros:
        return _say(tensor, Part("zeroed", (), {}, tensor.energy))
    if scheme := _scheme(tensor):
        return _say(tensor, scheme)
    return (recast and _is_cast_by_scan(tensor)) or _is_scaled(tensor) or _is_pruned(tensor)


def _is_scaled(tensor: Tensor) -> bool:
    factor = scale_of(tensor) or _scale_within_rounding(tensor)
    if factor is None:
        return False
    kind = "sign_flipped" if factor == -1 else "scaled"
    _say(tensor, Part(kind, (_shown(factor),), {"c": factor}, tensor.energy))
    return not _lossy(tensor) or _say(tensor, cast(tensor, 0.0))


def _is_pruned(tensor: Tensor) -> bool:
    gained = tensor.scan.right_zeros - tensor.scan.left_zeros
    if not 0 < gained == tensor.moved or _lossy(tensor):
        return False
    return _say(tensor, _pruned(tensor, gained, tensor.energy))


def _lossy(tensor: Tensor) -> bool:
    return tensor.is_coarser


def _say(tensor: Tensor, part: Part) -> bool:
    tensor.parts.append(part)
    return True


def _is_cast_by_scan(tensor: Tensor) -> bool:
    """Is it a cast to nearest and nothing else, or beside it zeros that were none?"""
    scan = tensor.scan
    gained = scan.right_zeros - scan.left_zeros
    if is_rounding_only(scan):
        return _say(tensor, cast(tensor, tensor.energy))
    if 0 < gained == scan.over_rounding and scan.left_nonfinite == scan.right_nonfinite:
        _say(tensor, _pruned(tensor, gained, tensor.energy))
        return _say(tensor, cast(tensor, 0.0))
    return False


def cast(tensor: Tensor, energy: float) -> Part:
    """Name a change of format: of the dtype, or of the values within one dtype."""
    left, right = tensor.delta.pair.left, tensor.delta.pair.right
    before, after = (left.dtype, right.dtype) if left and right else ("", "")
    to = tensor.formats[1] if tensor.is_coarser else after
    lossy = tensor.is_coarser
    how = tensor.edits.rounding if tensor.edits and tensor.edits.rounding else "nearest"
    rounding = how if lossy else None
    undone = not lossy and energy > 0  # the left is the right rounded
    loss = {"undone": True} if undone else {"lossless": not lossy}
    numbers = {"from": before, "to": to, "stored": after, "rounding": rounding, **loss}
    return Part("cast", (before, to, after, rounding, undone), numbers, energy)


def _scheme(tensor: Tensor) -> Part | None:
    left, right = tensor.delta.pair.left, tensor.delta.pair.right
    names = [stored(info).scheme if info else None for info in (left, right)]
    if names[0] == names[1]:
        return None
    kind, scheme = ("quantised", names[1]) if names[1] else ("dequantised", names[0])
    numbers = {"scheme": scheme, "sqnr_db": tensor.scan.figures()["sqnr_db"]}
    if scheme and (parts := _SCHEME.search(scheme)):
        group = parts["size"] and int(parts["size"])
        numbers |= {"bits": int(parts["bits"]), "group": group or parts["group"]}
    return Part(kind, (scheme,), numbers, tensor.energy)


_SCHEME = re.compile(r"(?:int|F)(?P<bits>\d+)\S* (?:scaled by (?P<group>.+)|g(?P<size>\d+))$")


# c = 1 + <d, left> / ‖left‖²,  residual² = ‖right - c left‖² = ‖d‖² - <d, left>² / ‖left‖²
#
# Both are taken from d = right - left, whose sum of squares is measured as such:
# ‖right‖² - c <left, right> would cancel to noise for c near 1.


def scale_of(tensor: Tensor) -> float | None:
    """Return c of right = c · left up to rounding; None if it is no scale."""
    scan, limit = tensor.scan, float(tensor.change.answer["scale_tolerance"])
    if scan.pairs < scan.count or not scan.square_sum or not scan.left_square_sum:
        return None
    along = scan.dot - scan.left_square_sum
    if not (isfinite(along) and isfinite(scan.left_square_sum)):
        return None
    part = along / scan.square_sum * (along / scan.left_square_sum)
    residual = sqrt(max(0.0, 1 - part))
    size = sqrt(scan.right_square_sum / scan.square_sum)
    floor = 2.0 ** -(min(map(digits, tensor.formats)) + 1) * size
    if residual > _HIDDEN or floor > _HIDDEN or residual > max(limit, floor):
        return None
    # Where next to nothing is left, any tensor is near zero times another.
    factor = 1 + along / scan.left_square_sum
    rest = residual * sqrt(scan.square_sum)
    is_left = abs(factor) >= _LEAST and rest <= _HIDDEN * sqrt(scan.right_square_sum)
    return factor if is_left else None


def _scale_within_rounding(tensor: Tensor) -> float | None:
    """Return a factor that makes each right value of each left one, but for its rounding.

    Each pair of values leaves an interval to the factor. A change that rounding hides much of, as
    a hundredth in BF16, is a scale where all intervals meet, and one is not where they meet.
    """
    import numpy as np

    coarse = min(tensor.formats, key=digits)
    if digits(coarse) >= ROUNDING["F32"][1] or tensor.moved < _FEW:
        return None
    if tensor.scan.left_nonfinite or tensor.scan.right_nonfinite:
        return None
    left, right = (side.astype(np.float64) for side in tensor.pieces)
    if ((left == 0) & (right != 0)).any():
        return None
    one, other = left[left != 0], right[left != 0]
    half = unit(other, tensor.formats[1]) / 2
    if np.median(np.abs(other - one) / half) <= 2:  # of one unit: any rounding moves values so
        return None
    ends = np.sort(np.stack([other - half, other + half]) / one, axis=0)
    least, most = float(ends[0].max()), float(ends[1].min())
    if least > most or least <= 1 <= most or len(np.unique(np.abs(one))) < _FEW:
        return None
    return (least + most) / 2


def _shown(factor: float) -> float:
    """Round to what storage in sixteen bits leaves of a factor."""
    return float(f"{factor:.2g}")


def residual_of(tensor: Tensor, factor: float) -> float:
    """Return ‖right - c left‖ / ‖d‖."""
    scan = tensor.scan
    along = scan.dot - scan.left_square_sum
    part = along / scan.square_sum * (along / scan.left_square_sum)
    return sqrt(max(0.0, 1 - part)) if factor else 1.0


# A second look at the bytes, where a sample leaves a name possible.


def wants_edits(tensor: Tensor) -> bool:
    """Are few elements left once storage is undone, or only zeros?"""
    limit = float(tensor.change.answer["row_fraction"])
    if not tensor.is_coarser:
        return tensor.moved == 1 or tensor.moved <= limit * tensor.scan.count
    left, right = tensor.pieces
    return any(
        bool(other.mean() <= limit or (right[other] == 0).all())
        for other in (_unlike(left, right, tensor, nearest) for nearest in (True, False))
    )


def _unlike(left: Any, right: Any, tensor: Tensor, nearest: bool) -> Any:
    import numpy as np

    dtype = tensor.formats[1]
    other = rounded(left, dtype, nearest=nearest) != right
    if nearest and other.any():  # a tie may have gone either way
        with np.errstate(invalid="ignore"):
            apart = np.abs(right.astype(np.float64) - left)
        other &= ~(apart <= unit(right, dtype) / 2)
    return other


def by_edits(tensor: Tensor, edits: Edits) -> bool:
    """Name what a pass over every element proves; True if nothing is left to explain."""
    tensor.edits = edits
    scan, limit = tensor.scan, float(tensor.change.answer["row_fraction"])
    storage = cast(tensor, max(0.0, tensor.energy - edits.squares)) if tensor.is_coarser else None
    named = _edit(tensor, edits, limit) if edits.moved else None
    if named is None and edits.moved and storage is not None:
        # What is left needs another name; the cast is named then.
        return False
    if named is not None:
        tensor.parts.append(named)
    if storage is not None:
        tensor.parts.append(storage)
    return bool(named or not edits.moved or not scan.count)


def _edit(tensor: Tensor, edits: Edits, limit: float) -> Part | None:
    columns = max(1, edits.count // tensor.rows)
    if edits.zeroed == edits.moved and edits.moved > 1:
        return _pruned(tensor, edits.zeroed, edits.squares, edits)
    whole = edits.moved * 2 >= edits.rows * columns
    if tensor.is_matrix and edits.rows <= limit * tensor.rows and whole:
        numbers = {"rows_changed": edits.rows, "rows": tensor.rows}
        return Part("row_edit", (), numbers, edits.squares)
    if is_hidden(tensor):
        return Part("trained", (), {"fraction": edits.moved / edits.count}, edits.squares)
    if edits.moved == 1 or edits.moved < tensor.change.answer["sparse_fraction"] * edits.count:
        return Part("sparse_edit", (), {"elements": edits.moved}, edits.squares)
    return None


def is_hidden(tensor: Tensor) -> bool:
    """Did a few values move by so little that it would not show in the others?

    A small learning rate leaves most values of a coarse format where they are.
    """
    import numpy as np

    edits, right = tensor.edits, tensor.pieces[1]
    if edits is None or not edits.moved or edits.moved == edits.count or not (right != 0).any():
        return False
    step = float(np.median(unit(right[right != 0], tensor.formats[1])))
    return sqrt(edits.squares / edits.moved) <= _STEPS * step


def _pruned(tensor: Tensor, gained: int, energy: float, edits: Edits | None = None) -> Part:
    zeros = tensor.scan.right_zeros
    numbers: dict[str, Any] = {
        "newly_zeroed": gained,
        "zeros": zeros,
        "elements": tensor.scan.count,
    }
    numbers |= _pattern(tensor, gained, edits)
    return Part("pruned", (numbers["pattern"],), numbers, energy)


def _pattern(tensor: Tensor, gained: int, edits: Edits | None) -> dict[str, Any]:
    """Tell how the zeros of a sample lie, and whether the smallest became zero."""
    left, right, _ = tensor.sample
    step = 1 + left.size // _LOOKED
    left, right = left[::step], right[::step]
    zero, was = right == 0, left == 0
    shares = {size: _half_zero(zero, size) for size in (4, 8)}
    rows = zero.all(axis=1) & ~was.all(axis=1)
    columns = zero.shape[1]
    pattern = "unstructured"
    if (
        tensor.is_matrix
        and gained > 1
        and rows.any()
        and rows.sum() * columns >= (zero & ~was).sum()
    ):
        pattern = "rows"
    elif masks := [mask for size in _GROUPS if (mask := _mask(zero, size))]:
        pattern = min(masks)[1]
    found: dict[str, Any] = {"pattern": pattern, "pruning_auc": _auc(left, zero & ~was, zero)}
    if columns >= 8:
        found |= {"two_of_four": shares[4], "four_of_eight": shares[8]}
    if edits:
        found["rows_changed"] = edits.rows
    return found


def _mask(zero: Any, size: int) -> tuple[float, str] | None:
    """Say how many of so many in a row are left at most, and how many bits an element that takes.

    It is a pattern where chance does not leave so few in every group: among many zeros it does.
    """
    if zero.shape[1] % size or zero.shape[1] < 2 * size:
        return None
    most = size - int(zero.reshape(-1, size).sum(axis=1).min())
    share, groups = float(zero.mean()), zero.size // size
    one = sum(
        comb(size, left) * (1 - share) ** left * share ** (size - left) for left in range(most + 1)
    )
    if not 0 < most < size or not 0 < one < 1 or -log2(one) * groups <= _CHANCE:
        return None
    masks = sum(comb(size, left) for left in range(most + 1))
    return log2(masks) / size, f"{most}:{size}"


def _half_zero(zero: Any, size: int) -> float:
    """Return the part of the groups along the input that are half zero at least."""
    width = zero.shape[1] - zero.shape[1] % size
    if not width:
        return 0.0
    inside = zero[:, :width].reshape(-1, size).sum(axis=1)
    return float((inside * 2 >= size).mean())


def _some(values: Any) -> Any:
    return values[:: 1 + len(values) // _RANKED]


def _auc(left: Any, zeroed: Any, zero: Any) -> float | None:
    """P(|zeroed| < |kept|) of a sample, by ranks (Mann & Whitney 1947)."""
    import numpy as np

    gone, still = (_some(np.abs(left[chosen])) for chosen in (zeroed, ~zero))
    if not (len(gone) and len(still)):
        return None
    still = np.sort(still)
    low, high = (np.searchsorted(still, gone, side) for side in ("left", "right"))
    return float(1 - ((low + high) / 2).mean() / len(still))
