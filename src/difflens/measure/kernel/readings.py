"""The NumPy twin of `read`: one look at tensors that lie at given addresses."""

from __future__ import annotations

import ctypes
from typing import Any

TYPES = ("F64", "F32", "F16", "BF16")  # the order of the codes in a table
COLUMNS = ("squares", "magnitudes", "largest", "nonfinite", "zeros", "moves")
_WIDTHS = (8, 4, 2, 2)


def read(table: Any, out: Any) -> None:
    """Read tensors at (address, copy or 0, count, type); a copy is compared with and refreshed.

    The caller keeps the tensors alive. Magnitudes are over finite values, squares and moves over
    all. Beside a copy, magnitudes and zeros are not told.
    """
    import numpy as np

    rows = np.frombuffer(table, np.int64)
    answers = np.frombuffer(out, np.float64)
    if rows.size % 4 or rows.size // 4 * len(COLUMNS) != answers.size:
        raise ValueError(
            f"a table of {rows.nbytes} bytes and {answers.nbytes} for the answer do not fit"
        )
    for (address, copy, count, code), answer in zip(
        rows.reshape(-1, 4).tolist(), answers.reshape(-1, len(COLUMNS)), strict=True
    ):
        if count < 0 or not 0 <= code < len(TYPES) or (count and not address):
            raise ValueError(f"{count} elements of type {code} at {address} cannot be read")
        answer[:] = _look(address, copy, count, code) if count else 0.0


def read_gradients(parameters: list[Any], dtypes: list[Any], table: Any, out: Any) -> bool:
    """Put the addresses of gradients into the table and read them; False if one is not usual.

    That is one that is missing, of another dtype or size, elsewhere than in memory, or with gaps.
    """
    import numpy as np

    kept = [each.grad for each in parameters]
    rows = np.frombuffer(table, np.int64).reshape(-1, 4)
    try:
        asked = zip(kept, dtypes, rows[:, 2].tolist(), strict=True)
        usual = all(_is_usual(*each) for each in asked)
        addresses = [each.data_ptr() for each in kept] if usual else []
    except (TypeError, RuntimeError):  # one without an address, such as a sparse one
        return False
    if usual:
        rows[:, 0] = addresses
        read(table, out)
    return usual


def read_weights(parameters: list[Any], versions: Any, table: Any, out: Any) -> bool:
    """Read parameters and keep their versions; False if one is not where the table has it."""
    import numpy as np

    known = np.frombuffer(table, np.int64).reshape(-1, 4)[:, 0].tolist()
    if [each.data_ptr() for each in parameters] != known:
        return False
    read(table, out)
    np.frombuffer(versions, np.int64)[:] = [each._version for each in parameters]  # noqa: SLF001
    return True


def are_as_read(parameters: list[Any], versions: Any) -> bool:
    """Tell whether these are still the versions of the parameters."""
    import numpy as np

    now = [each._version for each in parameters]  # noqa: SLF001
    return bool(now == np.frombuffer(versions, np.int64).tolist())


def bytes_of(tensor: Any, dtype: Any, count: int, size: int) -> bytes | None:
    """Copy the first bytes of a tensor; None if it is not of that dtype and count, or apart."""
    if not _is_usual(tensor, dtype, count):
        return None
    return ctypes.string_at(tensor.data_ptr(), size) if size else b""


def _is_usual(tensor: Any, dtype: Any, count: int) -> bool:
    """Is it of this dtype and size, in memory, without gaps?"""
    return bool(
        tensor is not None
        and tensor.dtype is dtype
        and tensor.is_cpu
        and tensor.is_contiguous()
        and tensor.numel() == count
    )


def _look(address: int, copy: int, count: int, code: int) -> tuple[float, ...]:
    import numpy as np

    value = _decoded(address, count, code)
    with np.errstate(over="ignore", invalid="ignore"):
        finite = np.isfinite(value)
        size, moves = np.abs(value[finite]), 0.0
        if copy:
            moves = float(np.square(value - _decoded(copy, count, code)).sum())
            ctypes.memmove(copy, address, count * _WIDTHS[code])
        return (
            float(np.square(value).sum()),
            0.0 if copy else float(size.sum()),
            float(size.max(initial=0.0)),
            float(count - np.count_nonzero(finite)),
            0.0 if copy else float(np.count_nonzero(value == 0)),
            moves,
        )


def _decoded(address: int, count: int, code: int) -> Any:
    import numpy as np

    raw: Any = (ctypes.c_char * (count * _WIDTHS[code])).from_address(address)
    if TYPES[code] == "BF16":
        wide = np.frombuffer(raw, np.uint16).astype(np.uint32) << 16
        return wide.view(np.float32).astype(np.float64)
    return np.frombuffer(raw, ("<f8", "<f4", "<f2")[code]).astype(np.float64)
