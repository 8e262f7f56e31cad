"""Tensors of a framework, asked where they lie: the compiled questions and their twin agree."""

from array import array
from typing import Any

import numpy as np
import pytest

F32 = np.dtype("f4")  # one object, as the dtypes of a framework are


class Tensor:
    """What the kernel asks of a tensor, over an array."""

    def __init__(self, values, *, dtype=F32, is_cpu=True, contiguous=True, grad=None) -> None:
        self.values, self.dtype, self.is_cpu, self.grad = values, dtype, is_cpu, grad
        self._contiguous, self._version = contiguous, 0

    def is_contiguous(self) -> bool:
        return self._contiguous

    def numel(self) -> int:
        return self.values.size

    def data_ptr(self) -> int:
        return self.values.ctypes.data


class Sparse(Tensor):
    def is_contiguous(self) -> bool:
        raise RuntimeError("sparse tensors do not have is_contiguous")


@pytest.fixture(params=["difflens.measure.kernel.readings", "difflens.measure.kernel._scan"])
def kernel(request) -> Any:
    return pytest.importorskip(request.param, exc_type=ImportError)


def ones(count: int) -> np.ndarray:
    return np.ones(count, np.float32)


def table_of(*counts: int, copies=None):
    rows = array("q")
    for place, count in enumerate(counts):
        rows.extend((0, 0 if copies is None else copies[place].ctypes.data, count, 1))
    return rows


def read_gradients(kernel, gradients, counts=(3, 5)):
    parameters = [Tensor(ones(4), grad=each) for each in gradients]
    out = bytearray(48 * len(counts))
    read = kernel.read_gradients(parameters, [F32] * len(counts), table_of(*counts), out)
    return read, np.frombuffer(out).reshape(-1, 6)


def test_usual_gradients_are_read_where_they_lie(kernel):
    read, out = read_gradients(kernel, [Tensor(2 * ones(3)), Tensor(ones(5))])

    assert read is True
    assert out[:, 0].tolist() == [12.0, 5.0]


@pytest.mark.parametrize(
    "odd",
    [
        None,
        Tensor(ones(5), dtype="f64"),
        Tensor(ones(5), is_cpu=False),
        Tensor(ones(5), contiguous=False),
        Tensor(ones(4)),
        Sparse(ones(5)),
    ],
    ids=["missing", "dtype", "device", "gaps", "size", "sparse"],
)
def test_of_gradients_with_an_odd_one_none_is_read(kernel, odd):
    read, out = read_gradients(kernel, [Tensor(ones(3)), odd])

    assert read is False
    assert not out.any()


def test_other_errors_of_a_tensor_are_passed_on(kernel):
    class Broken:
        @property
        def grad(self):
            raise KeyError("grad")

    with pytest.raises(KeyError):
        kernel.read_gradients([Broken()], [F32], table_of(3), bytearray(48))


def test_a_table_for_fewer_gradients_is_refused(kernel):
    with pytest.raises(ValueError):  # noqa: PT011  each says it in its own words
        read_gradients(kernel, [Tensor(ones(3)), Tensor(ones(5))], counts=(3,))


def test_weights_are_read_against_their_copies_and_their_versions_kept(kernel):
    weights, copies = [Tensor(3 * ones(3)), Tensor(ones(5))], [2 * ones(3), ones(5)]
    table, versions = table_of(3, 5, copies=copies), array("q", [-1, -1])
    for place, each in enumerate(weights):
        table[4 * place] = each.data_ptr()
    weights[1]._version = 7
    out = bytearray(96)

    assert kernel.are_as_read(weights, versions) is False
    assert kernel.read_weights(weights, versions, table, out) is True
    assert np.frombuffer(out).reshape(-1, 6)[:, 5].tolist() == [3.0, 0.0]
    assert copies[0].tolist() == [3.0, 3.0, 3.0]
    assert versions.tolist() == [0, 7]
    assert kernel.are_as_read(weights, versions) is True
    weights[0]._version += 1
    assert kernel.are_as_read(weights, versions) is False


def test_weights_that_went_elsewhere_are_not_read(kernel):
    weight, copy = Tensor(ones(3)), ones(3)
    versions, out = array("q", [-1]), bytearray(48)

    assert kernel.read_weights([weight], versions, table_of(3, copies=[copy]), out) is False
    assert versions.tolist() == [-1]
    assert not any(out)


@pytest.mark.parametrize("size", [0, 4, 12])
def test_the_first_bytes_are_copied(kernel, size):
    tensor = Tensor(np.arange(3, dtype=np.float32))

    assert kernel.bytes_of(tensor, F32, 3, size) == tensor.values.tobytes()[:size]
    assert kernel.bytes_of(tensor, "f64", 3, size) is None
    assert kernel.bytes_of(tensor, F32, 2, size) is None
    assert kernel.bytes_of(Tensor(ones(3), contiguous=False), F32, 3, size) is None
