"""What a diff's deltas add up to."""

import math

import numpy as np
import pytest

from difflens.core.records import Totals
from difflens.diffs import story as pipeline


def added_up(left, right, **options) -> Totals:
    return pipeline.report(pipeline.diff(left, right, **options)).totals


ONE, TWO = np.array([1.0]), np.array([2.0])


def test_nothing_adds_up_to_nothing():
    assert added_up({}, {}) == Totals(changed_elements=0)


def test_every_kind_is_counted():
    found = added_up(
        {"same": ONE, "moved": ONE, "shaped": ONE, "gone": ONE, "cast": ONE, "near": ONE},
        {"same": ONE, "moved": TWO, "shaped": np.ones(2), "new": ONE,
         "cast": ONE.astype("float32"), "near": ONE + 0.1},
        epsilon=0.5,
    )  # fmt: skip

    assert found.tensors == 7
    assert (found.identical, found.changed, found.reshaped, found.recast) == (1, 1, 1, 1)
    assert (found.added, found.removed, found.within_epsilon) == (1, 1, 1)
    assert (found.elements, found.changed_elements) == (8, 2)


def test_the_distance_is_over_all_float_tensors_that_changed():
    left = {"a": np.array([3.0, 4]), "b": np.array([0.0, 12]), "same": np.full(9, 100.0)}
    right = {"a": np.array([3.0, 6]), "b": np.array([1.0, 12]), "same": np.full(9, 100.0)}

    found = added_up(left, right)

    assert found.relative_l2 == pytest.approx(math.sqrt((4 + 1) / (25 + 144)))
    assert found.median_relative_l2 == pytest.approx((2 / 5 + 1 / 12) / 2)


def test_integers_count_but_have_no_distance():
    found = added_up({"ids": np.array([1, 2])}, {"ids": np.array([1, 3])})

    assert (found.changed, found.changed_elements) == (1, 1)
    assert (found.relative_l2, found.median_relative_l2) == (None, None)


def test_a_tensor_that_was_all_zeros_makes_the_distance_unknown_not_infinite():
    assert added_up({"w": np.zeros(2)}, {"w": np.ones(2)}).relative_l2 is None


def test_a_prefix_is_a_rename_and_none_beyond():
    found = added_up({"module.w": ONE}, {"w": ONE})

    assert (found.renamed, found.renamed_beyond_prefix, found.identical) == (1, 0, 1)


def test_a_rename_of_another_kind_is_beyond():
    values = np.arange(20.0)

    assert added_up({"a": values}, {"b": values}).renamed_beyond_prefix == 1


def test_headers_alone_know_of_no_elements_that_changed():
    found = added_up({"w": ONE}, {"w": TWO}, shape_only=True)

    assert (found.paired, found.changed_elements, found.elements) == (1, None, 1)


def test_a_tied_head_is_tied_and_nothing_else():
    both = {"embed_tokens.weight": ONE, "lm_head.weight": ONE}

    found = added_up(both, {"embed_tokens.weight": ONE})

    assert (found.tied, found.identical, found.removed, found.renamed) == (1, 1, 0, 0)


def test_one_small_tensor_that_moved_is_not_the_whole_model():
    """One bias of 384 values redrawn read as a relative L2 of 1.4 of 22.7M parameters."""
    random = np.random.default_rng(0)
    left = {"bias": random.standard_normal(4), "w": random.standard_normal((50, 50))}
    right = left | {"bias": random.standard_normal(4)}
    distance = np.linalg.norm(right["bias"] - left["bias"])
    size = math.hypot(*(float(np.linalg.norm(each)) for each in left.values()))

    cheap = added_up(left, right)
    measured = added_up(left, right, always=True)

    assert (cheap.moved, cheap.compared) == (1, 2)
    assert cheap.relative_l2 == pytest.approx(distance / np.linalg.norm(left["bias"]))
    assert cheap.whole_relative_l2 is None
    assert measured.whole_relative_l2 == pytest.approx(distance / size)
    assert measured.relative_l2 == cheap.relative_l2


def test_the_whole_is_known_for_free_where_every_tensor_moved():
    found = added_up({"a": ONE, "ids": np.array([1])}, {"a": TWO, "ids": np.array([1])})

    assert found.whole_relative_l2 == found.relative_l2 == 1


def test_nothing_comparable_has_no_distance():
    found = added_up({"a": ONE, "b": np.ones(3)}, {"b": np.ones(2), "c": ONE * 3}, always=True)

    assert (found.compared, found.moved) == (0, 0)
    assert (found.relative_l2, found.whole_relative_l2, found.median_relative_l2) == (None,) * 3
