"""Health by rules: one rule alone can be critical, and what is not known is Unknown."""

import numpy as np
import pytest
from training.gradients.layer_cases import details, noise, one, rules, write_run

from difflens.core.errors import InvalidConfig
from difflens.training.gradients.analyzer import GradientAnalyzer
from difflens.training.gradients.histories import GradientFlow, GradientHistory
from difflens.training.gradients.settings import GradientThresholds


def word(norms, **how):
    return one(norms, **how).health_metrics.overall_health


@pytest.mark.parametrize("depth", ["basic", "standard", "comprehensive", "expert"])
def test_steady_norms_are_healthy(depth):
    assert word(noise(), depth=depth) == "Healthy"


def test_an_empty_history_is_unknown_and_gets_no_advice():
    """DC-16: the reference calls it a very low gradient and suggests another initialisation."""
    found = one([])

    assert found.health_metrics.overall_health == "Unknown"
    assert found.health_metrics.risk_factors == ()
    assert found.optimization_suggestions == ()


def test_too_few_records_are_unknown():
    """DX-03."""
    found = one([1.0] * 5).health_metrics

    assert found.overall_health == "Unknown"
    assert "5 finite norms, 10 are needed" in {each.why for each in found.missing}


@pytest.mark.parametrize("odd", [np.nan, np.inf])
def test_one_norm_that_is_not_finite_is_critical_alone(odd):
    """DX-02, DC-15, DC-19."""
    found = one([*noise(50), odd, *noise(200)])

    assert found.health_metrics.overall_health == "Critical"
    assert rules(found) == {"non-finite"}
    assert found.health_metrics.risks[0].since_step == 50


def test_a_layer_of_zeros_is_dead_and_not_merely_unstable():
    """DC-10, DC-15."""
    found = one([0.0] * 60)

    assert found.health_metrics.overall_health == "Critical"
    assert rules(found) == {"dead"}
    assert found.health_metrics.gradient_stability is None


def test_a_layer_that_died_on_the_way_is_dead_since_then():
    found = one([*noise(150), *[0.0] * 120])

    assert rules(found) == {"dead"}
    assert found.health_metrics.risks[0].since_step == 150


def test_a_few_zeros_at_the_end_do_not_make_a_layer_dead():
    assert "dead" not in rules(one([*noise(150), *[0.0] * 5]))


def test_a_smooth_norm_of_a_thousand_million_is_critical():
    """DC-15: the reference has it for a warning, for only one of its factors holds."""
    found = one(np.full(200, 1e9))

    assert found.health_metrics.overall_health == "Critical"
    assert rules(found) == {"absolute"}


def test_a_jump_that_lasts_is_an_explosion():
    found = one(np.r_[noise(150), 50 * noise(50)])

    assert found.health_metrics.overall_health == "Critical"
    assert "exploding" in rules(found)
    assert found.health_metrics.risks[0].since_step == 150
    assert found.health_metrics.risks[0].measured == pytest.approx(50, rel=0.5)


def test_a_late_explosion_is_not_hidden_by_a_long_calm():
    """DC-26, DC-30: the mean over the whole history is hardly moved."""
    assert "exploding" in rules(one(np.r_[noise(5000, sigma=0.1), 30 * noise(20)]))


def test_a_spike_that_passed_is_a_warning_and_a_long_past_one_is_over():
    late, past = noise(400), noise(400)
    late[380], past[20] = 60.0, 60.0

    assert one(late).health_metrics.overall_health == "Warning"
    assert rules(one(late)) == {"spike"}
    assert one(past).health_metrics.overall_health == "Healthy"
    assert [each.recent for each in one(past).health_metrics.risks] == [False]


def test_norms_that_grow_are_a_risk_and_norms_that_shrink_are_not():
    """DC-01, DC-04: shrinking alone says neither convergence nor vanishing."""
    grown = np.exp(np.arange(150) * 0.03) * noise(150, sigma=0.05)

    assert "growing" in rules(one(grown))
    assert rules(one(grown[::-1])) == set()
    assert word(np.exp(np.arange(150) * 0.1)) == "Critical"


def test_the_convergence_indicator_is_above_zero_for_decay_and_below_for_growth():
    """DC-01: the reference fits the newest-first series, so that growth converges."""
    decay = np.exp(-np.arange(150) / 50) * noise(150, sigma=0.05)

    found = one(decay).health_metrics

    assert found.convergence_indicator == pytest.approx(2, rel=0.1)
    assert found.convergence_interval.low < 2 < found.convergence_interval.high
    assert one(decay[::-1]).health_metrics.convergence_indicator == pytest.approx(-2, rel=0.1)


def test_a_window_that_is_not_full_has_no_convergence_indicator():
    """DC-03: the reference answers 0.5."""
    found = one(noise(60)).health_metrics

    assert found.convergence_indicator is None
    assert "insufficient data: n=60, need 100" in {each.why for each in found.missing}


def test_a_layer_far_below_its_peers_is_vanishing():
    layers = {f"layer{i}": noise(seed=i) for i in range(6)}
    found = details(layers | {"small": 1e-5 * noise(), "tiny": 1e-8 * noise()})

    assert rules(found["small"]) == {"vanishing"}
    assert found["small"].health_metrics.overall_health == "Warning"
    assert found["tiny"].health_metrics.overall_health == "Critical"
    assert all(not rules(found[name]) for name in layers)


def test_small_norms_of_a_whole_network_are_no_fault():
    """DC-15: limits are relative; a loss in other units moves all norms."""
    found = details({f"layer{i}": 1e-6 * noise(seed=i) for i in range(6)})

    assert all(each.health_metrics.overall_health == "Healthy" for each in found.values())


def test_scatter_and_swings_are_warnings():
    wild = one(noise(sigma=2.0))
    swinging = one(np.tile([1.0, 2.0], 100) * noise(sigma=0.02))

    assert rules(wild) == {"unstable"}
    assert rules(swinging) == {"oscillating"}
    assert wild.health_metrics.overall_health == "Warning"


def test_the_stability_threshold_decides_what_is_unstable():
    norms = noise(sigma=0.7)

    assert rules(one(norms, stability_threshold=0.95)) == {"unstable"}
    assert rules(one(norms, stability_threshold=0.3)) == set()


def test_unit_activity_is_measured_or_not_known():
    """DC-17: the reference says 1 for any live layer, and for an empty one."""
    history = GradientHistory("fc")
    for step in range(20):
        history.add_gradient_flow(
            GradientFlow(layer_name="fc", step=step, gradient_norm=1.0, dead_neurons_ratio=0.25)
        )

    assert one(noise()).health_metrics.neuron_activity_ratio is None
    assert details({"fc": history})["fc"].health_metrics.neuron_activity_ratio == 0.75


def test_the_mean_change_is_over_the_changes_and_in_units_of_the_norm():
    """DC-18: total variation by n - 1, not by n, and information flow is not claimed."""
    found = one([2.0, 4.0] * 10).health_metrics

    assert found.mean_absolute_change == pytest.approx(2 / 3)
    assert found.information_flow_rate is None


def test_a_run_tells_of_zeros_underflow_and_weights_that_grow():
    from difflens.training.gradients.comparison import Standing
    from difflens.training.gradients.flow import no_flow
    from difflens.training.gradients.rules import Case, risks
    from difflens.training.gradients.signals import LayerSignal

    n = 300
    signal = LayerSignal(
        "fc.weight", np.arange(n), noise(n), 100, dtype="F16", zeros=np.full(n, 0.995),
        max_abs=np.full(n, 1e-8), weight_norms=np.exp(np.arange(n) / 100),
    )  # fmt: skip
    peers = Standing("weight", "norm", 0, np.array([]), False)
    case = Case(signal, signal.last(100), no_flow(), peers, GradientThresholds(), 0.8, 100)

    assert [each.rule for each in risks(case)] == ["mostly-zero", "underflow", "weight-growth"]
    embedding = case._replace(whole=signal._replace(kind="Embedding"))
    assert "mostly-zero" not in {each.rule for each in risks(embedding)}


def test_a_layer_that_is_not_trained_is_unknown_and_not_dead():
    from difflens.training.gradients.signals import LayerSignal, Signals

    frozen = LayerSignal("fc", np.arange(50), np.zeros(50), trainable=False)
    found = GradientAnalyzer()._details(Signals((frozen,), frozen.steps), [frozen.last(100)])

    assert found["fc"].health_metrics.overall_health == "Unknown"


def test_a_run_with_one_frame_that_is_not_finite_is_critical_also_when_thinned(tmp_path):
    """DX-02: a long run is told by points, and its points are means of what was finite."""
    faults = np.ones(5000)
    faults[1234] = np.nan
    folder = write_run(tmp_path / "run", 5000, {"blocks.1.weight": faults})

    found = GradientAnalyzer("basic").analyze_run(folder)

    layer = found.layer("blocks.1.weight")
    assert found.thinned
    assert layer.gradient_statistics.nonfinite == 1
    assert layer.health_metrics.overall_health == "Critical"
    assert layer.health_metrics.risks[0].since_step == 12340


@pytest.mark.parametrize(
    "limits",
    [
        {"jump_ratio": 0.5},
        {"vanishing": 0.0},
        {"level": 1.5},
        {"least_records": 0},
        {"jump_z": float("nan")},
        {"growth_warning": 1e6},
        {"vanishing_critical": 0.5},
    ],
)
def test_limits_without_meaning_are_refused(limits):
    """DX-04."""
    with pytest.raises(InvalidConfig, match=next(iter(limits))):
        GradientThresholds(**limits)


def test_limits_are_those_that_were_set():
    strict = GradientAnalyzer(thresholds=GradientThresholds(absolute_norm=10.0))

    found = strict.analyze_gradients({"layer": 20 * noise()}).layer("layer")

    assert rules(found) == {"absolute"}
    assert found.health_metrics.risks[0].threshold == 10.0
