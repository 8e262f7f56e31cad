"""Small networks trained in earnest: forecasts hold, healthy runs raise no alarm."""

import functools
from itertools import pairwise

import numpy as np
import pytest
from simulation import near
from sklearn.datasets import load_digits

from difflens.stats.forecast import intervals
from difflens.training.gradients.network import network_level
from difflens.training.gradients.signals import LayerSignal, Signals

STEPS = 800
RUNS = {
    "slow": {"rate": 0.02, "width": 32},
    "quick": {"rate": 0.1, "width": 32},
    "wide": {"rate": 0.05, "width": 96},
    "small batches": {"rate": 0.03, "width": 32, "batch": 8},
    "large batches": {"rate": 0.1, "width": 32, "batch": 256},
    "decayed": {"rate": 0.2, "width": 48, "decay": 0.995},
}


@functools.cache
def trained(name):
    """Train two layers on digits by plain SGD, and record what the monitor would."""
    how = {"batch": 64, "decay": 1.0, **RUNS[name]}
    random = np.random.default_rng(sorted(RUNS).index(name))
    digits = load_digits()
    images, answers = digits.data / 16, np.eye(10)[digits.target]
    sizes = (64, how["width"], 10)
    weights = [random.standard_normal(pair) * (2 / pair[0]) ** 0.5 for pair in
               pairwise(sizes)]  # fmt: skip
    losses, norms, updates, sizes_of = [], [], [], []
    rate = how["rate"]
    for _ in range(STEPS):
        batch = random.integers(0, len(images), how["batch"])
        hidden = np.maximum(images[batch] @ weights[0], 0)
        scores = hidden @ weights[1]
        scores -= scores.max(axis=1, keepdims=True)
        chances = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
        losses.append(-np.log((chances * answers[batch]).sum(axis=1) + 1e-12).mean())
        error = (chances - answers[batch]) / how["batch"]
        gradients = [
            images[batch].T @ ((error @ weights[1].T) * (hidden > 0)), hidden.T @ error,
        ]  # fmt: skip
        norms.append([np.linalg.norm(each) for each in gradients])
        updates.append([rate * norm for norm in norms[-1]])
        sizes_of.append([np.linalg.norm(each) for each in weights])
        weights = [each - rate * step for each, step in zip(weights, gradients, strict=True)]
        rate *= how["decay"]
    steps, table = np.arange(STEPS), np.array(norms)
    layers = tuple(
        LayerSignal(f"layer.{i}", steps, table[:, i], depth=i, kind="Linear",
                    weight_norms=np.array(sizes_of)[:, i], update_norms=np.array(updates)[:, i])
        for i in range(2)
    )  # fmt: skip
    return Signals(layers, steps, np.array(losses))


@pytest.mark.parametrize("level", [0.8, 0.9])
@pytest.mark.parametrize("what", ["norm", "loss"])
def test_the_second_half_of_real_runs_is_covered_at_the_stated_rate(what, level):
    hits = []
    for name in RUNS:
        signals = trained(name)
        total = np.sqrt(sum(each.norms**2 for each in signals.layers))
        series = np.log(total if what == "norm" else signals.loss + 1e-3)
        hits.append(intervals(series, 1, level, STEPS // 2).hits)
        assert near(float(hits[-1].mean()), level, len(hits[-1]))

    together = np.concatenate(hits)
    assert near(float(together.mean()), level, len(together))


@pytest.mark.parametrize("name", RUNS)
def test_a_run_that_learns_is_not_called_diverging(name):
    found = network_level(trained(name), {}, depth="expert")

    assert found.convergence_indicators.convergence_trend in {"Converging", "Unknown", "Stable"}
    assert found.training_dynamics.learning_velocity is not None
    assert found.stability_assessment.instability_sources == ()


@pytest.mark.parametrize("name", RUNS)
def test_a_floor_is_not_claimed_of_a_loss_that_goes_on_falling(name):
    found = network_level(trained(name), {}, depth="expert")
    indicators = found.convergence_indicators
    trend = indicators.loss_trend
    falls_on = trend.interval.high < -0.02 * float(np.median(trained(name).loss[-100:]))

    if falls_on:
        assert indicators.estimated_steps_to_convergence != 0
        assert found.training_dynamics.learning_phase != "Convergence"


def test_intervals_that_are_not_steered_would_miss_real_losses():
    hits = [
        intervals(np.log(trained(name).loss + 1e-3), 1, 0.9, STEPS // 2, rate=0.0).hits
        for name in RUNS
    ]

    assert np.concatenate(hits).mean() < 0.88


def test_runs_that_learn_converge_for_the_most_part():
    words = [
        network_level(trained(name), {}).convergence_indicators.convergence_trend for name in RUNS
    ]

    assert words.count("Converging") >= 4
