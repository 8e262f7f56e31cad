"""The analyser as a whole: what goes in, what each depth adds, the same bytes twice."""

import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some
from lanes import examples
from training.gradients.layer_cases import noise, write_run

from difflens.core.errors import InvalidConfig, RunError, UnknownName
from difflens.training.gradients.analyzer import GradientAnalyzer, chosen
from difflens.training.gradients.histories import GradientHistory
from difflens.training.gradients.settings import DEPTHS
from difflens.training.history import read_history
from difflens.training.records.gradients import EnhancedLayerGradientAnalysis

MIXED = {
    "in.weight": noise(),
    "blocks.0.weight": np.r_[noise(150), 50 * noise(50)],
    "blocks.1.weight": [0.0] * 200,
    "blocks.2.weight": [*noise(50), float("nan"), *noise(100)],
    "out.weight": [],
}


def leaves(value):
    """Count what is known: leaves that are neither null nor a reason for one."""
    if isinstance(value, dict):
        return sum(leaves(part) for key, part in value.items() if key != "missing")
    if isinstance(value, list | tuple):
        return sum(map(leaves, value))
    return value is not None


@pytest.mark.parametrize("depth", DEPTHS)
def test_two_runs_give_the_same_bytes(depth):
    """DX-01, DX-07: no hash order, no clock, no dice."""
    first, second = (GradientAnalyzer(depth).analyze_gradients(MIXED).to_json() for _ in range(2))

    assert first == second


@pytest.mark.parametrize("depth", DEPTHS)
def test_json_gives_the_same_analysis_back(depth):
    """DX-05."""
    found = GradientAnalyzer(depth).analyze_gradients(MIXED)

    assert EnhancedLayerGradientAnalysis.from_json(found.to_json()) == found
    assert "<table>" in found._repr_html_()


def test_each_depth_knows_more_than_the_one_before_it():
    """DC-29: the reference ignores the depth."""
    layers = {f"net.{i}.weight": noise(300, seed=i) for i in range(8)}
    known = [leaves(GradientAnalyzer(each).analyze_gradients(layers).to_dict()) for each in DEPTHS]

    assert known == sorted(set(known))


def test_each_depth_costs_more_than_basic():
    """DC-29: what is not asked for is not computed."""
    layers = {f"net.{i}.weight": noise(1000, seed=i) for i in range(30)}

    def seconds(depth):
        began = time.process_time()
        GradientAnalyzer(depth).analyze_gradients(layers)
        return time.process_time() - began

    seconds("expert")  # what is cached between calls is there for all
    costs = {each: min(seconds(each) for _ in range(2)) for each in DEPTHS}
    assert costs["Basic"] < costs["Standard"] < costs["Expert"]


def test_what_a_depth_leaves_out_is_named():
    found = GradientAnalyzer("basic").analyze_gradients(MIXED)
    layer = found.layer("in.weight")

    assert found.gradient_hierarchy is None
    assert {each.field for each in found.missing} == {"gradient_hierarchy"}
    assert layer.flow_characteristics.trend_strength is None
    assert layer.flow_characteristics.unexplained() == []
    assert layer.comparative_analysis is None
    assert layer.health_metrics.overall_health == "Healthy"


@pytest.mark.parametrize("depth", DEPTHS)
def test_no_layers_at_all_is_one_consistent_unknown(depth):
    """DC-31: Healthy, Diverging, Degrading and Deteriorating at once in the reference."""
    found = GradientAnalyzer(depth).analyze_gradients({})
    network = found.network_level_analysis

    assert found.layer_details == {}
    assert found.optimization_priorities == ()
    assert network.overall_gradient_health == "Unknown"
    assert network.convergence_indicators.convergence_trend == "Unknown"
    assert network.training_dynamics.learning_phase is None


def test_both_names_of_the_operation_do_the_same():
    analyzer = GradientAnalyzer()

    assert analyzer.generate_enhanced_analysis(MIXED) == analyzer.analyze_gradients(MIXED)


@pytest.mark.parametrize(
    "settings_",
    [
        {"depth": "deep"},
        {"depth": None},
        {"convergence_window": 2},
        {"convergence_window": 10.5},
        {"convergence_window": True},
        {"stability_threshold": 0},
        {"stability_threshold": 1.5},
        {"stability_threshold": float("nan")},
        {"stability_threshold": "much"},
    ],
)
def test_settings_without_meaning_are_refused(settings_):
    """DX-08."""
    with pytest.raises(InvalidConfig, match=next(iter(settings_))):
        GradientAnalyzer(**settings_)


def test_dropped_records_are_told():
    history = GradientHistory("fc", 50)
    for step in range(80):
        history.add_gradient_flow({"layer_name": "fc", "step": step, "gradient_norm": 1.0})

    found = GradientAnalyzer().analyze_gradients({"fc": history})

    assert found.warnings == (
        "30 records of 1 layers had been dropped from their histories before",
    )


def test_a_run_is_analysed_from_its_folder_and_from_its_history(tmp_path):
    folder = write_run(tmp_path / "run", faults={"blocks.1.weight": 0.0})
    analyzer = GradientAnalyzer("comprehensive")

    found = analyzer.analyze_run(folder)

    assert found.layer("blocks.1.weight").health_metrics.overall_health == "Critical"
    assert found.layer("blocks.0.bias").health_metrics.overall_health == "Healthy"
    assert (found.records, found.first_step, found.last_step) == (150, 0, 1490)
    assert analyzer.analyze_run(read_history(folder), name=str(folder)) == found


def test_steps_of_a_run_are_real_steps(tmp_path):
    """DC-30: frames ten steps apart have a tenth of the slope."""
    decay = np.exp(-np.arange(150) / 50)
    folder = write_run(tmp_path / "run", faults={"blocks.1.weight": decay})

    layer = GradientAnalyzer().analyze_run(folder).layer("blocks.1.weight")

    assert layer.recent_flow.trend_strength == pytest.approx(-0.2, abs=0.03)


def test_the_latest_frames_of_a_long_run_are_read_in_full(tmp_path):
    """DC-30: points of a long run are means, its window is not."""
    folder = write_run(tmp_path / "run", 5000)

    found = GradientAnalyzer("basic").analyze_run(folder)

    layer = found.layer("blocks.0.weight")
    assert found.thinned
    assert layer.recent_statistics.samples == 100
    assert layer.recent_statistics.first_step == 49000
    assert any("5000 frames are told by" in each for each in found.warnings)


def test_a_folder_that_is_no_run_is_refused(tmp_path):
    with pytest.raises(RunError):
        GradientAnalyzer().analyze_run(tmp_path / "nothing")


def test_layers_are_chosen_by_pattern_and_the_network_stays_whole():
    found = GradientAnalyzer().analyze_gradients(MIXED)

    some_of_them = chosen(found, "blocks.*")

    assert list(some_of_them.layer_details) == [each for each in MIXED if "blocks" in each]
    assert some_of_them.left_out == 2
    assert some_of_them.network_level_analysis == found.network_level_analysis
    with pytest.raises(UnknownName, match="no layer is called"):
        chosen(found, "nothing*")


NORMS = some.lists(
    some.floats(0, 1e150) | some.sampled_from([float("nan"), float("inf"), 0.0]), max_size=40
)


@examples(20)
@given(some.dictionaries(some.text(max_size=8), NORMS, max_size=5), some.sampled_from(DEPTHS))
def test_any_norms_are_analysed_and_written_down(histories, depth):
    found = GradientAnalyzer(depth, 10).analyze_gradients(histories)

    assert EnhancedLayerGradientAnalysis.from_json(found.to_json()) == found
    assert list(found.layer_details) == list(histories)
    for name, norms in histories.items():
        if not np.isfinite(norms).all():
            assert found.layer(name).health_metrics.overall_health == "Critical"


@given(some.permutations(["a", "b", "c", "d"]))
@examples(10)
def test_the_order_of_the_layers_does_not_change_what_is_said_of_one(names):
    norms = {"a": noise(), "b": [0.0] * 200, "c": 1e-5 * noise(seed=1), "d": noise(seed=2)}

    found = GradientAnalyzer().analyze_gradients({name: norms[name] for name in names})
    other = GradientAnalyzer().analyze_gradients(norms)

    for name in norms:
        assert found.layer(name).health_metrics == other.layer(name).health_metrics
        assert found.layer(name).gradient_statistics == other.layer(name).gradient_statistics


@pytest.mark.slow
@pytest.mark.parametrize(("depth", "limit"), [("standard", 20), ("expert", 45)])
def test_a_thousand_layers_of_four_thousand_points_are_analysed_in_time(depth, limit):
    layers = {f"blocks.{i // 4}.{i % 4}.weight": noise(4000, seed=i) for i in range(1000)}

    began = time.process_time()
    GradientAnalyzer(depth).analyze_gradients(layers)

    assert time.process_time() - began <= limit
