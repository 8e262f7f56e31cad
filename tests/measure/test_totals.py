"""What a diff's deltas add up to."""

import math

import numpy as np
import pytest

from difflens import pipeline
from difflens.measure.totals import totals
from difflens.pairing import is_prefix_rename
from difflens.records import Totals


def added_up(left, right, **options) -> Totals:
    return totals(pipeline.diff(left, right, **options).deltas, is_prefix_rename)


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
    diff = pipeline.diff({"module.w": ONE}, {"w": ONE})

    assert totals(diff.deltas, lambda _: False).renamed_beyond_prefix == 1


def test_headers_alone_know_of_no_elements_that_changed():
    found = added_up({"w": ONE}, {"w": TWO}, shape_only=True)

    assert (found.paired, found.changed_elements, found.elements) == (1, None, 1)


def test_a_tied_head_is_tied_and_nothing_else():
    both = {"embed_tokens.weight": ONE, "lm_head.weight": ONE}

    found = added_up(both, {"embed_tokens.weight": ONE})

    assert (found.tied, found.identical, found.removed, found.renamed) == (1, 1, 0, 0)
