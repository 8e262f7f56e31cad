"""Norms in numbers: quantiles of type 7, moments, and what was not finite."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some
from scipy import stats
from training.gradients.layer_cases import one

from difflens.training.gradients.health import statistics
from difflens.training.gradients.signals import signals_of_histories


def of(norms):
    return statistics(signals_of_histories({"layer": norms}).layers[0])


def test_quantiles_interpolate_between_order_statistics():
    """Vector 6; DC-20: the 95th percentile of few values is not their maximum."""
    found = of([1, 2, 3, 4])

    assert found.percentile_5 == pytest.approx(1.15)
    assert found.median == 2.5
    assert found.percentile_95 == pytest.approx(3.85)
    assert of(range(20)).percentile_95 < 19


@given(some.lists(some.floats(1e-3, 1e3), min_size=4, max_size=50))
def test_moments_are_those_of_scipy(norms):
    found = of(norms)

    assert found.mean == pytest.approx(np.mean(norms))
    assert found.std == pytest.approx(np.std(norms, ddof=1), abs=1e-9)
    assert found.variance == pytest.approx(np.var(norms, ddof=1), abs=1e-9)
    if found.std > 1e-6 * found.mean:
        assert found.skewness == pytest.approx(stats.skew(norms), rel=1e-6, abs=1e-6)
        assert found.kurtosis == pytest.approx(stats.kurtosis(norms), rel=1e-6, abs=1e-6)


def test_an_infinite_norm_is_counted_and_the_rest_is_still_measured():
    """DX-02, DC-19: the reference aborts on the first NaN."""
    found = of([1.0, np.nan, 2.0, np.inf, 3.0])

    assert (found.samples, found.nonfinite) == (3, 2)
    assert found.median == 2.0


def test_no_norm_at_all_is_null_with_a_reason():
    """DC-16, DX-03: an empty history has no mean of zero."""
    found = of([])

    assert found.mean is None
    assert found.samples == 0
    assert {"mean", "std", "median"} <= {each.field for each in found.missing}


def test_norms_that_do_not_vary_have_no_shape():
    found = of([2.0] * 9)

    assert found.std == 0
    assert found.skewness is None
    assert found.kurtosis is None


def test_the_largest_norms_do_not_overflow():
    found = of([1e300, 2e300, 3e300])

    assert found.mean == pytest.approx(2e300)
    assert found.std == pytest.approx(1e300)
    assert found.variance is None


@given(
    some.lists(some.floats(0, 1e300) | some.sampled_from([float("nan"), float("inf")]), max_size=30)
)
def test_every_null_has_its_reason_whatever_the_norms(norms):
    found = one(norms, depth="expert", convergence_window=10)

    for part in (found, found.gradient_statistics, found.flow_characteristics, found.recent_flow,
                 found.health_metrics, found.comparative_analysis):  # fmt: skip
        assert part.unexplained() == []
