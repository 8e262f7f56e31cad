"""Derived tensors: what a recipe makes is what numpy makes of the whole array."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from difflens.core.records import Recipe, TensorInfo
from difflens.models import computed
from difflens.models.computed import Derived
from difflens.models.opening import MemorySource


def made(array: Any, shape: tuple[int, ...], recipe: Recipe, dtype: str = "F32") -> Derived:
    return Derived(
        MemorySource({"base": array}), {"new": (TensorInfo("new", dtype, shape), recipe)}
    )


def whole(source: Derived, cuts: list[int]) -> bytes:
    size = source.tensors["new"].size_bytes
    edges = sorted({0, size, *(cut % (size + 1) for cut in cuts)})
    parts = []
    for start, stop in pairwise(edges):
        part = bytearray(stop - start)
        assert source.read_into("new", start, stop, memoryview(part)) == stop - start
        parts.append(bytes(part))
    return b"".join(parts)


@given(
    spans=st.lists(st.tuples(st.integers(0, 7), st.integers(1, 2)), min_size=1, max_size=6),
    cuts=st.lists(st.integers(0, 1000), max_size=5),
)
def test_rows_come_in_the_order_of_the_recipe(spans, cuts):
    array = np.arange(9 * 5, dtype=np.float32).reshape(9, 5)
    wanted = np.concatenate([array[first : first + count] for first, count in spans])
    source = made(array, wanted.shape, Recipe("base", rows=tuple(spans)))

    assert whole(source, cuts) == wanted.tobytes()


@given(cuts=st.lists(st.integers(0, 1000), max_size=5), strip=st.sampled_from([1, 50, 64, 10**6]))
def test_a_transposed_tensor_is_made_strip_by_strip(cuts, strip):
    array = np.arange(7 * 11, dtype=np.float32).reshape(7, 11)
    source = made(array, (11, 7), Recipe("base", transposed=True))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(computed, "_TURNED_STRIP", strip)
        assert whole(source, cuts) == array.T.tobytes()


def test_rows_of_a_transposed_tensor_can_be_picked():
    array = np.arange(4 * 6, dtype=np.float64).reshape(4, 6)
    recipe = Recipe("base", rows=((4, 2), (0, 1)), transposed=True)

    assert whole(made(array, (3, 4), recipe, "F64"), [9]) == array.T[[4, 5, 0]].tobytes()


def test_a_shift_is_rounded_in_the_tensors_own_type():
    array = np.array([0.1, -0.5, 3.0], np.float32)

    shifted = whole(made(array, (3,), Recipe("base", add=1.0)), [4])

    assert shifted == (array + np.float32(1)).tobytes()


def test_what_no_recipe_names_is_read_as_it_is():
    source = made(np.ones(3, np.float32), (3,), Recipe("base"))
    buffer = bytearray(12)

    assert source.read_into("base", 0, 12, memoryview(buffer)) == 12
    assert buffer == np.ones(3, np.float32).tobytes()
