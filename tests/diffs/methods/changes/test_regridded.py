"""Names where the left lies on a grid already, as the floats of a model that was quantised do."""

import numpy as np
import pytest
from diffs.analyses.small import changed, nudged

from .test_less_usual import asymmetric, symmetric
from .test_names import BF16, MODEL, adapted, answer, by_group, drawn, kinds


def by_rows(value):
    return by_group(value, None, symmetric(8))


LEFT = changed(MODEL, by_rows, "proj.weight")


@pytest.mark.parametrize(
    ("onto", "bits", "size", "dtype"),
    [
        (symmetric(4), 4, 32, np.float32),
        (symmetric(8), 8, 32, np.float16),
        (asymmetric(4), 4, 48, np.float16),
        (asymmetric(2), 2, 16, np.float32),
        (symmetric(3), 3, 48, np.float32),
    ],
)
def test_a_second_grid_is_named_whatever_the_first_was(onto, bits, size, dtype):
    left = {name: value.astype(dtype) for name, value in LEFT.items()}
    right = changed(left, lambda v: by_group(v, size, onto), "mlp")

    (record,) = answer(left, right)["changes"]

    assert record["kind"] == "quantised"
    assert (record["numbers"]["bits"], record["numbers"]["group"]) == (bits, size)
    assert record["tensors"] == 9


def noisy(value):
    random = np.random.default_rng(value.size)
    return value + random.normal(0, 0.08 * value.std(), value.shape)


@pytest.mark.parametrize(
    ("edit", "name"),
    [(noisy, "noise"), (drawn, "reinitialised"), (nudged, "trained"), (adapted(4), "low_rank")],
)
@pytest.mark.parametrize("dtype", [np.float32, BF16])
def test_other_values_on_top_of_a_grid_are_no_way_back_from_it(edit, name, dtype):
    left = {key: value.astype(dtype) for key, value in LEFT.items()}

    assert kinds(left, changed(left, edit, "mlp.up_proj", "mlp.down_proj")) == [name]


def test_the_floats_before_a_grid_of_rows_are_named_as_such():
    assert kinds(LEFT, MODEL) == ["dequantised"]
