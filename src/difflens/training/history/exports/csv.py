"""CSV: a row per frame, a column per scalar and per field of a layer; every number is exact."""

from __future__ import annotations

import csv as text
import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from difflens.core.whole_file import whole_file

from ..exported import TIMES, columns_of, spread_frames
from ..frame import is_missing
from . import exporter

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .. import FrameSource


@exporter()
def csv(source: FrameSource, path: Path) -> int:
    """CSV: a row per frame, a column per scalar and per field of a layer."""
    wide = source.layout()
    count = 0
    with whole_file(path) as file:
        names = io.StringIO(newline="")
        # \r\n while names are written: only then is a lone \r in a name quoted.
        scalars, layers = columns_of(wide)
        text.writer(names, lineterminator="\r\n").writerow([*TIMES, *scalars, *layers])
        file.write(names.getvalue().removesuffix("\r\n").encode() + b"\n")
        for frame in spread_frames(source, wide):
            count += 1
            times = (
                str(frame.sequence),
                str(frame.step),
                _word(frame.wall_time),
                _word(frame.monotonic_time),
            )
            cells = (*times, _row(frame.scalars, "%r"), _row(frame.layers, "%.9g"))
            file.write((",".join(each for each in cells if each is not None) + "\n").encode())
    return count


def _row(values: NDArray[Any], how: str) -> str | None:
    """Write numbers with as many digits as give them back; what is missing is an empty cell."""
    if not values.size:
        return None
    plain = values.reshape(-1).tolist()
    if np.isfinite(values).all():
        return ",".join([how] * len(plain)) % tuple(plain)
    missing = is_missing(values).reshape(-1).tolist()
    cells = ("" if gone else _word(each, how) for each, gone in zip(plain, missing, strict=True))
    return ",".join(cells)


def _word(value: float, how: str = "%r") -> str:
    if value != value:  # noqa: PLR0124  NaN
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"
    return how % value
