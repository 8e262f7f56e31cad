import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from simulation import near, replicates

from difflens.stats.comparison import Comparison
from difflens.stats.decision import probability_fixes_prevail, probability_worse
from difflens.stats.paired import paired


@given(st.lists(st.integers(-9, 9), min_size=3, max_size=9).filter(lambda x: len(set(x)) > 1))
def test_worse_in_one_direction_is_better_in_the_other(moves):
    found = paired([0.0] * len(moves), moves)

    up, down = probability_worse(found, "higher"), probability_worse(found, "lower")
    assert up + down == pytest.approx(1.0)


def test_it_is_half_of_the_two_sided_p_on_the_worse_side():
    found = paired([0.0] * 5, [1.0, 2.0, 3.0, 1.0, 2.0])

    assert probability_worse(found, "higher") == pytest.approx(found.p / 2)


def test_a_larger_drop_is_less_likely():
    found = paired([0.0] * 5, [-1.0, -2.0, -3.0, 1.0, 2.0])

    drops = [probability_worse(found, "higher", margin) for margin in (0.0, 0.5, 2.0)]
    assert drops == sorted(drops, reverse=True)


def test_without_a_standard_error_there_is_no_posterior():
    bare = Comparison(1.0, 0.0, 2.0, 0.95, None, "bootstrap", 9, 9)

    assert probability_worse(bare, "higher") is None


@given(st.integers(0, 50), st.integers(0, 50))
def test_fixes_and_breaks_are_treated_alike(broke, fixed):
    ours, others = probability_fixes_prevail(broke, fixed), probability_fixes_prevail(fixed, broke)

    assert ours + others == pytest.approx(1.0)
    assert (ours > 0.5 + 1e-12) == (fixed > broke)


def test_it_agrees_with_draws_from_the_dirichlet():
    draws = np.random.default_rng(45).dirichlet([81, 5, 10, 9], 200_000)

    expected = (draws[:, 2] > draws[:, 1]).mean()
    assert probability_fixes_prevail(4, 9) == pytest.approx(expected, abs=0.004)


def test_counts_below_zero_are_refused():
    with pytest.raises(ValueError, match="no counts"):
        probability_fixes_prevail(-1, 2)


@replicates
def test_where_nothing_changed_the_probability_is_uniform(repeats):
    draw = np.random.default_rng(46)
    found = [
        probability_worse(paired(*draw.normal(size=(2, 12))), "higher") for _ in range(repeats)
    ]

    assert near(np.mean(np.array(found) < 0.3), 0.3, repeats)
