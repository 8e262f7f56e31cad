import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from simulation import near, replicates
from statsmodels.stats.power import TTestIndPower, TTestPower

from difflens.stats.effect import minimal_difference, sample_size, t_power
from difflens.stats.means import welch


def test_cohens_sizes_are_rounded_up():
    assert [sample_size(effect) for effect in (0.2, 0.5, 0.8)] == [394, 64, 26]


@given(st.floats(0.1, 2), st.floats(3, 200), st.floats(3, 200), st.sampled_from([0.01, 0.05]))
def test_power_agrees_with_statsmodels(effect, left, right, alpha):
    expected = TTestIndPower().power(effect, left, alpha, ratio=right / left)
    alone = TTestPower().power(effect, left, alpha)

    assume(np.isfinite(expected + alone))  # theirs is NaN far out
    assert t_power(effect, left, right, alpha=alpha) == pytest.approx(expected, abs=1e-6)
    assert t_power(-effect, left, 0, alpha=alpha, paired=True) == pytest.approx(alone, abs=1e-6)


@given(st.floats(0.05, 3), st.booleans())
def test_the_size_is_the_smallest_that_has_the_power(effect, paired):
    n = sample_size(effect, paired=paired)

    assert t_power(effect, n, n, paired=paired) >= 0.8 - 1e-9
    assert n == 2 or t_power(effect, n - 1, n - 1, paired=paired) < 0.8


def test_huge_effects_need_two_values():
    assert sample_size(1e3) == 2


def test_the_minimal_difference_is_in_units_of_the_standard_error():
    assert minimal_difference(0.5) == pytest.approx(0.5 * 2.8015852)
    assert minimal_difference(0.5, df=5) > minimal_difference(0.5)


@pytest.mark.parametrize(
    "call",
    [
        lambda: sample_size(0.0),
        lambda: sample_size(float("inf")),
        lambda: sample_size(0.5, power=0.05),
        lambda: sample_size(0.5, alpha=0),
    ],
)
def test_what_cannot_be_planned_is_refused(call):
    with pytest.raises(ValueError, match=r"zero|between|no more than"):
        call()


@replicates
def test_the_planned_power_is_reached(repeats):
    draw = np.random.default_rng(31)
    n = sample_size(0.8)
    found = sum(
        welch(draw.normal(size=n), draw.normal(0.8, 1, n)).p <= 0.05 for _ in range(repeats)
    )

    assert near(found / repeats, 0.8, repeats, slack=0.01)
