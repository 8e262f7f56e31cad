import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from difflens.stats.effect import below_noncentral, noncentral_interval

levels = st.sampled_from([0.8, 0.95, 0.99])


# The library's own law, the oracle here, is NaN for a t of 1e-123.
ordinary = st.floats(-30, 30).filter(lambda t: t == 0 or abs(t) > 1e-9)


@pytest.mark.parametrize("t", [0.0, 1.4426914639303476e-123, -5e-324])
@pytest.mark.parametrize("noncentrality", [-1.2, 0.0, 1.0])
def test_at_zero_and_next_to_it_the_law_is_the_normal_one(t, noncentrality):
    assert below_noncentral(t, 1, noncentrality) == pytest.approx(stats.norm.cdf(-noncentrality))


@given(ordinary, st.integers(1, 500), levels)
def test_the_ends_of_the_interval_make_t_exactly_too_large_and_too_small(t, df, level):
    low, high = noncentral_interval(t, df, level)

    assert stats.nct.cdf(t, df, low) == pytest.approx((1 + level) / 2, abs=1e-6)
    assert stats.nct.cdf(t, df, high) == pytest.approx((1 - level) / 2, abs=1e-6)


@given(st.floats(-1e6, 1e6), st.floats(1, 1e5), levels)
def test_every_t_has_an_interval_and_its_mirror_image(t, df, level):
    low, high = noncentral_interval(t, df, level)

    assert low < high
    assert np.isfinite([low, high]).all()
    turned = noncentral_interval(-t, df, level)
    assert turned == pytest.approx((-high, -low), rel=1e-6, abs=1e-6)


@given(st.floats(1, 1e4), st.floats(-50, 50), st.floats(-50, 50))
def test_it_agrees_with_an_integral_everywhere(df, t, noncentrality):
    """P(T <= t) = E Φ(t·s - δ), s the root of a chi-square over its degrees of freedom."""
    parts = (np.arange(4000) + 0.5) / 4000
    spread = np.sqrt(stats.chi2.ppf(parts, df) / df)

    expected = stats.norm.cdf(t * spread - noncentrality).mean()
    assert below_noncentral(t, df, noncentrality) == pytest.approx(expected, abs=2e-3)


@pytest.mark.parametrize(("noncentrality", "expected"), [(-13.39, 1.0), (60.0, 0.0)])
def test_far_tails_are_numbers(noncentrality, expected):
    assert below_noncentral(17.0, 1.0, noncentrality) == pytest.approx(expected, abs=1e-3)
