import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats
from simulation import replicates
from statsmodels.stats.proportion import confint_proportions_2indep, proportions_ztest

from difflens.stats.proportions import (
    agreeing,
    answers_of,
    apart_limits,
    as_flags,
    newcombe,
    newcombe_paired,
    paired_limits,
    wilson,
)


@st.composite
def counts(draw, largest=200):
    n = draw(st.integers(1, largest))
    return draw(st.integers(0, n)), n


def test_thirty_of_thirty_is_no_certainty():
    assert wilson(30, 30).low == pytest.approx(0.8865, abs=5e-5)
    assert wilson(30, 30).high == 1.0


@given(counts(), st.sampled_from([0.8, 0.95, 0.99]))
def test_wilsons_interval_agrees_with_scipy(pair, level):
    score = stats.binomtest(*pair).proportion_ci(level, "wilson")

    assert wilson(*pair, level)[1:3] == pytest.approx(tuple(score), abs=1e-9)


@pytest.mark.parametrize(("successes", "n"), [(1, 0), (-1, 3), (4, 3)])
def test_what_is_no_proportion_is_refused(successes, n):
    with pytest.raises(ValueError, match="are no proportion"):
        wilson(successes, n)


@given(counts(), counts())
def test_two_independent_ones_agree_with_statsmodels(left, right):
    assume(max(left[1], right[1]) > 30)
    found = newcombe(*left, *right)

    expected = confint_proportions_2indep(*right, *left, method="newcomb", compare="diff")
    assert (found.low, found.high) == pytest.approx(expected, abs=1e-9)
    pooled = (left[0] + right[0]) / (left[1] + right[1])
    if 0 < pooled < 1:
        z, p = proportions_ztest([right[0], left[0]], [right[1], left[1]])
        assert (found.statistic, found.p) == pytest.approx((z, p), abs=1e-9)
    else:
        assert (found.statistic, found.p) == (0.0, 1.0)


def test_small_ones_are_tested_exactly():
    found = newcombe(3, 10, 9, 10)

    expected = stats.boschloo_exact([[3, 9], [7, 1]]).pvalue
    assert found.p == pytest.approx(expected)
    assert found.method == "newcombe, boschloo"


def test_small_ones_that_are_equal_are_not_told_apart():
    assert newcombe(2, 4, 5, 10).p == 1.0


def answers(both, broke, fixed, neither):
    left = [1] * (both + broke) + [0] * (fixed + neither)
    right = [1] * both + [0] * broke + [1] * fixed + [0] * neither
    return left, right


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        ((36, 12, 2, 0), (0.0569, 0.3404)),
        ((20, 12, 2, 16), (0.0562, 0.3292)),
        ((18, 12, 2, 18), (0.0562, 0.3290)),
        ((36, 14, 0, 0), (0.1528, 0.4167)),
        ((35, 14, 0, 1), (0.1461, 0.4175)),
        ((18, 14, 0, 18), (0.1441, 0.3963)),
        ((2, 97, 1, 0), (0.8721, 0.9854)),
        ((1, 97, 1, 1), (0.8736, 0.9850)),
        ((0, 30, 0, 0), (0.8395, 1.0)),
        ((54, 0, 0, 0), (-0.0664, 0.0664)),
        ((30, 0, 0, 24), (-0.0358, 0.0358)),
    ],
)
def test_paired_ones_give_the_published_intervals(table, expected):
    """Newcombe (1998), table III: first minus second, where ours is second minus first."""
    found = newcombe_paired(*answers(*table))

    assert (-found.high, -found.low) == pytest.approx(expected, abs=1e-4)


def test_answers_against_each_other_bound_the_difference_too():
    found = newcombe_paired(*answers(1, 8, 8, 1))

    assert found.low < 0 < found.high
    assert found.p == pytest.approx(1.0)


@pytest.mark.parametrize(("flags", "text"), [([], "no values"), ([2], "answers are right")])
def test_what_is_neither_right_nor_wrong_is_refused(flags, text):
    with pytest.raises(ValueError, match=text):
        as_flags(flags, "left")


@replicates
def test_the_paired_interval_covers_where_questions_are_few(repeats):
    draw = np.random.default_rng(18)
    covered = 0
    for _ in range(repeats):
        kind = draw.choice(4, 40, p=[0.8, 0.05, 0.1, 0.05])
        found = newcombe_paired((kind == 0) | (kind == 1), (kind == 0) | (kind == 2))
        covered += found.low <= 0.05 <= found.high

    assert covered / repeats >= 0.94 - 3 * (0.05 * 0.95 / repeats) ** 0.5


@pytest.mark.parametrize("level", [0.8, 0.95, 0.99])
@given(st.tuples(*[st.integers(0, 30)] * 4).filter(any))
def test_p_and_interval_of_pairs_agree_at_every_level(level, table):
    flags = answers(*table)
    counts = answers_of(*flags)
    found = agreeing(newcombe_paired(*flags, level), lambda z: paired_limits(counts, z))

    assert counts == table
    assert (found.p < 1 - level) == (not found.low <= 0 <= found.high)
    assert found.p >= newcombe_paired(*flags, level).p


@given(counts(25), counts(25))
def test_p_and_interval_of_two_samples_agree(left, right):
    every = (*left, *right)
    found = agreeing(newcombe(*left, *right), lambda z: apart_limits(every, z))

    assert (found.p < 0.05) == (not found.low <= 0 <= found.high)
