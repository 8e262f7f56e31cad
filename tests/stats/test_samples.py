import numpy as np
import pytest

from difflens.stats.samples import pairs, probability, sample, variance


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ([], "left holds no values"),
        ([[1.0]], "left has 2 dimensions"),
        ([1.0, float("nan"), float("inf")], "left holds 2 values that are not finite"),
        ([1e200], r"left holds values beyond 1e\+150"),
    ],
)
def test_what_cannot_be_averaged_is_refused_with_its_reason(values, text):
    with pytest.raises(ValueError, match=text):
        sample(values, "left")


def test_pairs_of_unequal_length_are_refused():
    with pytest.raises(ValueError, match="left has 1 values, right 2"):
        pairs([1.0], [1.0, 2.0])


def test_a_spread_that_is_rounding_alone_counts_as_none():
    thirds = np.array([0.1 + 0.2, 0.3])

    assert variance(thirds) == 0.0
    assert variance(np.array([0.3, 0.4])) == pytest.approx(0.005)


def test_the_rounding_of_differences_is_measured_against_what_was_subtracted():
    left = np.array([1.1, 1000 / 3, 2000 / 3])
    moves = (left + 0.1) - left

    assert variance(moves) > 0
    assert variance(moves, magnitude=667.0) == 0.0


@pytest.mark.parametrize("value", [0, 1, -0.1, float("nan")])
def test_a_level_outside_zero_and_one_is_refused(value):
    with pytest.raises(ValueError, match=r"level is .*, it must lie between 0 and 1"):
        probability(value, "level")
