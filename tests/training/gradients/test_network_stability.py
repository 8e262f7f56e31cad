"""Scatter, its change, what makes it, and what is forecast."""

import numpy as np
import pytest
from training.gradients.network_cases import analysed, decaying, flat, noise, run

from difflens.training.gradients.analyzer import GradientAnalyzer
from difflens.training.gradients.network import network_level
from difflens.training.gradients.series import Series
from difflens.training.gradients.signals import Signals
from difflens.training.gradients.stability import outlook
from difflens.training.records.network import InstabilityType, StabilityOutlook, StabilityTrend


def assessed(signals, **how):
    return analysed(signals, **how).stability_assessment


def with_details(histories, **how):
    return GradientAnalyzer(**how).analyze_gradients(histories).network_level_analysis


def test_scatter_is_that_of_the_ln_norms_about_their_course():
    # The middle half of a normal spans 1.349 deviations.
    found = assessed(run(phi=0.0, n=2000, scatter=0.2))

    assert found.overall_stability == pytest.approx(0.2 * 1.349, rel=0.1)


def test_a_clean_decay_is_perfectly_stable():
    """DC-10: the reference scores it 0.41."""
    assert assessed(run(scatter=1e-6)).overall_stability < 1e-3


def test_the_unit_of_the_norms_does_not_matter():
    small = run(norms=lambda t: 1e-9 * decaying(t))

    assert assessed(small).overall_stability == pytest.approx(assessed(run()).overall_stability)


def test_every_trend_of_the_scatter_can_be_reached():
    """DC-09, DX-10: the reference takes a limit on the level for a trend."""
    random, steps = np.random.default_rng(1), np.arange(2000)

    def scattered(first, second, n=2000):
        size = np.where(steps[:n] < n / 2, first, second)
        signals = run(flat, None, n=n, layers=1)
        norms = np.exp(size * random.standard_normal(n))
        return signals._replace(layers=(signals.layers[0]._replace(norms=norms),))

    found = [
        assessed(scattered(0.3, 0.1)).stability_trend,
        assessed(scattered(0.2, 0.2)).stability_trend,
        assessed(scattered(0.1, 0.3)).stability_trend,
        assessed(scattered(0.2, 0.2, 60)).stability_trend,
    ]

    assert found == list(StabilityTrend)


def test_the_threshold_is_the_ratio_that_still_is_no_change():
    signals = run(flat, None, n=1000, phi=0.0)
    loose, strict = (assessed(signals, stability_threshold=each) for each in (0.7, 0.99))

    assert loose.stability_trend == StabilityTrend.STABLE
    assert strict.stability_trend == StabilityTrend.INCONCLUSIVE
    assert strict.threshold == 0.99


def test_white_noise_is_no_source_of_instability():
    """DC-13, DC-26: in the reference almost every layer of noise is one."""
    random = np.random.default_rng(4)
    histories = {f"layer.{i}": np.exp(0.2 * random.standard_normal(150)) for i in range(30)}
    found = with_details(histories, depth="expert")

    assert found.stability_assessment.instability_sources == ()
    assert found.overall_gradient_health == "Healthy"


def sources_of(histories, **how):
    found = with_details(histories, **how).stability_assessment.instability_sources
    return {each.source_type: each for each in found}


def test_a_late_explosion_is_found_though_the_mean_hides_it():
    """DC-26"""
    calm = np.exp(0.1 * np.random.default_rng(1).standard_normal(400))
    burst = calm.copy()
    burst[380:] *= 60.0
    found = sources_of({"calm": calm, "burst": burst})

    assert list(found) == [InstabilityType.GRADIENT_EXPLOSION]
    source = found[InstabilityType.GRADIENT_EXPLOSION]
    assert source.affected_layers == ("burst",)
    assert source.severity == pytest.approx(0.2)
    assert source.since_step == 380


def test_layers_of_one_kind_share_one_source_on_a_scale_from_0_to_1():
    """DC-26: the reference has one entry a layer, with severities from 0 to without end."""
    calm = np.exp(0.1 * np.random.default_rng(1).standard_normal((400, 3)))
    calm[350:, 0] *= 1e6
    calm[390:, 1] *= 100.0
    found = sources_of({f"layer.{i}": calm[:, i] for i in range(3)})
    source = found[InstabilityType.GRADIENT_EXPLOSION]

    assert source.affected_layers == ("layer.0", "layer.1")
    assert 0 < source.severity <= 1
    assert source.evidence["layers"] == 2


def test_dead_layers_vanish_and_alternating_ones_oscillate():
    random = np.random.default_rng(5)
    calm = np.exp(0.1 * random.standard_normal((300, 2)))
    swing = calm[:, 0] * np.exp(0.5 * (-1.0) ** np.arange(300))
    found = sources_of({"calm": calm[:, 1], "dead": np.zeros(300), "swing": swing}, depth="expert")

    assert found[InstabilityType.GRADIENT_VANISHING].affected_layers == ("dead",)
    assert found[InstabilityType.GRADIENT_VANISHING].severity == 1.0
    assert found[InstabilityType.OSCILLATION].affected_layers == ("swing",)
    assert 0.5 < found[InstabilityType.OSCILLATION].severity <= 1.0


def test_a_layer_with_gradients_that_nothing_moves_stagnates():
    updates = np.full(300, 1e-3)
    updates[150:] = 0.0
    signals = run(n=300)
    still = signals.layers[0]._replace(update_norms=updates)
    found = analysed(signals._replace(layers=(still, *signals.layers[1:])))
    source = found.stability_assessment.instability_sources[0]

    assert source.source_type == InstabilityType.STAGNATION
    assert (source.affected_layers, source.since_step) == (("layer.0",), 150)


def test_a_frozen_layer_does_not_stagnate():
    signals = run(n=300, update_norms=np.zeros(300))
    frozen = tuple(each._replace(trainable=False) for each in signals.layers)

    assert not assessed(signals._replace(layers=frozen)).instability_sources


def ahead(values, window=100):
    return outlook(Series(np.arange(float(len(values))), values), window, thinned=False)


def test_steady_norms_are_forecast_stable_with_coverage_beside_the_level():
    """DC-09: the reference calls its stability a confidence."""
    every = [ahead(0.2 * noise(np.random.default_rng(i), 0.2, 600)[:, 0]) for i in range(20)]
    found = every[0]

    for words in zip(*((each.short_term_outlook, each.long_term_outlook) for each in every),
                     strict=True):  # fmt: skip
        assert words.count(StabilityOutlook.STABLE) >= 16
    assert found.short_term_outlook == found.long_term_outlook == StabilityOutlook.STABLE
    assert found.confidence_level == 0.8
    assert found.empirical_coverage == pytest.approx(0.8, abs=0.08)
    assert found.short_term.origins >= 200
    assert found.recommended_monitoring == ()


def test_bursts_that_have_always_passed_are_forecast_to_pass():
    calm = 0.1 * noise(np.random.default_rng(2), 0.2, 600)[:, 0]
    for start in range(58, 600, 60):
        calm[start : start + 2] += 4.0
    found = ahead(calm)

    assert found.short_term_outlook == StabilityOutlook.IMPROVING
    assert calm[-1] > found.explosion_bound > found.short_term.interval.high


def test_norms_that_jump_up_and_stay_deteriorate():
    up = 0.1 * noise(np.random.default_rng(2), 0.2, 600)[:, 0]
    up[540:] += np.linspace(3, 9, 60)
    found = ahead(up)

    assert found.short_term_outlook == StabilityOutlook.DETERIORATING
    assert found.recommended_monitoring
    assert found.short_term.interval.low > found.explosion_bound


def test_a_random_walk_is_uncertain_in_the_long_run():
    words = []
    for seed in range(20):
        walk = np.cumsum(0.1 * np.random.default_rng(seed).standard_normal(600))
        words.append(ahead(walk).long_term_outlook)

    assert words.count(StabilityOutlook.UNCERTAIN) >= 19


def test_a_short_run_is_not_forecast():
    """DC-09: no forecast where there is no back-test."""
    found = assessed(run(n=150), depth="expert").stability_forecast

    assert found.short_term_outlook is None
    assert found.confidence_level is None
    assert "200" in {each.field: each.why for each in found.missing}["short_term_outlook"]


def test_early_warning_signs_are_marked_exploratory():
    found = assessed(run(), depth="expert").critical_slowing

    assert found.exploratory
    assert 0 < found.variance_p <= 1
    assert assessed(run()).critical_slowing is None


def test_no_layers_is_one_consistent_unknown():
    """DC-31: the reference says healthy, diverging, degrading and deteriorating at once."""
    empty = Signals((), np.array([], np.int64))
    found = network_level(empty, {}, depth="expert")

    assert found.overall_gradient_health == "Unknown"
    assert found.convergence_indicators.convergence_trend == "Unknown"
    assert found.training_dynamics.learning_phase is None
    assert found.training_dynamics.plateau_detection.is_plateau is None
    assert found.stability_assessment.stability_trend is None
    assert found.stability_assessment.stability_forecast.short_term_outlook is None
    assert found.gradient_distribution.distribution_type is None
    assert {each.why for each in found.convergence_indicators.missing} == {"there are no layers"}
