"""One gradient in a few numbers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from difflens.core.errors import RunError
from difflens.training.flow.states import NOTHING, reading

finite = st.floats(allow_nan=False, allow_infinity=False, width=32)


@given(st.lists(finite, min_size=1, max_size=40))
def test_sizes_are_those_of_numpy(values):
    array = np.array(values)
    found = reading("w", values)

    assert found.max_abs == np.abs(array).max()
    assert found.mean_abs == pytest.approx(np.abs(array).mean(), rel=1e-12)
    assert found.norm == pytest.approx(np.linalg.norm(array), rel=1e-12)
    assert (found.elements, found.zeros) == (len(values), (array == 0).sum())


@given(st.lists(st.floats(), min_size=1, max_size=40))
def test_what_is_not_finite_is_counted_and_the_rest_measured(values):
    array = np.array(values)
    kept = np.abs(array[np.isfinite(array)])

    found = reading("w", values)

    assert found.non_finite == (~np.isfinite(array)).sum()
    assert np.array_equal(found.max_abs, kept.max() if kept.size else np.nan, equal_nan=True)
    assert not np.isinf(found.norm)


@pytest.mark.parametrize("size", [1e-300, 1e300])
def test_a_norm_is_not_lost_to_its_own_square(size):
    assert reading("w", [3 * size, 4 * size]).norm == pytest.approx(5 * size)


@pytest.mark.parametrize("nothing", [None, [], np.zeros((0, 3))])
def test_no_gradient_is_not_a_gradient_of_zero(nothing):
    assert np.array_equal(reading("w", nothing), NOTHING, equal_nan=True)
    assert reading("w", [0.0]).elements == 1


def test_values_below_the_least_normal_number_of_their_own_type_are_counted():
    tiny = np.array([1e-6, 1e-6, 0.0, 1.0])

    assert reading("w", tiny.astype(np.float16)).underflow == pytest.approx(2 / 3)
    assert reading("w", tiny.astype(np.float32)).underflow == 0


@pytest.mark.parametrize("given_", [["a"], [[1, 2], [3]], object()])
def test_what_is_no_array_of_numbers_is_refused_by_layer(given_):
    with pytest.raises(RunError, match="layer 'w': its values are no array of numbers"):
        reading("w", given_)


class Tensor:
    """What a tensor of another framework looks like from here."""

    dtype = "torch.bfloat16"
    is_sparse = True

    def __init__(self, *done: str) -> None:
        self.done = done

    def __getattr__(self, name: str) -> object:
        if name not in {"to_dense", "detach", "cpu", "float"}:
            raise AttributeError(name)
        return lambda: np.ones(4) if name == "float" else Tensor(*self.done, name)


def test_a_tensor_is_fetched_without_its_framework():
    assert reading("w", Tensor()).norm == 2


def test_tensors_of_torch_are_read_as_they_come():
    torch = pytest.importorskip("torch")
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        values = torch.full((3, 3), 2.0, dtype=dtype, requires_grad=True)
        assert reading("w", values).norm == 6


def test_the_norm_of_weights_stands_beside():
    assert reading("w", [1.0], [3.0, 4.0]).weight_norm == 5
    assert np.isnan(reading("w", [1.0], [np.nan]).weight_norm)
