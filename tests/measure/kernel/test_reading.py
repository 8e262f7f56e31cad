"""One look at tensors: the compiled loop, its NumPy twin and 64-bit arithmetic agree."""

import os
import subprocess
import sys
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lanes import examples

from difflens.measure.kernel import readings

NUMPY = {"F64": np.float64, "F32": np.float32, "F16": np.float16, "BF16": ml_dtypes.bfloat16}
SIZES = (0, 1, 7, 63, 64, 65, 1000, 1023, 1024, 1025, 5000)


def look(kernel: Any, values, copy=None) -> dict[str, float]:
    """Read one array, whose copy is refreshed."""
    code = readings.TYPES.index(next(name for name, kind in NUMPY.items() if kind == values.dtype))
    address = 0 if copy is None else copy.ctypes.data
    table = np.array([[values.ctypes.data, address, values.size, code]], np.int64)
    out = np.full((1, len(readings.COLUMNS)), 9.0)
    kernel.read(table, out)
    return dict(zip(readings.COLUMNS, out[0].tolist(), strict=True))


def expected(values, copy=None) -> dict[str, float]:
    exact = values.astype(np.float64)
    finite = exact[np.isfinite(exact)]
    moves = 0.0 if copy is None else float(np.square(exact - copy.astype(np.float64)).sum())
    return {
        "squares": float(np.square(exact).sum()),
        "magnitudes": 0.0 if copy is not None else float(np.abs(finite).sum()),
        "largest": float(np.abs(finite).max(initial=0.0)),
        "nonfinite": float(exact.size - finite.size),
        "zeros": 0.0 if copy is not None else float((exact == 0).sum()),
        "moves": moves,
    }


@pytest.fixture(
    scope="module", params=["difflens.measure.kernel.readings", "difflens.measure.kernel._scan"]
)
def kernel(request) -> Any:
    return pytest.importorskip(request.param, exc_type=ImportError)


def agrees(actual: dict[str, float], wanted: dict[str, float]) -> bool:
    exact = all(actual[name] == wanted[name] for name in ("nonfinite", "zeros", "largest"))
    sums = ("squares", "magnitudes", "moves")
    return exact and all(
        np.isclose(actual[name], wanted[name], rtol=1e-6, atol=0, equal_nan=True) for name in sums
    )


@pytest.mark.parametrize("dtype", NUMPY)
@pytest.mark.parametrize("scale", [1e-25, 1e-7, 1.0, 1e4, 1e25])
def test_sums_of_any_size_and_scale_equal_those_of_64_bits(kernel, dtype, scale):
    rng = np.random.default_rng(0)
    for size in SIZES:
        with np.errstate(over="ignore", invalid="ignore"):
            values = (scale * rng.standard_normal(size)).astype(NUMPY[dtype])
            values[::5] = 0
            copy = (values + values * 1e-2).astype(NUMPY[dtype])
            wanted, moved = expected(values), expected(values, copy)

        assert agrees(look(kernel, values), wanted), (size, look(kernel, values), wanted)
        told = look(kernel, values, copy)
        assert agrees(told, moved), (size, told, moved)
        assert values.tobytes() == copy.tobytes()


@pytest.mark.parametrize("dtype", NUMPY)
@pytest.mark.parametrize("place", [0, 1, 70, 1030, 1099])
@pytest.mark.parametrize("odd", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_shows_in_the_norm_and_is_counted(kernel, dtype, place, odd):
    """A NaN in a block, in its tail or in the last block is never lost."""
    values = np.ones(1100, NUMPY[dtype])
    values[place] = odd

    told = look(kernel, values)
    assert told["nonfinite"] == 1
    assert not np.isfinite(told["squares"])
    assert told["largest"] == 1
    assert told["magnitudes"] == 1099
    assert look(kernel, values, np.ones(1100, NUMPY[dtype]))["nonfinite"] == 1


@given(values=st.lists(st.floats(width=32), max_size=200), at=st.integers(0, 40))
@examples(200)
def test_compiled_and_numpy_agree_on_any_floats(values, at):
    compiled = pytest.importorskip("difflens.measure.kernel._scan", exc_type=ImportError)
    array = np.array([1.0] * at + values, np.float32)

    with np.errstate(over="ignore", invalid="ignore"):
        assert agrees(look(compiled, array), look(readings, array))


def test_an_update_far_below_the_weights_is_not_lost(kernel):
    """Moves of 1e-20 square to numbers that no float holds."""
    copy = np.zeros(3000, np.float32)
    values = np.full(3000, 1e-20, np.float32)

    assert look(kernel, values, copy)["moves"] == pytest.approx(3000 * 1e-40, rel=1e-6)


@pytest.mark.parametrize("row", [(0, 0, 5, 1), (1, 0, -1, 1), (1, 0, 0, 4), (1, 0, 0, -1)])
def test_a_row_that_cannot_be_is_refused(kernel, row):
    with pytest.raises(ValueError, match=r"do not fit|cannot be read"):
        kernel.read(np.array([row], np.int64), np.zeros(6))


def test_a_table_and_an_answer_of_other_lengths_are_refused(kernel):
    with pytest.raises(ValueError, match="do not fit"):
        kernel.read(np.zeros(4, np.int64), np.zeros(7))


@pytest.mark.parametrize("level", ["baseline", "avx2", "avx512"])
def test_every_level_of_the_processor_reads_alike(level):
    program = (
        "import numpy as np, ml_dtypes\n"
        "from difflens.measure.kernel import _scan, readings\n"
        "x = np.random.default_rng(1).standard_normal(5001)\n"
        "for code, kind in enumerate((np.float64, np.float32, np.float16, ml_dtypes.bfloat16)):\n"
        "    v = x.astype(kind); c, d = (v * 2).astype(kind), (v * 2).astype(kind)\n"
        "    for k, copy in ((_scan, c), (readings, d)):\n"
        "        at, by = v.ctypes.data, copy.ctypes.data\n"
        "        rows = [[at, 0, 5001, code], [at, by, 5001, code]]\n"
        "        out = np.zeros((2, 6)); k.read(np.array(rows, np.int64), out)\n"
        "        if k is _scan: first = out\n"
        "    assert np.allclose(first, out, rtol=1e-6), (kind, first, out)\n"
        "print('agree')\n"
    )
    environment = {"DIFFLENS_LEVEL": level, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", program]
    answer = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if "cannot run the loops" in answer.stderr:
        pytest.skip(f"this processor has no {level}")
    if "No module" in answer.stderr:
        pytest.skip("the kernel is not compiled")

    assert answer.stdout.strip() == "agree", answer.stderr
