import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from difflens.core.buffers import ThreadBuffers
from difflens.core.errors import DifflensError, TooLarge
from difflens.core.records import TensorInfo
from difflens.diffs.story import diff
from difflens.measure import chunks
from difflens.measure import values as module
from difflens.measure.chunks import Side
from difflens.measure.values import Values
from difflens.models.opening import MemorySource

TYPES = [np.float32, np.float64, np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn,
         np.int8, np.uint8, np.int64, np.bool_]  # fmt: skip


def values_of(array):
    source = MemorySource({"w": array})
    return Values(Side.of(source, source.tensors["w"]))


@pytest.mark.parametrize("dtype", TYPES, ids=lambda each: np.dtype(each).name)
def test_the_whole_array_holds_the_numbers_of_the_tensor(dtype):
    array = np.arange(24).reshape(4, 6).astype(dtype)

    assert np.array_equal(values_of(array).array(), array.astype(np.float64))


def test_what_a_thread_reads_first_does_not_limit_what_it_reads_later(monkeypatch):
    monkeypatch.setattr(chunks, "_buffers", ThreadBuffers())
    with monkeypatch.context() as short:
        short.setattr(chunks, "STEP", 16)
        values_of(np.zeros(8, np.float32)).array()
    array = np.arange(1000, dtype=np.float64)

    assert np.array_equal(values_of(array).array(), array)


@given(
    shape=st.lists(st.integers(1, 9), min_size=1, max_size=3),
    elements=st.integers(1, 40),
    dtype=st.sampled_from([np.float32, np.float16, ml_dtypes.bfloat16]),
)
def test_pieces_and_rows_put_together_are_the_tensor(shape, elements, dtype):
    array = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
    values = values_of(array)

    assert np.array_equal(np.concatenate(list(values.pieces(elements))), array.reshape(-1))
    rows = np.concatenate(list(values.rows(elements)))
    assert np.array_equal(rows, array.reshape(shape[0], -1))
    assert rows.shape == values.matrix_shape


def test_a_piece_outlives_the_buffer_it_was_read_into():
    values = values_of(np.arange(10, dtype=np.float32))

    first, second = values.pieces(5)

    assert first.tolist() == [0, 1, 2, 3, 4]
    assert second.tolist() == [5, 6, 7, 8, 9]


def test_chosen_rows_come_in_the_order_asked_for():
    values = values_of(np.arange(12, dtype=np.float32).reshape(4, 3))

    assert values.some_rows([2, 0]).tolist() == [[6, 7, 8], [0, 1, 2]]
    assert values.some_rows([]).shape == (0, 3)


def test_two_four_bit_floats_share_a_byte():
    class Packed:
        tensors = {"w": TensorInfo("w", "F4", (6,))}  # noqa: RUF012

        def read_into(self, _name, start, stop, buffer):
            buffer[: stop - start] = bytes([0x21, 0x43, 0x65])[start:stop]
            return stop - start

    values = Values(Side.of(Packed(), Packed.tensors["w"]))

    assert values.array().tolist() == [0.5, 1.0, 1.5, 2.0, 3.0, 4.0]
    assert values.span(3, 5).tolist() == [2.0, 3.0]


def test_a_tensor_too_large_for_memory_is_refused_before_it_is_read(monkeypatch):
    monkeypatch.setattr(module, "LARGEST", 15)
    values = values_of(np.arange(4, dtype=np.float32))

    with pytest.raises(TooLarge, match="w: 16 bytes in memory, 15 are allowed"):
        values.array()
    with pytest.raises(TooLarge):
        values_of(np.ones((2, 2), np.float32)).some_rows([0, 1])


@pytest.mark.parametrize("dtype", ["C64", "F6_E2M3"])
def test_what_is_no_single_number_is_refused(dtype):
    with pytest.raises(DifflensError, match="no single number"):
        module._decoded(memoryview(b"12345678"), dtype)


def test_a_diff_gives_values_by_the_name_of_its_side():
    found = diff({"module.w": np.ones(3)}, {"w": np.zeros(3)})

    assert found.values("left", "module.w").array().tolist() == [1, 1, 1]
    assert found.values("right", "w").array().tolist() == [0, 0, 0]


def test_headers_alone_have_no_values():
    found = diff({"w": np.ones(3)}, {"w": np.zeros(3)}, shape_only=True)

    assert not found.has_values
    with pytest.raises(ValueError, match="only headers"):
        found.values("left", "w")
