"""Changes of every element: training, noise, weights drawn anew, and garbage."""

from __future__ import annotations

from math import sqrt
from typing import TYPE_CHECKING, Any

from difflens.models.anatomy.roles import layer

from .parts import Part, Tensor

if TYPE_CHECKING:
    from numpy.typing import NDArray

_ABSURD = 1e4  # ratio of sizes from which values are garbage
_BROKEN = 0.1  # part of a tensor that is not finite, from which it is garbage
_FEW = 16  # elements of a size that none had before, which are an edit of these
_LEAST = 4096  # elements of a sample without which noise is not told from training
_WHITE = 1.04  # how far the largest singular value of white noise may pass its edge
_TAIL = 0.25  # how far the kurtosis of normal noise may be from 3


def by_damage(tensor: Tensor) -> bool:
    """Name garbage: values that are not finite, or of another order of magnitude."""
    scan = tensor.scan
    new = scan.right_nonfinite - scan.left_nonfinite
    before = sqrt(scan.left_square_sum / scan.pairs) if scan.pairs else 0.0
    after = scan.right_square_sum / max(1, scan.pairs)
    wild = before > 0 and not after <= (_ABSURD * before) ** 2
    tiny = after < (before / _ABSURD) ** 2
    swapped = bool(wild or tiny or new > 0) and _is_swapped(tensor)
    broken = new > 0 and (new > _BROKEN * scan.count or new == tensor.moved)
    if not (swapped or broken or (wild and tensor.moved > _FEW)):
        return False
    numbers = {"nonfinite": max(0, new), "largest": _largest(scan), "byte_swapped": swapped}
    tensor.parts.append(Part("corrupted", (swapped,), numbers, tensor.energy))
    return True


def _largest(scan: Any) -> float:
    return float(max(abs(scan.right_min), abs(scan.right_max)))


def _is_swapped(tensor: Tensor) -> bool:
    """Are the bytes of every value in reverse?"""
    import numpy as np

    left, right, _ = tensor.sample
    info = tensor.delta.pair.left
    if info is None or info.dtype not in ("F32", "F16"):
        return False
    kind = np.dtype("f4" if info.dtype == "F32" else "f2")
    with np.errstate(all="ignore"):
        turned = np.ascontiguousarray(left.astype(kind)).byteswap()
    same = turned.tobytes() == np.ascontiguousarray(right.astype(kind)).tobytes()
    return same or bool(np.array_equal(turned.astype(right.dtype), right, equal_nan=True))


def by_drift(tensor: Tensor) -> None:
    """Name a change that nothing smaller explains: drawn anew, or drifted."""
    scan = tensor.scan
    numbers = {"relative_l2": scan.relative_l2, "correlation": tensor.correlation}
    if scan.count > 1 and scan.right_m2 == 0 and scan.left_m2 > 0:
        numbers["constant"] = scan.right_mean
        tensor.parts.append(Part("reinitialised", (), numbers, tensor.energy))
    elif tensor.is_uncorrelated:
        tensor.parts.append(Part("reinitialised", (), numbers, tensor.energy))
    else:
        tensor.parts.append(Part("trained", (), numbers, tensor.energy))


def settle(tensors: list[Tensor]) -> None:
    """Let short tensors, whose correlation says nothing, follow the matrix of their layer."""
    drawn = {
        layer(tensor.name)
        for tensor in tensors
        if tensor.is_matrix and any(part.kind == "reinitialised" for part in tensor.parts)
    }
    sure = [tensor for tensor in tensors if tensor.is_matrix]
    every = bool(sure) and all(layer(tensor.name) in drawn for tensor in sure)
    for tensor in tensors:
        for place, part in enumerate(tensor.parts):
            unsure = not tensor.is_sure and part.kind == "trained"
            if unsure and (every or layer(tensor.name) in drawn):
                tensor.parts[place] = part._replace(kind="reinitialised")


# Noise has no direction: the singular values of its sample end where those of white noise do, and
# its tails are normal (or flat). Training leaves directions.


def looks_drawn(tensor: Tensor) -> bool:
    """Is the right side of a matrix white, as weights are before any training?"""
    right = tensor.sample.right
    return bool(right.size >= _LEAST and _is_white(right.astype("f8")))


def is_noise(tensor: Tensor) -> bool | None:
    """Is the change of a matrix white, as it is or relative to the weights? None: too few."""
    import numpy as np

    left, right, _ = tensor.sample
    if not tensor.is_matrix or left.size < _LEAST:
        return None
    d = right.astype(np.float64) - left
    if not np.isfinite(d).all():
        return False
    if _is_white(d):
        return True
    safe = np.abs(left) > 1e-3 * np.abs(left).mean()
    ratio = np.where(safe, d / np.where(safe, left, 1), 0.0)
    return bool(safe.mean() > 0.99 and _is_white(ratio))


def _is_even(d: NDArray[Any]) -> bool:
    """Are the rows of one size, as those of white noise are?"""
    import numpy as np

    squares = np.square(d).mean(axis=1)
    spread = sqrt(2 / d.shape[1])
    return bool(squares.std() <= 1.5 * spread * squares.mean())


def _is_white(d: NDArray[Any]) -> bool:
    import numpy as np

    largest = float(np.abs(d).max())
    d = d / largest if largest else d
    sigma = float(d.std())
    if not sigma or not _is_even(d):
        return False
    kurtosis = float((np.square(d - d.mean()) ** 2).mean()) / sigma**4
    if min(abs(kurtosis - 3), abs(kurtosis - 1.8)) > _TAIL:
        return False
    gram = d @ d.T if len(d) <= d.shape[1] else d.T @ d
    largest = sqrt(float(np.linalg.eigvalsh(gram)[-1]))
    edge = sigma * (sqrt(d.shape[0]) + sqrt(d.shape[1]))
    return bool(largest <= _WHITE * edge)
