"""Finds the factor between two tensors, and how often it was applied."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from difflens.measure.codec import scale

from .chunks import kind_of
from .recipes import MOST_TIMES, Scaled

if TYPE_CHECKING:
    from .choosing import Sample

_SPACING = 2.0**-24  # between floats just below 1
_MOST_SPACINGS = 8192  # that a factor which was applied several times may lie below 1
_TRIED = 256  # elements


def scales_of(sample: Sample) -> Iterator[Scaled]:
    """Yield factors worth a trial: that of a cast, the usual ratio, one that was applied often."""
    import numpy as np

    kinds = kind_of(sample.origin.dtype), kind_of(sample.info.dtype)
    is_cast = kinds[0] != kinds[1]
    if is_cast:
        yield Scaled(kinds, 1.0, 1)
    left, right = _wide(sample.read_base(), kinds[0]), _wide(sample.target, kinds[1])
    with np.errstate(all="ignore"):
        ratios = right / left
    usable = np.isfinite(ratios) & (ratios != 0) & (left != 0)
    if not usable.any():
        return
    # Large values are rounded least, relative to what they are.
    usable &= np.abs(left) >= np.median(np.abs(left[usable]))
    middle = float(np.median(ratios[usable]))
    spread = float(np.median(np.abs(ratios[usable] - middle)))
    if not is_cast and abs(1 - middle) <= spread:  # they differ more than they moved together
        return
    near = usable & (np.abs(ratios - middle) <= 4 * spread)
    fitted = float((left[near] * right[near]).sum() / (left[near] ** 2).sum())
    factors = dict.fromkeys((middle, fitted, float(np.float32(fitted)), float(f"{fitted:.3g}")))
    for factor in factors:
        if np.isfinite(factor) and factor not in (0.0, 1.0):
            yield Scaled(kinds, factor, 1)
    if sample.origin.dtype == sample.info.dtype == "F32":
        chosen = np.flatnonzero(near)
        chosen = chosen[np.argsort(np.abs(ratios[chosen] - middle))][:_TRIED]
        yield from _repeated(left[chosen], right[chosen], fitted, kinds)


def _repeated(left: Any, right: Any, fitted: float, kinds: Any) -> Iterator[Scaled]:
    """Yield the factor just below 1 whose repeated products meet most elements exactly.

    Decay of weights multiplies by the same factor at every step, and rounds at every step.
    """
    import numpy as np

    below = round((1 - fitted) / _SPACING)
    if not 1 <= below <= _MOST_SPACINGS or not len(left):
        return
    base, target = left.astype(np.float32), right.astype(np.float32)
    best = len(base) // 2, 0, 0.0
    for spacings in range(max(below // MOST_TIMES, 1), below + 2):
        factor = np.float32(1 - spacings * _SPACING)
        made, middle = base.copy(), below / spacings
        last = min(int(middle * 1.1) + 2, MOST_TIMES)
        for times in range(1, last + 1):
            made *= factor
            if times < middle * 0.9 - 2:
                continue
            best = max(best, (int((made == target).sum()), times, float(factor)))
    if best[1]:
        yield Scaled(kinds, best[2], best[1])


def _wide(words: bytes, kind: Any) -> Any:
    """Return the values of words as F64."""
    import numpy as np

    out = bytearray(len(words) // kind[0] * 8)
    scale(words, out, (kind, kind_of("F64")), (1.0, 1), False)
    return np.frombuffer(out)
