"""A scan has the same bits on every level of the processor, in NumPy, and however it is cut."""

import itertools
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lanes import examples
from measure.kernel.agreement import LEVELS, differences, figures, kernels, level, scanned
from strategies import BITS, DTYPES, REAL, encode

from difflens.measure import chunks
from difflens.measure.kernel.layout import BLOCK, STATE

KERNELS = [*LEVELS, "numpy"]


@pytest.fixture(params=KERNELS)
def kernel(request) -> Any:
    return kernels().get(request.param) or pytest.skip(f"no {request.param} here")


class Tensors(NamedTuple):
    """Two encoded tensors of as many elements."""

    left: bytes
    right: bytes
    dtypes: tuple[str, str]
    elements: int


def values(rng: Any, kind: str, n: int) -> Any:
    """Make numbers that sums find hard, each in its own way."""
    if kind == "constant":
        return np.full(n, rng.normal())
    if kind == "tiny":
        return rng.normal(size=n) * 2.0 ** rng.choice([-1070, -140, -24])
    if kind == "huge":
        return rng.normal(size=n) * 10.0 ** rng.choice([18, 100, 154, 307])
    if kind == "scattered":
        return rng.normal(size=n) * 2.0 ** rng.integers(-60, 60, n)
    offset = rng.choice([3.0, -1e4, 1e8]) if kind == "offset" else 0.0
    return rng.normal(size=n) + offset


@st.composite
def tensors(draw: st.DrawFn) -> Tensors:
    """Draw two tensors, often of one dtype, alike or not, now and then with NaN and infinities."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    one = draw(st.sampled_from(DTYPES))
    dtypes = (one, one)
    if one in REAL and draw(st.integers(0, 2)) == 0:
        dtypes = (one, draw(st.sampled_from(REAL)))
    near = st.sampled_from([1, 512, 1024, BLOCK, 2 * BLOCK, 3 * BLOCK])
    count = draw(st.integers(0, 40) | st.builds(int.__add__, near, st.integers(-9, 9)))
    count = max(count, 0)
    count += count % 2 if {"F4", "C64"} & set(dtypes) else 0
    if draw(st.integers(0, 4)) == 0:
        left, right = (rng.bytes(count * BITS[dtype] // 8) for dtype in dtypes)
        return Tensors(left, right, dtypes, count)
    kinds = st.sampled_from(["normal", "offset", "constant", "tiny", "huge", "scattered"])
    with np.errstate(all="ignore"):
        left = values(rng, draw(kinds), count)
        moves = values(rng, draw(kinds), count) * (rng.random(count) < draw(st.floats(0, 1)))
        right = left + moves * draw(st.sampled_from([1.0, 1e-3, 1e-9]))
        if dtypes[0][0] in "IU":
            scale = draw(st.sampled_from([1.0, 40.0, 2.0**50]))
            left, right = left * scale, right * scale
        for side in (left, right):
            for _ in range(draw(st.sampled_from([0, 0, 1, 3])) if count else 0):
                side[rng.integers(count)] = rng.choice([np.nan, np.inf, -np.inf])
        return Tensors(encode(left, dtypes[0]), encode(right, dtypes[1]), dtypes, count)


epsilons = st.sampled_from([0.0, 1e-3, 1.0])


def part(pair: Tensors, start: int, stop: int) -> list[bytes]:
    sides = zip((pair.left, pair.right), pair.dtypes, strict=True)
    return [side[start * BITS[dtype] // 8 : stop * BITS[dtype] // 8] for side, dtype in sides]


def scan_at_once(kernel: Any, pair: Tensors, epsilon: float) -> bytearray:
    return scanned(kernel, pair.left, pair.right, *pair.dtypes, epsilon=epsilon)


def test_the_processor_runs_more_than_one_kernel():
    assert len(kernels()) > 1 or pytest.skip("the compiled kernel is not built")


@given(pair=tensors(), epsilon=epsilons)
@examples(400)
def test_every_kernel_fills_the_same_bytes(pair, epsilon):
    expected = scan_at_once(kernels()["numpy"], pair, epsilon)
    for name, kernel in kernels().items():
        assert differences(expected, scan_at_once(kernel, pair, epsilon)) == {}, name


@given(pair=tensors(), epsilon=epsilons, size=st.integers(1, 2))
@examples(80)
def test_steps_of_whole_blocks_leave_no_trace(kernel, pair, epsilon, size):
    state = bytearray(STATE.size)
    for start in range(0, pair.elements, size * BLOCK):
        kernel.scan(*part(pair, start, start + size * BLOCK), *pair.dtypes, epsilon, state)

    assert differences(scan_at_once(kernel, pair, epsilon), state) == {}


def test_what_reads_in_steps_takes_whole_blocks():
    assert chunks.STEP % BLOCK == chunks.CHUNK % BLOCK == 0


@given(pair=tensors(), epsilon=epsilons, chunk=st.integers(50, BLOCK).map(lambda half: 2 * half))
@examples(100)
def test_states_of_chunks_merge_to_the_same_bytes_in_every_kernel(pair, epsilon, chunk):
    merged = {}
    for name, kernel in kernels().items():
        merged[name] = bytearray(STATE.size)
        for start in range(0, pair.elements, chunk):
            sides = part(pair, start, start + chunk)
            kernel.merge(merged[name], scanned(kernel, *sides, *pair.dtypes, epsilon=epsilon))

    for name, state in merged.items():
        assert differences(merged["numpy"], state) == {}, name


@given(pair=tensors(), epsilon=epsilons, offset=st.integers(0, 9))
@examples(60)
def test_files_fill_the_bytes_that_their_elements_do(
    kernel, tmp_path_factory, pair, epsilon, offset
):
    folder = tmp_path_factory.mktemp("files")
    files = []
    for name, data in (("left", pair.left), ("right", pair.right)):
        (folder / name).write_bytes(bytes(offset) + data)
        files.append(os.open(folder / name, os.O_RDONLY))
    state = bytearray(STATE.size)
    places = [(file, offset, dtype) for file, dtype in zip(files, pair.dtypes, strict=True)]
    try:
        kernel.scan_files(*places, pair.elements, epsilon, False, state)
    finally:
        for file in files:
            os.close(file)

    assert differences(scan_at_once(kernel, pair, epsilon), state) == {}


@pytest.mark.parametrize("dtype", ["F32", "F64", "BF16", "F16", "I8"])
def test_a_large_tensor_has_the_same_bits_at_any_address_and_in_steps_of_any_blocks(kernel, dtype):
    rng = np.random.default_rng(5)
    n = 100_000
    sides = [encode(rng.normal(size=n) * 9, dtype) for _ in range(2)]
    pair = Tensors(sides[0], sides[1], (dtype, dtype), n)
    expected = scan_at_once(kernels()["numpy"], pair, 0.0)
    for shift, blocks in itertools.product((0, 1, 5), (1, 3, 4, 32)):
        state = bytearray(STATE.size)
        for start in range(0, n, blocks * BLOCK):
            left, right = part(pair, start, start + blocks * BLOCK)
            moved = memoryview(bytes(shift) + left)[shift:]
            kernel.scan(moved, right, dtype, dtype, 0.0, state)
        assert differences(expected, state) == {}, (shift, blocks)


def test_a_nan_that_an_overflow_left_is_the_one_nan(kernel):
    """Processors differ in its sign."""
    left = np.array([1e308, -1e308, 1e200] * 50)
    state = scanned(kernel, left.tobytes(), (left / -3).tobytes(), "F64")
    other = bytearray(STATE.size)
    kernel.merge(other, state)

    numbers = np.frombuffer(bytes(state), np.float64)[STATE.size // 8 - 22 :]
    nans = numbers[np.isnan(numbers)].view(np.uint64)
    assert nans.size
    assert set(nans.tolist()) == {0x7FF8000000000000}
    assert state == other


@pytest.mark.parametrize("value", [0.1, 1 / 3, 1e20, -7.7e-12])
def test_a_constant_has_no_variance_at_all(kernel, value):
    left = np.full(200_001, value).tobytes()
    seen = figures(scanned(kernel, left, left, "F64"))

    assert seen["left_mean"] == value
    assert seen["left_m2"] == seen["left_m3"] == seen["left_m4"] == seen["comoment"] == 0


@pytest.fixture(scope="module")
def models(tmp_path_factory) -> Path:
    from safetensors.numpy import save_file

    folder = tmp_path_factory.mktemp("models")
    rng = np.random.default_rng(6)
    before = {
        "blocks.0.weight": rng.normal(size=(300, 257)).astype("f4"),
        "blocks.0.norm": (1 + 0.1 * rng.normal(size=4099)).astype("f4"),
        "blocks.1.weight": rng.normal(size=(1, 99_999)).astype("f2"),
        "blocks.1.wide": rng.normal(size=30_001) * 10.0 ** rng.integers(-8, 8, 30_001),
        "steps": rng.integers(-(2**62), 2**62, 2_500),
    }
    before["blocks.1.weight"][0, 5_000] = np.nan
    after = {name: (each * 1.01).astype(each.dtype) for name, each in before.items()}
    save_file(before, folder / "left.safetensors")
    save_file(after, folder / "right.safetensors")
    return folder


def test_a_whole_report_has_the_same_bytes_on_every_kernel(models):
    choices = {name: {"DIFFLENS_LEVEL": name} for name in LEVELS if level(name)}
    reports = {}
    for name, choice in (choices | {"numpy": {"DIFFLENS_KERNEL": "numpy"}}).items():
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **choice}
        sides = ["left.safetensors", "right.safetensors"]
        ended = subprocess.run(
            [sys.executable, "-m", "difflens", *sides, "-o", "full-json"],
            env=environment,
            cwd=models,
            capture_output=True,
            check=False,
        )
        assert ended.returncode in {0, 1}, ended.stderr
        reports[name] = ended.stdout

    assert b"blocks.1.wide" in reports["numpy"]
    assert {name for name, report in reports.items() if report != reports["numpy"]} == set()
