"""Models that are mappings of arrays: read like files."""

import ml_dtypes
import numpy as np
import pytest
from strategies import DTYPES, NUMPY

from difflens.core.errors import ModelError
from difflens.diffs import story as pipeline
from difflens.models.opening import MemorySource

# What NumPy holds otherwise than a file does: F4 is packed in files, BOOL has its own type.
AS_ARRAYS = {
    name: np.dtype({"C64": "complex64", "BOOL": "bool"}.get(name, NUMPY[name]))
    for name in DTYPES
    if name != "F4"
}


@pytest.mark.parametrize("dtype", AS_ARRAYS)
def test_every_kind_of_number_is_known_by_its_name(dtype):
    array = np.ones((2, 3)).astype(AS_ARRAYS[dtype])
    source = MemorySource({"w": array})
    buffer = bytearray(source.tensors["w"].size_bytes)

    assert source.read_into("w", 0, len(buffer), memoryview(buffer)) == len(buffer)

    assert (source.tensors["w"].dtype, source.tensors["w"].shape) == (dtype, (2, 3))
    assert bytes(buffer) == array.tobytes()


@pytest.mark.parametrize(
    "array",
    [
        np.zeros(2, "complex128"),
        np.zeros(2, ">f4"),
        np.zeros(2, "U3"),
        np.zeros(2, "O"),
        np.zeros(2, "M8[s]"),
        np.zeros(2, ml_dtypes.int4),
        np.zeros(2, [("a", "f4")]),
        [1.0, 2.0],
        1.5,
        None,
        "text",
    ],
    ids=lambda array: str(getattr(array, "dtype", type(array).__name__)),
)
def test_what_cannot_be_compared_is_named_with_what_can(array):
    with pytest.raises(ModelError) as caught:
        pipeline.diff({"layer.w": array}, {})

    assert str(caught.value).startswith(("layer.w: an array of ", "layer.w: this is of type "))
    assert "float32" in caught.value.hint or "weights" in caught.value.hint


@pytest.mark.parametrize(
    "other",
    [
        np.asfortranarray,
        lambda array: np.repeat(array, 2, axis=0)[::2],
        lambda array: array[::-1][::-1],
        lambda array: np.pad(array, 1)[1:-1, 1:-1],
    ],
    ids=["fortran", "strided", "backwards", "a window"],
)
def test_the_layout_in_memory_does_not_matter(other):
    array = np.arange(12.0).reshape(3, 4)

    assert pipeline.diff({"w": array}, {"w": other(array)})["w"].kind == "identical"


def test_zero_dimensions_and_zero_elements():
    source = MemorySource({"scalar": np.float64(2), "empty": np.zeros((3, 0))})

    assert source.tensors["scalar"].shape == ()
    assert source.tensors["empty"].shape == (3, 0)


def test_names_become_text_and_may_not_collide():
    assert list(MemorySource({1: np.zeros(1)}).tensors) == ["1"]
    with pytest.raises(ModelError, match="two arrays have this name"):
        MemorySource({1: np.zeros(1), "1": np.ones(1)})


def test_the_arrays_are_not_touched():
    left, right = np.arange(5.0), np.arange(5.0) + 1
    left.setflags(write=False)
    before = left.copy(), right.copy()

    tuple(pipeline.diff({"w": left}, {"w": right}).deltas)

    assert (left == before[0]).all()
    assert (right == before[1]).all()
