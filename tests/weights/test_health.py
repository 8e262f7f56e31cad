"""The health score: the share of parameters in tensors without an issue, and what it is not."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from difflens.weight_results import DistributionHealthStatus
from difflens.weights.analyzer import WeightAnalyzer

FINE = np.random.default_rng(0).normal(0, 0.1, size=(10, 100))


def health(layers):
    return WeightAnalyzer().analyze_weight_distribution(layers)


@given(st.integers(0, 5), st.integers(0, 5))
def test_the_score_is_the_share_of_parameters_in_tensors_without_an_issue(fine, bad):
    layers = [FINE] * fine + [np.zeros((5, 100))] * bad

    found = health(layers).health

    if not layers:
        assert found.score is None
        return
    assert found.score == pytest.approx(100 * fine * 1000 / (fine * 1000 + bad * 500))
    assert sum(each.points for each in found.deductions) == pytest.approx(100 - found.score)
    assert len(found.deductions) == bad


@pytest.mark.parametrize("layers", [[], {}, [np.empty((0, 3))]])
def test_nothing_to_look_at_is_unknown_not_excellent(layers):
    """DB-12: no layers were Excellent."""
    told = health(layers).distribution_health

    assert told.status == DistributionHealthStatus.UNKNOWN
    assert told.score is None
    assert [each.field for each in told.missing] == ["score"]


def test_nan_is_critical_however_small_its_tensor():
    """DB-12: statistics that are NaN failed every comparison, and gave 100, Excellent."""
    found = health({"big": FINE, "small": [np.nan]})

    assert found.distribution_health.status == DistributionHealthStatus.CRITICAL
    assert found.health.score > 99
    assert found.health.issues[0].code == "non_finite"
    assert found.layer_analyses[1].health_score == 0


@pytest.mark.parametrize(
    ("bad", "status"),
    [(0, "Excellent"), (10, "Excellent"), (20, "Good"), (35, "Fair"), (55, "Poor"),
     (70, "Critical")],
)  # fmt: skip
def test_every_status_has_its_band(bad, status):
    """DX-10."""
    layers = [np.full((1, 10), 0.5) for _ in range(bad)] + [FINE[:1, :10]] * (100 - bad)

    assert health(layers).distribution_health.status.value == status


def test_the_health_of_weights_is_made_with_advice_and_explained():
    """DB-19: the record was never made."""
    found = health({"a": FINE, "b": np.zeros((5, 100)), "c": np.zeros(7)}).health

    (deduction,) = found.deductions
    assert (deduction.name, deduction.parameters) == ("b", 500)
    assert [code.value for code in deduction.codes] == ["all_zero"]
    assert len(found.recommendations) == 1
    assert {each.severity for each in found.issues} == {"high", "info"}


def test_the_worst_issue_comes_first():
    found = health({"a": np.zeros((5, 5)), "b": FINE * 1000, "c": [np.inf, 1.0]}).health

    assert [each.severity for each in found.issues] == ["critical", "high", "medium"]
