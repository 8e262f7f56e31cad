import numpy as np
import pytest
from simulation import near, replicates

from difflens.stats.seeds import two_level_bootstrap


def trained(draw, seeds, mean=0.0):
    """Scores of a recipe: each seed has luck of its own, each question noise."""
    return mean + draw.normal(0, 0.5, (seeds, 1)) + draw.normal(0, 1.0, (seeds, 50))


def test_the_difference_is_that_of_the_means_over_all():
    draw = np.random.default_rng(40)
    left, right = trained(draw, 6), trained(draw, 5, 1.0)
    found = two_level_bootstrap(left, right, resamples=400)

    assert found.value == pytest.approx(right.mean() - left.mean())
    assert found.low < found.value < found.high
    assert found.note == ""


def test_swapping_the_recipes_turns_the_interval_around():
    draw = np.random.default_rng(41)
    left, right = trained(draw, 6), trained(draw, 6, 1.0)
    found, turned = two_level_bootstrap(left, right), two_level_bootstrap(right, left)

    assert found.value == -turned.value
    assert (found.low, found.high) == pytest.approx((-turned.high, -turned.low), abs=0.05)


def test_the_luck_of_seeds_widens_the_interval():
    draw = np.random.default_rng(42)
    left, right = trained(draw, 8), trained(draw, 8)
    both = two_level_bootstrap(left, right, resamples=999)

    questions_alone = two_level_bootstrap([left.mean(axis=0)], [right.mean(axis=0)], resamples=999)
    assert both.standard_error > 1.5 * questions_alone.standard_error


@pytest.mark.parametrize(
    ("seeds", "note"), [(1, "not of the recipes"), (3, "fewer than 5 seeds"), (5, "")]
)
def test_few_seeds_limit_what_can_be_said(seeds, note):
    draw = np.random.default_rng(43)
    found = two_level_bootstrap(trained(draw, seeds), trained(draw, 9), resamples=50)

    assert note in found.note


def test_one_question_cannot_be_resampled():
    found = two_level_bootstrap([[1.0], [2.0]], [[3.0], [4.0]])

    assert (found.value, found.low) == (2.0, None)


def test_many_resamples_are_drawn_in_batches(monkeypatch):
    draw = np.random.default_rng(48)
    left, right = trained(draw, 6), trained(draw, 6)
    whole = two_level_bootstrap(left, right, resamples=4000)
    monkeypatch.setattr("difflens.stats.seeds._AT_ONCE", 5000)
    batches = two_level_bootstrap(left, right, resamples=4000)

    assert (batches.low, batches.high) == pytest.approx((whole.low, whole.high), abs=0.06)
    assert batches.resamples == whole.resamples


@pytest.mark.parametrize(
    ("left", "right", "text"),
    [
        ([], [[1.0, 2.0]], "left holds no seeds"),
        ([[1.0, 2.0], [1.0]], [[1.0, 2.0]], "different numbers of questions"),
        ([[1.0, 2.0]], [[1.0]], "left has 2 questions, right 1"),
    ],
)
def test_tables_that_do_not_fit_are_refused(left, right, text):
    with pytest.raises(ValueError, match=text):
        two_level_bootstrap(left, right)


@replicates
def test_two_recipes_of_the_same_quality_are_seldom_told_apart(repeats):
    draw = np.random.default_rng(44)
    alarms = 0
    for _ in range(repeats):
        found = two_level_bootstrap(trained(draw, 10), trained(draw, 10), resamples=199)
        alarms += not found.low <= 0 <= found.high

    assert near(alarms / repeats, 0.05, repeats, slack=0.02)
