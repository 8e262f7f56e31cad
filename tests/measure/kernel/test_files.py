"""Scanning files: the same as reading them and scanning what was read."""

import os
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import BITS, dtypes, pairs

from difflens.measure.kernel import reference
from difflens.measure.kernel.layout import STATE

KERNELS: list[Any] = [reference]
try:
    from difflens.measure.kernel import _scan

    KERNELS.append(_scan)
except ImportError:
    KERNELS.append(pytest.param(None, marks=pytest.mark.skip("the compiled kernel is not built")))


@pytest.fixture(params=KERNELS, ids=["numpy", "compiled"])
def kernel(request: pytest.FixtureRequest) -> ModuleType:
    return request.param


@pytest.fixture
def files(tmp_path: Path) -> Iterator[list[int]]:
    numbers = [os.open(tmp_path / side, os.O_RDWR | os.O_CREAT) for side in ("left", "right")]
    yield numbers
    for number in numbers:
        os.close(number)


def put(files: list[int], left: bytes, right: bytes) -> None:
    for number, data in zip(files, (left, right), strict=True):
        os.ftruncate(number, 0)
        os.pwrite(number, b"abc" + data, 0)


def scanned(kernel: ModuleType, left: bytes, right: bytes, dtype: str) -> bytes:
    state = bytearray(STATE.size)
    kernel.scan(left, right, dtype, dtype, 0.0, state)
    return bytes(state)


@given(data=st.data(), dtype=dtypes)
def test_files_scan_as_their_bytes_do(kernel, files, data, dtype):
    left, right = data.draw(pairs(dtype))
    put(files, left, right)
    count = len(left) * 8 // BITS[dtype]
    state = bytearray(STATE.size)

    same = kernel.scan_files((files[0], 3, dtype), (files[1], 3, dtype), count, 0.0, False, state)

    assert same is False
    assert state == scanned(kernel, left, right, dtype)


@pytest.mark.parametrize("at", [0, 40_000, 99_999])
def test_while_looking_equal_bytes_are_passed_over_and_a_difference_starts_again(kernel, files, at):
    left = np.random.default_rng(0).standard_normal(100_000).astype("<f4")
    right = left.copy()
    right[at] += 1
    put(files, left.tobytes(), right.tobytes())
    looked, asked = bytearray(STATE.size), bytearray(STATE.size)
    places = (files[0], 3, "F32"), (files[1], 3, "F32")

    assert kernel.scan_files(*places, left.size, 0.0, True, looked) is False
    assert kernel.scan_files(*places, left.size, 0.0, False, asked) is False
    assert looked == asked


def test_while_looking_all_equal_leaves_the_state_alone(kernel, files):
    data = bytes(range(256)) * 2000
    put(files, data, data)
    state = bytearray(STATE.size)

    same = kernel.scan_files((files[0], 3, "U8"), (files[1], 3, "U8"), len(data), 0.0, True, state)

    assert same is True
    assert not any(state)


def test_a_file_that_ends_too_early_is_an_end_of_file(kernel, files):
    put(files, bytes(400), bytes(399))

    with pytest.raises(EOFError):
        kernel.scan_files(
            (files[0], 3, "F32"), (files[1], 3, "F32"), 100, 0.0, False, bytearray(STATE.size)
        )


def test_a_descriptor_that_is_not_open_is_an_error_of_the_system(kernel, files):
    put(files, bytes(400), bytes(400))

    with pytest.raises(OSError, match="descriptor"):
        kernel.scan_files(
            (files[0], 3, "F32"), (-1, 3, "F32"), 100, 0.0, False, bytearray(STATE.size)
        )


@pytest.mark.parametrize(
    ("count", "dtype", "size"), [(-1, "F32", 0), (3, "F4", 0), (1, "F6_E2M3", 0), (1, "F32", 1)]
)
def test_what_cannot_be_is_refused(files, count, dtype, size):
    compiled = pytest.importorskip("difflens.measure.kernel._scan")
    put(files, bytes(400), bytes(400))

    with pytest.raises(ValueError, match=r"cannot"):
        compiled.scan_files(
            (files[0], 3, dtype),
            (files[1], 3, dtype),
            count,
            0.0,
            False,
            bytearray(STATE.size + size),
        )
