"""Drift: how far each tensor moved, which more than the others, and what could not be paired."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from difflens.models.health.analyzer import WeightAnalyzer
from difflens.models.health.records import WeightDriftSeverity

LEFT = {f"layers.{i}.weight": np.random.default_rng(i).normal(size=(20, 30)) for i in range(10)}
SYMMETRIC = ("symmetric_l2", "mean_abs", "max_abs", "cosine", "pearson", "ks", "wasserstein")


def drift(left, right):
    return WeightAnalyzer().analyze_weight_drift(left, right)


def moved(scale, **more):
    random = np.random.default_rng(1)
    scales = dict.fromkeys(LEFT, scale) | more
    return {name: each + scales[name] * random.normal(size=each.shape)
            for name, each in LEFT.items()}  # fmt: skip


def test_drift_is_measured_pair_by_pair():
    """DB-18: the records had no producer."""
    right = moved(0.1)

    found = drift(LEFT, right)

    for each in found.tensors:
        a, b = LEFT[each.name].ravel(), right[each.name].ravel()
        assert each.relative_l2 == pytest.approx(np.linalg.norm(b - a) / np.linalg.norm(a))
        assert each.rms_in_deviations == pytest.approx(np.sqrt(np.mean((b - a) ** 2)) / a.std())
        assert each.cosine == pytest.approx(a @ b / np.linalg.norm(a) / np.linalg.norm(b))
        assert each.ks == pytest.approx(stats.ks_2samp(a, b).statistic)
        assert each.wasserstein == pytest.approx(stats.wasserstein_distance(a, b))
        assert each.relative_wasserstein == pytest.approx(each.wasserstein / a.std())
    drifts = [each.relative_l2 for each in found.tensors]
    assert found.mean_drift == pytest.approx(np.mean(drifts))
    assert found.max_drift == max(drifts)


def test_the_layer_that_moved_more_than_the_others_is_named():
    """DB-18: by their own spread, not by their mean."""
    found = drift(LEFT, moved(0.001, **{"layers.3.weight": 0.02}))

    assert found.affected_names == ("layers.3.weight",)
    assert found.affected_layers == (3,)
    assert found.affected_above < found.max_drift


def test_one_of_two_layers_that_moved_is_named():
    """DB-18: twice the mean of two layers is all that one of them can reach."""
    left = {"a": LEFT["layers.0.weight"], "b": LEFT["layers.1.weight"], "c": np.ones(5)}

    found = drift(left, left | {"b": left["b"] * 2})

    assert found.affected_names == ("b",)


@pytest.mark.parametrize(
    ("scale", "word"),
    [(0, "None"), (1e-4, "Minimal"), (5e-3, "Low"), (0.05, "Medium"), (0.5, "High")],
)
def test_every_severity_has_its_band(scale, word):
    """DX-10, DB-18."""
    found = drift(LEFT, {name: each * (1 + scale) for name, each in LEFT.items()})

    assert found.severity.value == word
    assert {each.severity.value for each in found.tensors} == {word}


def test_missing_and_reshaped_tensors_are_named():
    """DB-18."""
    found = drift(
        {"a": [1.0], "b": [1.0, 2.0], "c": [1.0]}, {"a": [1.0], "b": [[1.0, 2.0]], "d": [1.0]}
    )

    assert (found.added, found.removed, found.reshaped) == (("d",), ("c",), ("b",))
    assert [each.name for each in found.tensors] == ["a"]


def test_nothing_in_common_is_unknown():
    found = drift({"a": [1.0]}, {"b": [1.0]})

    assert found.severity == WeightDriftSeverity.UNKNOWN
    assert (found.mean_drift, found.max_drift) == (None, None)
    assert found.unexplained() == []


def test_a_model_against_itself_did_not_move():
    found = drift(LEFT, LEFT)

    assert (found.mean_drift, found.max_drift, found.affected_layers) == (0, 0, ())
    assert {each.ks for each in found.tensors} == {0}


@given(st.floats(0.001, 2))
def test_distances_that_know_no_side_are_the_same_both_ways(scale):
    left, right = {"w": LEFT["layers.0.weight"]}, {"w": moved(scale)["layers.0.weight"]}

    one, other = drift(left, right).tensors[0], drift(right, left).tensors[0]

    for name in SYMMETRIC:
        assert getattr(one, name) == pytest.approx(getattr(other, name), rel=1e-9), name


def test_weights_that_stop_being_finite_are_high_and_counted():
    found = drift({"a": [1.0, 2.0], "b": np.ones(9)}, {"a": [1.0, np.nan], "b": np.ones(9)})

    assert (found.tensors[0].left_nonfinite, found.tensors[0].right_nonfinite) == (0, 1)
    assert found.severity == WeightDriftSeverity.HIGH


def test_the_same_nan_on_both_sides_is_counted_too():
    found = drift({"a": [1.0, np.nan]}, {"a": [1.0, np.nan]})

    assert (found.tensors[0].left_nonfinite, found.tensors[0].right_nonfinite) == (1, 1)


def test_a_change_out_of_zeros_has_no_ratio_and_is_high():
    found = drift({"a": np.zeros(4), "b": np.ones(4)}, {"a": np.ones(4), "b": np.ones(4)})

    assert found.tensors[0].relative_l2 is None
    assert found.tensors[0].symmetric_l2 == 1
    assert found.affected_names == ("a",)
    assert found.severity == WeightDriftSeverity.HIGH


def test_rounding_to_a_coarser_type_is_recognised():
    left = {"w": LEFT["layers.0.weight"].astype(np.float32)}
    right = {"w": left["w"].astype(np.float16)}

    found = drift(left, right)

    assert found.tensors[0].within_storage_rounding
    assert found.storage_floor == 2.08e-4
    assert found.mean_drift == pytest.approx(found.storage_floor, rel=0.1)


def test_numbers_whose_squares_overflow_have_no_ratio_and_say_why():
    found = drift({"w": [1e200, 2e200]}, {"w": [1.5e200, 2e200]})

    assert found.tensors[0].relative_l2 is None
    assert "exceed 64 bits" in found.tensors[0].missing[0].why


def test_an_empty_tensor_did_neither_move_nor_stay():
    found = drift({"w": np.empty((0, 3))}, {"w": np.empty((0, 3))})

    assert found.tensors[0].severity == WeightDriftSeverity.UNKNOWN
    assert found.tensors[0].unexplained() == []
