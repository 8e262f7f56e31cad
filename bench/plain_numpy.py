"""Computes the figures of a diff as one would in NumPy: a tensor at a time, in float64.

Usage: plain_numpy.py LEFT RIGHT
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
KINDS = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2"}


def header_of(path: Path) -> tuple[dict[str, Any], int]:
    """Read the header of a safetensors file, and say where its data begins."""
    with path.open("rb") as file:
        size = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(size))
    header.pop("__metadata__", None)
    return header, 8 + size


def load(path: Path, info: dict[str, Any], data: int) -> tuple[Array, Array]:
    """Load one tensor: its bits, and its values in float64."""
    begin, end = info["data_offsets"]
    kind = np.dtype(KINDS[info["dtype"]])
    stored = np.fromfile(path, kind, (end - begin) // kind.itemsize, offset=data + begin)
    bits = stored.view(f"<u{kind.itemsize}")
    if info["dtype"] == "BF16":  # the upper half of a float32
        stored = (bits.astype(np.uint32) << 16).view(np.float32)
    return bits, stored.astype(np.float64)


def describe(values: Array) -> dict[str, float]:
    """Describe one side: its finite values, and how many are not."""
    finite = values[np.isfinite(values)]
    mean = finite.mean()
    centred = finite - mean
    squares = centred * centred
    second = squares.mean()
    return {
        "count": values.size,
        "nan": np.count_nonzero(np.isnan(values)),
        "inf": np.count_nonzero(np.isinf(values)),
        "zeros": np.count_nonzero(finite == 0),
        "min": finite.min(),
        "max": finite.max(),
        "mean": mean,
        "std": np.sqrt(second),
        "skew": (squares * centred).mean() / second**1.5,
        "kurtosis": (squares * squares).mean() / second**2 - 3,
        "abs_sum": np.abs(finite).sum(),
    }


def compare(left_bits: Array, left: Array, right_bits: Array, right: Array) -> dict[str, float]:
    """Compare two sides, element by element."""
    both = np.isfinite(left) & np.isfinite(right)
    before, after = left[both], right[both]
    moved = np.abs(after - before)
    flipped = (np.signbit(before) != np.signbit(after)) & (before != 0) & (after != 0)
    return {
        "bit_equal": np.count_nonzero(left_bits == right_bits),
        "value_equal": np.count_nonzero(left == right),
        "max_abs": moved.max(),
        "max_at": np.flatnonzero(both)[moved.argmax()],
        "abs_sum": moved.sum(),
        "square_sum": np.dot(moved, moved),
        "dot": np.dot(before, after),
        "sign_flips": np.count_nonzero(flipped),
    }


def main(left_path: Path, right_path: Path) -> None:
    """Print one line a tensor."""
    left_header, left_data = header_of(left_path)
    right_header, right_data = header_of(right_path)
    for name, info in left_header.items():
        left_bits, left = load(left_path, info, left_data)
        right_bits, right = load(right_path, right_header[name], right_data)
        pair = compare(left_bits, left, right_bits, right)
        figures = {"left": describe(left), "right": describe(right), "pair": pair}
        print(json.dumps({name: figures}, default=float))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
