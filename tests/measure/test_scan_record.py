"""The figures of a pair, against NumPy in float64 and against what is known on paper."""

import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from scipy import stats as statistics

from difflens.core.records import Delta
from difflens.diffs import story as pipeline
from difflens.measure import Scan


def measured(left: Any, right: Any, **options: Any) -> Delta:
    return pipeline.diff({"w": left}, {"w": right}, **options)["w"]


@pytest.fixture
def gaussian():
    return (0.02 * np.random.default_rng(14).standard_normal((1024, 1024))).astype("float32")


@pytest.fixture
def moved(gaussian):
    noise = np.random.default_rng(15).standard_normal(gaussian.shape)
    return (gaussian + 0.001 * noise + 0.0005).astype("float32")


class TestAgainstNumpy:
    def test_distances_and_angles(self, gaussian, moved):
        a, b = gaussian.astype("float64").ravel(), moved.astype("float64").ravel()
        delta = measured(gaussian, moved)

        l2 = np.linalg.norm(b - a)
        expected = {
            "l2": l2,
            "relative_l2": l2 / np.linalg.norm(a),
            "symmetric_l2": l2 / (np.linalg.norm(a) + np.linalg.norm(b)),
            "cosine": a @ b / np.linalg.norm(a) / np.linalg.norm(b),
            "pearson": np.corrcoef(a, b)[0, 1],
            "sqnr_db": 10 * np.log10((a @ a) / l2**2),
            "mean_abs": np.abs(b - a).mean(),
        }
        for name, value in expected.items():
            assert getattr(delta, name) == pytest.approx(value, rel=1e-10), name
        assert delta.max_abs == np.abs(b - a).max()

    def test_counts(self, gaussian, moved):
        right = np.where(np.arange(gaussian.size).reshape(gaussian.shape) % 3 == 0, moved, gaussian)
        delta = measured(gaussian, right, epsilon=0.001)

        difference = np.abs(right.astype("float64") - gaussian)
        same = int((gaussian.view("u4") == right.view("u4")).sum())
        assert delta.bit_equal_count == same
        assert delta.changed_count == gaussian.size - same
        assert delta.changed_fraction == delta.changed_count / gaussian.size
        assert delta.over_epsilon_count == int((difference > 0.001).sum())
        assert delta.sign_flips == int(((gaussian < 0) != (right < 0)).sum())

    def test_each_side_alone(self, gaussian, moved):
        delta = measured(gaussian, moved)

        for side, array in (("left", gaussian), ("right", moved)):
            found, values = delta.stats(side), array.astype("float64").ravel()
            assert found.mean == pytest.approx(values.mean(), rel=1e-9, abs=1e-15)
            assert found.std == pytest.approx(values.std(), rel=1e-12)
            assert (found.min, found.max) == (values.min(), values.max())
            assert found.mean_abs == pytest.approx(np.abs(values).mean(), rel=1e-12)
            assert found.skewness == pytest.approx(statistics.skew(values), rel=1e-6, abs=1e-9)
            kurtosis = statistics.kurtosis(values, fisher=False)
            assert found.kurtosis == pytest.approx(kurtosis, rel=1e-9)

    @pytest.mark.parametrize("offset", [1e4, 1e8])
    def test_a_large_offset_costs_no_digits_of_the_deviation(self, offset):
        random = np.random.default_rng(3)
        left = offset + random.standard_normal(10_000)
        right = left + 0.01 * random.standard_normal(10_000)
        delta = measured(left, right)

        assert delta.stats("left").std == pytest.approx(left.std(), rel=1e-7)
        assert delta.pearson == pytest.approx(np.corrcoef(left, right)[0, 1], rel=1e-7)
        assert delta.l2 == pytest.approx(np.linalg.norm(right - left), rel=1e-7)


class TestKnownOnPaper:
    def test_a_tenth_more_of_everything(self, gaussian):
        """G2: relative_l2 0.1, cosine 1, 20 dB."""
        delta = measured(gaussian.astype("float64"), gaussian.astype("float64") * 1.1)

        assert delta.relative_l2 == pytest.approx(0.1, rel=1e-9)
        assert delta.cosine == pytest.approx(1, abs=1e-12)
        assert delta.sqnr_db == pytest.approx(20, abs=1e-6)
        assert delta.sign_flips == 0
        assert not delta.within_storage_rounding

    def test_bfloat16_costs_a_gaussian_55_6_decibels(self, gaussian):
        """G4."""
        delta = measured(gaussian, gaussian.astype(ml_dtypes.bfloat16))

        assert delta.kind == "recast"
        assert delta.sqnr_db == pytest.approx(55.6, abs=0.1)
        assert delta.within_storage_rounding

    def test_two_steps_of_bfloat16_are_more_than_storage_rounding(self, gaussian):
        half = gaussian.astype(ml_dtypes.bfloat16)
        off = (half.view("u2") + 1).view(ml_dtypes.bfloat16)

        assert not measured(gaussian, off).within_storage_rounding

    def test_signs_flip_as_often_as_the_angle_says(self):
        """Of two Gaussians with correlation rho, arccos(rho) / pi have other signs."""
        random = np.random.default_rng(9)
        left, noise = random.standard_normal((2, 1_000_000))
        right = 0.9 * left + math.sqrt(1 - 0.81) * noise
        delta = measured(left, right)

        assert delta.sign_flips / left.size == pytest.approx(0.1436, abs=0.0015)
        assert delta.pearson == pytest.approx(0.9, abs=0.002)

    def test_rows_in_another_order_are_the_same_values_far_apart(self, gaussian):
        """G3."""
        delta = measured(gaussian, gaussian[::-1].copy())

        left, right = delta.stats("left"), delta.stats("right")
        assert (left.min, left.max, left.zeros) == (right.min, right.max, right.zeros)
        assert left.std == pytest.approx(right.std, rel=1e-12)
        assert delta.relative_l2 == pytest.approx(math.sqrt(2), abs=0.01)


class TestWhereTheLargestMoveIs:
    def test_in_the_coordinates_of_the_tensor(self):
        left = np.zeros((2, 3, 4), "float32")
        right = left.copy()
        right[1, 2, 3], right[0, 1, 2] = 5, -6

        assert measured(left, right).max_abs_index == (0, 1, 2)

    def test_the_first_of_equals(self):
        assert measured(np.zeros(4), np.array([0, 1, -1, 1.0])).max_abs_index == (1,)

    def test_of_complex_numbers_too(self):
        left = np.zeros((3, 4), "complex64")
        right = left.copy()
        right[2, 1] = 3j

        delta = measured(left, right)

        assert (delta.max_abs, delta.max_abs_index) == (3, (2, 1))

    def test_of_a_scalar_it_is_no_coordinate(self):
        assert measured(np.float32(1), np.float32(2)).max_abs_index == ()

    def test_nowhere_where_nothing_moved(self):
        assert measured(np.array([0.0]), np.array([-0.0])).max_abs_index is None

    def test_beyond_the_first_chunk(self, cut):
        cut(4, 8)
        left = np.zeros((5, 7))
        right = left.copy()
        right[4, 5] = 1

        assert measured(left, right).max_abs_index == (4, 5)


class TestWhatCannotBeKnown:
    def test_relative_to_nothing(self):
        delta = measured(np.zeros(3), np.ones(3))

        assert (delta.relative_l2, delta.cosine, delta.sqnr_db) == (None, None, None)
        assert delta.l2 == pytest.approx(math.sqrt(3))
        assert delta.symmetric_l2 == 1

    def test_constants_have_no_correlation(self):
        assert measured(np.ones(3), np.full(3, 2.0)).pearson is None

    def test_only_finite_pairs_weigh(self):
        left = np.array([1.0, np.nan, np.inf, 4])
        right = np.array([2.0, 1, np.inf, 4])
        delta = measured(left, right)

        assert (delta.left_nonfinite, delta.right_nonfinite) == (2, 1)
        assert (delta.l2, delta.max_abs, delta.mean_abs) == (1, 1, 0.5)
        assert (delta.changed_count, delta.bit_equal_count) == (2, 2)
        assert delta.stats("left").mean == 2.5

    def test_nothing_finite(self):
        delta = measured(np.full(2, np.nan), np.full(2, np.inf))

        assert [delta.l2, delta.max_abs, delta.mean_abs, delta.relative_l2] == [None] * 4
        assert delta.stats("right").mean is None
        assert delta.stats("right").positive_infinite == 2

    def test_numbers_too_large_to_square_are_unknown_not_infinite(self):
        big = np.array([1e300, -1e300])
        delta = measured(big, -big)

        for name in ("relative_l2", "l2", "cosine", "sqnr_db"):
            value = getattr(delta, name)
            assert value is None or math.isfinite(value)
        assert delta.max_abs == 2e300

    def test_an_empty_scan_has_figures(self):
        assert Scan().changed == 0
        assert Scan().relative_l2 is None
        assert Scan() + Scan() == Scan()
