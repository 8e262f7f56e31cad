"""The network as a whole: health, depths, cost, and answers that never contradict each other."""

import time
from types import SimpleNamespace

import numpy as np
import pytest
from training.gradients.network_cases import analysed, noise, run

from difflens.core.errors import InvalidConfig
from difflens.training.gradients.analyzer import GradientAnalyzer
from difflens.training.gradients.network import network_level, overall_health
from difflens.training.gradients.signals import LayerSignal, Signals
from difflens.training.records.network import NetworkLevelAnalysis


@pytest.mark.parametrize(
    ("counts", "word"),
    [
        ({"Healthy": 10}, "Healthy"),
        ({"Healthy": 9, "Critical": 1}, "Healthy"),
        ({"Healthy": 8, "Critical": 2}, "Warning"),
        ({"Healthy": 6, "Critical": 4}, "Critical"),
        ({"Healthy": 4, "Warning": 6}, "Warning"),
        ({"Unknown": 7}, "Unknown"),
        ({}, "Unknown"),
        ({"Healthy": 1, "Unknown": 9}, "Healthy"),
    ],
)
def test_the_network_is_judged_by_the_shares_of_its_layers(counts, word):
    assert overall_health(counts) == word


def test_one_norm_that_is_not_finite_is_critical():
    """DX-02: in the reference what is not finite passes for healthy."""
    signals = run()
    signals.layers[0].norms[17] = np.nan
    found = analysed(signals)

    assert found.overall_gradient_health == "Critical"
    assert found.gradient_distribution.nonfinite == 1
    assert found.convergence_indicators.convergence_trend == "Converging"


def test_health_is_counted_from_the_layers():
    words = ["Healthy", "Healthy", "Warning"]
    details = {
        f"layer.{i}": SimpleNamespace(health_metrics=SimpleNamespace(overall_health=word))
        for i, word in enumerate(words)
    }
    found = network_level(run(), details)

    assert found.layers_by_health == {"Healthy": 2, "Warning": 1, "Critical": 0, "Unknown": 0}


def known(answer):
    """Count what is not null, however deep."""
    if isinstance(answer, dict):
        return sum(known(each) for key, each in answer.items() if key != "missing")
    if isinstance(answer, (list, tuple)):
        return sum(map(known, answer))
    return answer is not None and answer != ""


def test_each_depth_knows_more_and_says_what_the_next_would_add():
    """DC-29"""
    signals = run(n=400)
    shared = np.exp(0.3 * np.random.default_rng(1).standard_normal(400))
    layers = tuple(each._replace(norms=each.norms * shared) for each in signals.layers)
    depths = ("basic", "standard", "comprehensive", "expert")
    found = [analysed(signals._replace(layers=layers), each) for each in depths]
    counts = [known(each.to_dict()) for each in found]

    assert sorted(set(counts)) == counts
    assert found[0].convergence_indicators.reason == "this depth leaves it out"
    needs = {each.field: each.needs for each in found[1].convergence_indicators.missing}
    assert needs["estimated_steps_to_convergence"] == 'depth="expert"'


def test_a_depth_that_does_not_exist_is_refused():
    with pytest.raises(InvalidConfig, match="depth"):
        analysed(run(), "abysmal")


def nulls_without_reason(answer):
    if isinstance(answer, dict):
        told = {each["field"] for each in answer.get("missing") or ()}
        if "missing" in answer:
            yield from (key for key, each in answer.items() if each is None and key not in told)
        for each in answer.values():
            yield from nulls_without_reason(each)
    elif isinstance(answer, (list, tuple)):
        for each in answer:
            yield from nulls_without_reason(each)


@pytest.mark.parametrize("depth", ["basic", "standard", "comprehensive", "expert"])
@pytest.mark.parametrize("n", [0, 1, 5, 30, 250])
@pytest.mark.parametrize("loss", ["none", "falling"])
def test_every_null_has_its_reason(depth, n, loss):
    signals = run(n=n) if n else Signals((), np.array([], np.int64))
    found = analysed(signals if loss == "falling" else signals._replace(loss=None), depth)

    assert list(nulls_without_reason(found.to_dict())) == []
    assert NetworkLevelAnalysis.from_json(found.to_json()) == found


@pytest.mark.parametrize(
    "norms", [[], [1.0], [0.0] * 50, [float("nan")] * 50, [1e-320, 1e300] * 40]
)
def test_odd_norms_are_answered(norms):
    found = GradientAnalyzer("expert").analyze_gradients({"layer": norms, "other": norms})

    assert found.network_level_analysis.overall_gradient_health in {
        "Healthy", "Warning", "Critical", "Unknown",
    }  # fmt: skip


def test_layers_with_gaps_are_left_out_of_the_whole_and_that_is_said():
    signals = run()
    gap = signals.layers[0]._replace(
        steps=signals.steps[:50], norms=signals.layers[0].norms[:50], name="late"
    )
    found = analysed(signals._replace(layers=(*signals.layers, gap)))

    assert any("1 layers lack" in each for each in found.notes)
    assert found.convergence_indicators.convergence_trend == "Converging"


def test_every_choice_is_told():
    policy = analysed(run(), window=80, stability_threshold=0.7).policy

    assert (policy["window"], policy["stability_threshold"]) == (80, 0.7)
    assert {"alpha", "flat_share_per_100_steps", "forecast_level"} <= set(policy)


def thousand_layers():
    steps = np.arange(4000)
    logs = 0.2 * noise(np.random.default_rng(1), 0.5, 4000, 1000)
    layers = tuple(
        LayerSignal(f"layer.{i}", steps, np.exp(logs[:, i] - steps / 2000)) for i in range(1000)
    )
    return Signals(layers, steps, 1 + np.exp(-steps / 1000))


def test_a_thousand_layers_of_four_thousand_points_take_seconds():
    signals = thousand_layers()
    start = time.process_time()
    found = analysed(signals, "expert")

    assert found.pairs_tested == 499_500
    assert time.process_time() - start < 20


@pytest.mark.slow
def test_a_thousand_layers_take_less_than_four_hundred_megabytes():
    import tracemalloc

    signals = thousand_layers()
    tracemalloc.start()
    analysed(signals, "expert")
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert most < 400e6
