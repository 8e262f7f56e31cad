"""The health score: what each issue costs, and what a score never hides."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from difflens.models.health.analyzer import WeightAnalyzer
from difflens.models.health.records import DistributionHealthStatus

FINE = np.random.default_rng(0).normal(0, 0.1, size=(10, 100))


def health(layers):
    return WeightAnalyzer().analyze_weight_distribution(layers)


@given(st.integers(0, 5), st.integers(0, 5))
def test_the_score_is_what_the_deductions_leave_and_never_above_74_with_a_high_issue(fine, bad):
    layers = [FINE] * fine + [np.zeros((5, 100))] * bad

    found = health(layers).health

    if not layers:
        assert found.score is None
        return
    left = 100 * fine * 1000 / (fine * 1000 + bad * 500)
    assert found.score == pytest.approx(min(left, 74) if bad else left)
    assert sum(each.points for each in found.deductions) == pytest.approx(100 - left)
    assert len(found.deductions) == bad


def tailed(seed=0):
    """Make a trained-looking matrix: many small weights, few large ones."""
    return np.random.default_rng(seed).standard_t(2, size=(100, 100)) * 0.05


def test_one_heavy_tailed_layer_that_is_all_of_a_model_is_not_critical():
    found = health({"fc.weight": tailed(), "fc.bias": np.zeros(100)})

    assert "heavy_tailed" in {each.code for each in found.health.issues}
    assert found.health.score == pytest.approx(95, abs=0.1)
    assert found.distribution_health.status == DistributionHealthStatus.EXCELLENT


@pytest.mark.parametrize(
    "mask",
    [
        np.float32(-np.inf),
        np.triu(np.full((8, 8), -np.inf), 1),
        np.triu(np.full((8, 8), np.finfo("f4").min, "f4"), 1),
        np.float32(np.finfo("f4").min),
    ],
    ids=["a number", "a mask", "a finite mask", "the smallest number"],
)
def test_a_constant_of_the_graph_that_is_infinite_on_purpose_is_no_fault(mask):
    found = health({"fc.weight": FINE, "Const_26": mask})

    assert found.health.score == 100
    assert {each.severity for each in found.health.issues} <= {"info"}


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("weights", [FINE, np.zeros((10, 100))], ids=["weights", "zeros"])
def test_a_matrix_with_one_value_that_is_not_finite_is_critical(weights, value):
    broken = weights.copy()
    broken[3, 3] = value

    found = health({"fc.weight": broken}).distribution_health

    if value == -np.inf and not weights.any():  # that is what a mask looks like
        return
    assert found.status == DistributionHealthStatus.CRITICAL


@pytest.mark.parametrize("bit", [30, 29, 28, 27])
def test_a_flipped_bit_of_an_exponent_is_found(bit):
    weights = np.random.default_rng(1).normal(0, 0.02, (64, 64)).astype("f4")
    at = np.abs(np.abs(weights.ravel()) - 0.02).argmin()
    weights.reshape(-1).view(np.uint32)[at] ^= np.uint32(1 << bit)
    if abs(weights.ravel()[at]) < 1:  # the bit was set: the weight is almost zero now
        return

    found = health({"fc.weight": weights})

    assert found.health.issues[0].severity in {"high", "critical"}
    assert found.distribution_health.status in {"Fair", "Poor", "Critical"}


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
    assert found.health.score == 39  # not 99.9 of 100 for what nobody can use
    assert found.health.issues[0].code == "non_finite"
    assert found.layer_analyses[1].health_score == 0


@pytest.mark.parametrize(
    ("bad", "status"),
    [(0, "Excellent"), (10, "Fair"), (20, "Fair"), (35, "Fair"), (55, "Poor"),
     (70, "Critical")],
)  # fmt: skip
def test_every_status_has_its_band(bad, status):
    """DX-10."""
    layers = [np.full((1, 10), 0.5) for _ in range(bad)] + [FINE[:1, :10]] * (100 - bad)

    assert health(layers).distribution_health.status.value == status


def test_good_is_a_model_whose_every_matrix_is_a_little_odd():
    found = health({str(i): np.full((4, 50), 40.0) + FINE[:4, :50] * 100 for i in range(4)})

    assert {each.severity for each in found.health.issues} == {"medium"}
    assert found.distribution_health.status == DistributionHealthStatus.GOOD


def test_the_health_of_weights_is_made_with_advice_and_explained():
    """DB-19: the record was never made."""
    found = health({"a": FINE, "b": np.zeros((5, 100)), "c": np.zeros(7)}).health

    (deduction,) = found.deductions
    assert (deduction.name, deduction.parameters) == ("b", 500)
    assert [code.value for code in deduction.codes] == ["all_zero"]
    assert len(found.recommendations) == 1
    assert {each.severity for each in found.issues} == {"high", "info"}


def test_the_worst_issue_comes_first():
    found = health({"a": np.zeros((5, 5)), "b": FINE * 100, "c": [np.inf, 1.0]}).health

    assert [each.severity for each in found.issues] == ["critical", "high", "medium"]
