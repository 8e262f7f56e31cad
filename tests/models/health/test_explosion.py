"""Exploding gradients: one scale, the same whatever the order, nothing said of nothing."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from difflens.core.errors import InvalidConfig
from difflens.models.health.analyzer import WeightAnalyzer
from difflens.models.health.explosion import band_of
from difflens.models.health.records import ExplosionSeverity, WeightConfig

NORMS = st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=15)


def detected(gradients, threshold=10.0, config=None, **more):
    analyzer = WeightAnalyzer(WeightConfig(**(config or {})))
    return analyzer.detect_gradient_explosion(gradients, threshold, **more)


def of_norms(*norms):
    return {f"layer{i}": np.array([norm]) for i, norm in enumerate(norms)}


@pytest.mark.parametrize("place", range(10))
def test_a_norm_of_a_million_among_ones_is_critical_wherever_it_stands(place):
    """DB-01: held against the mean of those seen so far, itself included, it was Low."""
    norms = [1.0] * 10
    norms[place] = 1e6

    found = detected(of_norms(*norms))

    (layer,) = found.exploding_layers
    assert (layer.layer_index, layer.severity) == (place, ExplosionSeverity.CRITICAL)
    assert found.overall_severity == ExplosionSeverity.CRITICAL


@given(NORMS, st.randoms(use_true_random=False))
def test_the_order_of_layers_changes_nothing_but_their_order(norms, random):
    """DB-01."""
    gradients = of_norms(*norms)
    shuffled = list(gradients.items())
    random.shuffle(shuffled)

    one, other = detected(gradients, 1.0), detected(dict(shuffled), 1.0)

    severities = [{each.name: each.severity for each in found.layers} for found in (one, other)]
    assert severities[0] == severities[1]
    assert one.overall_severity == other.overall_severity
    assert one.global_norm == pytest.approx(other.global_norm)
    assert one.std_gradient_norm == pytest.approx(other.std_gradient_norm, abs=1e-9)


@given(NORMS)
def test_norms_are_summed_up_as_numpy_does(norms):
    found = detected(of_norms(*norms), 1.0)

    assert found.max_gradient_norm == max(norms)
    assert found.mean_gradient_norm == pytest.approx(np.mean(norms))
    assert found.std_gradient_norm == pytest.approx(np.std(norms), abs=1e-9)
    assert found.median_gradient_norm == pytest.approx(np.median(norms))
    assert found.global_norm == pytest.approx(np.linalg.norm(norms))
    assert found.explosion_ratio == np.mean(np.array(norms) > 1)


@pytest.mark.parametrize("gradients", [[], {}])
def test_no_gradients_are_unknown_with_reasons(gradients):
    """DB-02: zero over zero, and Low."""
    found = detected(gradients)

    assert found.overall_severity == ExplosionSeverity.UNKNOWN
    assert (found.mean_gradient_norm, found.explosion_ratio) == (None, None)
    assert found.unexplained() == []
    assert found.mitigation_recommendations == ()


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_gradients_that_are_not_finite_are_critical(bad):
    """DB-03: NaN was never flagged, and infinity over infinity was Low."""
    found = detected({"a": [0.1, bad, 0.2], "b": [0.1], "c": [bad]})

    assert [each.severity for each in found.exploding_layers] == [ExplosionSeverity.CRITICAL] * 2
    assert [each.over for each in found.exploding_layers] == [("finite",)] * 2
    assert found.overall_severity == ExplosionSeverity.CRITICAL
    assert found.nonfinite == 2
    assert found.mean_gradient_norm == pytest.approx(np.mean([np.hypot(0.1, 0.2), 0.1]))
    assert found.exploding_layers[1].gradient_norm is None
    assert found.exploding_layers[1].missing[0].field == "gradient_norm"


def test_gradients_of_1e200_have_a_norm():
    """DB-04."""
    found = detected({"a": [3e200, 4e200], "b": np.full(4, 1e30, np.float32)})

    assert [each.gradient_norm for each in found.layers] == pytest.approx([5e200, 2e30], rel=1e-6)
    assert found.global_norm == pytest.approx(5e200)


def test_size_is_told_free_of_the_number_of_parameters():
    """DB-05: a raw norm grows with the number of parameters."""
    gradients = {"small": np.full(4, 0.1), "large": np.full(40_000, 0.1)}
    weights = {"small": np.full(4, 1.0), "large": np.full(40_000, 1.0)}

    found = detected(gradients, weights=weights)

    small, large = found.layers
    assert large.gradient_norm == pytest.approx(100 * small.gradient_norm)
    assert (small.rms, large.rms) == pytest.approx((0.1, 0.1))
    assert (small.weight_ratio, large.weight_ratio) == pytest.approx((0.1, 0.1))
    assert found.rms == pytest.approx(0.1)
    assert found.global_norm == pytest.approx(np.hypot(0.2, 20))


@pytest.mark.parametrize(
    ("config", "over"),
    [({"rms_threshold": 0.05}, "rms"), ({"weight_ratio_threshold": 0.05}, "weight_ratio")],
)
def test_each_quantity_has_a_threshold_of_its_own(config, over):
    """DB-05."""
    gradients, weights = {"w": np.full(4, 0.1)}, {"w": np.ones(4)}

    (layer,) = detected(gradients, 10.0, config, weights=weights).exploding_layers

    assert layer.over == (over,)
    assert detected(gradients, 10.0, weights=weights).exploding_layers == ()


def test_the_global_norm_may_have_a_threshold():
    """DB-05."""
    gradients = of_norms(*[1.0] * 100)

    assert detected(gradients).overall_severity == ExplosionSeverity.NONE
    found = detected(gradients, config={"global_norm_threshold": 1.5})
    assert found.overall_severity == ExplosionSeverity.HIGH


def test_nothing_exploding_is_none_and_not_low():
    """DB-06."""
    found = detected(of_norms(1.0, 2.0, 3.0))

    assert found.overall_severity == ExplosionSeverity.NONE
    assert {each.severity for each in found.layers} == {ExplosionSeverity.NONE}


@pytest.mark.parametrize(
    ("norm", "word"),
    [(1.5, "Low"), (2.5, "Medium"), (6.0, "High"), (11.0, "Critical"), (1.0, "None")],
)
def test_one_scale_serves_layers_and_the_whole(norm, word):
    """DB-06, DX-10."""
    found = detected({"a": [norm]}, 1.0)

    assert (found.layers[0].severity.value, found.overall_severity.value) == (word, word)


def test_a_layer_far_above_its_fellows_is_worse_than_its_threshold_says():
    """DB-01: the others are what it is held against, not itself."""
    close, far = of_norms(1.0, 0.9, 1.1, 1.2, 1.5), of_norms(0.001, 0.0009, 0.0011, 0.0012, 1.5)

    assert detected(close, 1.4).layers[-1].severity == ExplosionSeverity.LOW
    found = detected(far, 1.4).layers[-1]
    assert found.severity == ExplosionSeverity.CRITICAL
    logs = np.log([0.001, 0.0009, 0.0011, 0.0012])
    mad = np.median(np.abs(logs - np.median(logs)))
    assert found.peer_z == pytest.approx(0.6745 * (np.log(1.5) - np.median(logs)) / mad)


def test_too_few_layers_have_no_fellows():
    (layer, _) = detected(of_norms(1.0, 100.0)).layers

    assert (layer.peer_ratio, layer.peer_z) == (None, None)
    assert "there are 1" in {each.why for each in layer.missing}


def test_advice_comes_only_where_something_explodes():
    """DB-07: two pieces of advice were always given, and a clip value of 1.0."""
    assert detected(of_norms(1.0, 2.0)).mitigation_recommendations == ()
    found = detected(of_norms(1.0, 200.0))
    assert found.clip_value is None
    assert "clip_value" in {each.field for each in found.missing}
    assert not any("1.0" in each for each in found.mitigation_recommendations)


def test_the_clip_value_comes_from_past_norms():
    """DB-07."""
    history = np.linspace(1, 3, 201)

    found = detected(of_norms(1.0, 200.0), history=history)

    assert found.clip_value == pytest.approx(2.9)
    assert any("2.9" in each for each in found.mitigation_recommendations)


def test_parameters_without_a_gradient_are_left_out_and_named():
    found = detected({"a": [1.0], "frozen": None})

    assert found.layer_count == 1
    assert found.skipped == {"frozen": "there is no array"}


def test_an_empty_gradient_is_unknown():
    found = detected({"a": np.empty(0)})

    assert found.layers[0].severity == ExplosionSeverity.UNKNOWN
    assert found.overall_severity == ExplosionSeverity.UNKNOWN


@pytest.mark.parametrize("threshold", [0, -1, math.nan, math.inf, "high", None])
def test_a_threshold_without_meaning_is_refused(threshold):
    with pytest.raises(InvalidConfig, match="threshold is"):
        detected(of_norms(1.0), threshold)


def test_a_ratio_beyond_every_number_is_critical():
    found = detected({"a": [1e300]}, 1e-300)

    assert found.exploding_layers[0].over == ("norm",)
    assert found.overall_severity == ExplosionSeverity.CRITICAL
    assert band_of(2.0, WeightConfig()) == ExplosionSeverity.LOW
