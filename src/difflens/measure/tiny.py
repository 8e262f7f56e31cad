"""Float64 values so small that their squares vanish: they are scanned again, scaled up.

The square of a number below about 1e-154 is zero or has lost digits, and with it every norm. A
power of two scales without rounding. So the tensor is read once more, which hardly any ever is.
"""

from __future__ import annotations

from math import frexp, ldexp, sqrt
from typing import Any

from msgspec.structs import replace

from .chunks import STEP, Side
from .kernel import scan as scan_bytes
from .kernel.layout import STATE
from .scan import Scan
from .values import Values

_SCALED_TO = 480  # the exponent of the largest value, once scaled: its square is far from infinity
_MOST = 1000  # the largest power of two by which one step scales


def with_tiny_values(scan: Scan, left: Side, right: Side | None) -> Scan:
    """Return the scan with the norms that its own sums lost; the same one if they lost none.

    `right` is None where one side was described alone.
    """
    if "F64" not in (left.info.dtype, right.info.dtype if right else None):
        return scan
    ends = scan.left_min, scan.left_max, scan.right_min, scan.right_max
    sizes = scan.max_abs, *map(abs, ends)
    exponent = min(_SCALED_TO - frexp(max(sizes))[1], _MOST + _SCALED_TO)
    move_exponent = min(_SCALED_TO - frexp(scan.max_abs)[1], _MOST + _SCALED_TO)
    return _rescanned(scan, Values(left), Values(right or left), exponent, move_exponent)


def _rescanned(scan: Scan, left: Values, right: Values, exponent: int, move_exponent: int) -> Scan:
    """Read both sides again, and sum up what is scaled."""
    import numpy as np

    state, moved = bytearray(STATE.size), 0.0
    for start in range(0, left.info.count, STEP):
        stop = min(start + STEP, left.info.count)
        before, after = (each.span(start, stop).astype(np.float64) for each in (left, right))
        with np.errstate(all="ignore"):
            move = _scaled(after - before, move_exponent)
            moved += float(np.square(move[np.isfinite(move)]).sum())
            sides = [_scaled(each, exponent).tobytes() for each in (before, after)]
        scan_bytes(sides[0], sides[1], "F64", "F64", 0.0, state)
    return replace(
        scan,
        scaled=Scan.of_state(state, scan.shape, scan.parts),
        exponent=exponent,
        distance=ldexp(sqrt(moved), -move_exponent),
    )


def _scaled(values: Any, exponent: int) -> Any:
    """Multiply by a power of two, which no float64 may hold at once."""
    import numpy as np

    half = exponent // 2
    return np.ldexp(np.ldexp(values, half), exponent - half)
