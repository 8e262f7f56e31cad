from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from versions.recorded import examples, snapshot

import difflens
from difflens import DifferentialDebugger
from difflens.core.errors import (
    DisabledFeature,
    IncompatibleSnapshots,
    InsufficientData,
    InvalidConfig,
    SnapshotError,
    UnknownModel,
)
from difflens.versions.store import open_store

AB = {"name": "t", "model_a": "a", "model_b": "b"}


@pytest.fixture(params=["memory", "sqlite"])
def debugger(request, tmp_path):
    store = None if request.param == "memory" else f"sqlite:///{tmp_path}/store.db"
    with DifferentialDebugger(store=store) as opened:
        yield opened


def filled(debugger, *names):
    for at, name in enumerate(names):
        debugger.add_model_snapshot(snapshot(name, day=at + 1))
    return debugger


def test_the_defaults_are_those_of_the_contract():
    config = DifferentialDebugger().config

    assert config.significance_threshold == 0.05
    assert config.max_comparison_models == 10
    assert config.regression_sensitivity == 0.8
    assert config.performance_delta_threshold == 5.0
    assert config.enable_model_comparison
    assert config.enable_performance_delta


def test_a_new_debugger_is_empty(debugger):
    assert debugger.snapshots() == ()
    assert debugger.generate_report().total_models == 0


def test_one_snapshot_is_stored(debugger):
    filled(debugger, "a")

    assert debugger.generate_report().total_models == 1
    assert debugger.snapshot("a").name == "a"


def test_two_stored_snapshots_are_compared(debugger):
    found = filled(debugger, "a", "b").compare_models(["a", "b"])

    assert found.models == ("a", "b")
    assert debugger.generate_report().comparison_count == 1
    assert debugger.generate_report().recent_comparisons == (found,)


def test_three_models_pick_the_best_on_accuracy_and_latency(debugger):
    for name, accuracy, latency in (("a", 0.85, 50.0), ("b", 0.92, 80.0), ("c", 0.80, 20.0)):
        metrics = {"val_accuracy": accuracy, "inference_latency_ms": latency}
        debugger.add_model_snapshot(snapshot(name, metrics=metrics))
    found = debugger.compare_models(["a", "b", "c"])

    assert found.performance_comparison.accuracy_comparison.best_model == "b"
    assert found.performance_comparison.latency_comparison.best_model == "c"
    assert found.summary.best_model == "b"


def test_capacity_two_after_three_keeps_two():
    debugger = filled(DifferentialDebugger({"max_comparison_models": 2}), "a", "b", "c")

    assert [line.name for line in debugger.snapshots()] == ["c", "b"]


def test_a_store_drops_nothing_whatever_the_capacity(tmp_path):
    config = {"max_comparison_models": 2}
    with DifferentialDebugger(config, f"sqlite:///{tmp_path}/s.db") as debugger:
        filled(debugger, "a", "b", "c")

        assert len(debugger.snapshots()) == 3


def test_a_capacity_of_one_cannot_compare_and_is_refused():
    with pytest.raises(InvalidConfig, match="max_comparison_models"):
        DifferentialDebugger({"max_comparison_models": 1})


def test_updating_a_model_in_memory_throws_no_other_out():
    debugger = filled(DifferentialDebugger({"max_comparison_models": 2}), "a", "b")
    debugger.add_model_snapshot(snapshot("a", day=9))

    assert {line.name for line in debugger.snapshots()} == {"a", "b"}


def test_a_pinned_baseline_stays_in_memory():
    debugger = filled(DifferentialDebugger({"max_comparison_models": 2}), "a")
    debugger.pin("a")
    filled(debugger, "b", "c", "d")

    assert {line.name for line in debugger.snapshots()} == {"a", "d"}


def test_a_store_refuses_a_version_that_is_taken_unless_asked(tmp_path):
    with DifferentialDebugger(store=f"sqlite:///{tmp_path}/s.db") as debugger:
        filled(debugger, "a")
        with pytest.raises(SnapshotError, match="already recorded"):
            debugger.add_model_snapshot(snapshot("a", day=9))
        debugger.add_model_snapshot(snapshot("a", day=9), replace=True)

        assert debugger.snapshot("a@1").timestamp.startswith("2026-01-09")


@pytest.mark.parametrize(
    ("names", "error"),
    [
        (["a"], InsufficientData),
        (["a", "absent"], UnknownModel),
        (["a", "a"], IncompatibleSnapshots),
        (["a", "a@1"], IncompatibleSnapshots),
    ],
)
def test_one_name_a_missing_name_and_a_name_twice_are_refused(debugger, names, error):
    filled(debugger, "a", "b")

    with pytest.raises(error):
        debugger.compare_models(names)


@pytest.mark.parametrize(
    ("setting", "call"),
    [
        ("enable_model_comparison", lambda it: it.compare_models(["a", "b"])),
        ("enable_ab_analysis", lambda it: it.run_ab_test(AB, [1.0, 2.0], [1.0, 2.0])),
        ("enable_version_diff", lambda it: it.track_version_diff("a", "b")),
        ("enable_regression_detection", lambda it: it.detect_regressions("a", "b")),
    ],
)
def test_what_is_switched_off_is_an_error_that_names_the_switch(setting, call):
    debugger = filled(DifferentialDebugger({setting: False}), "a", "b")

    with pytest.raises(DisabledFeature) as caught:
        call(debugger)
    assert setting in caught.value.hint
    assert debugger.generate_report().total_models == 2


@pytest.mark.parametrize("n", [50, 100])
def test_an_ab_test_of_random_values_succeeds(debugger, n):
    random = np.random.default_rng(n)
    found = debugger.run_ab_test(AB, random.random(n).tolist(), random.random(n).tolist())

    assert 0 <= found.conclusion.confidence <= 1
    assert found.model_a_results.sample_size == found.model_b_results.sample_size == n
    assert found.end_time
    assert debugger.generate_report().recent_ab_tests == (found,)


def test_the_debuggers_alpha_is_that_of_its_ab_tests():
    debugger = DifferentialDebugger({"significance_threshold": 0.001})
    found = debugger.run_ab_test(AB, {"accuracy": [0.9, 0.8, 0.7]}, {"accuracy": [0.1, 0.2, 0.3]})

    assert found.conclusion.confidence == 0.999


def test_arms_that_are_called_like_no_recorded_model_are_warned_of(debugger):
    found = filled(debugger, "a").run_ab_test(AB, [1.0, 2.0], [1.0, 2.0])

    assert [each for each in found.warnings if "not recorded" in each] == [
        f"b is not recorded in {debugger.store.where}"
    ]


def test_a_debugger_with_a_clock_of_its_own_repeats_itself_to_the_byte():
    def run():
        debugger = filled(DifferentialDebugger(clock=lambda: "2026-03-01T00:00:00Z"), "a", "b")
        for at, name in enumerate("ab"):
            identity = f"00000000-0000-0000-0000-00000000000{at}"
            debugger.add_model_snapshot(snapshot(name, day=at + 1, id=identity))
        debugger.compare_models(["a", "b"])
        debugger.run_ab_test(AB, [1.0, 2.0, 4.0], [1.0, 2.0, 3.0])
        debugger.track_version_diff("a", "b")
        debugger.detect_regressions("b", "a")
        return debugger.generate_report().to_json()

    assert run() == run()


def test_examples_may_be_tested_directly(debugger):
    found = debugger.run_ab_test(AB, examples([1, 1, 1, 0] * 10), examples([0, 1, 0, 0] * 10))

    assert found.statistical_tests["accuracy"].paired
    assert found.conclusion.winner == "a"


@pytest.mark.parametrize("pair", [("absent", "a"), ("a", "absent")])
def test_a_version_diff_of_a_missing_model_is_refused(debugger, pair):
    filled(debugger, "a")

    with pytest.raises(UnknownModel, match="absent"):
        debugger.track_version_diff(*pair)


def test_accuracy_up_is_positive_and_latency_down_negative(debugger):
    debugger.add_model_snapshot(snapshot("m", "1"))
    better = {"val_accuracy": 0.95, "inference_latency_ms": 40.0}
    debugger.add_model_snapshot(snapshot("m", "2", day=2, metrics=better))
    found = debugger.track_version_diff("m@1", "m@2")

    assert found.performance_delta.accuracy_delta > 0 > found.performance_delta.latency_delta
    assert (found.from_version, found.to_version) == ("1", "2")


def test_accuracy_from_90_to_70_is_a_regression(debugger):
    debugger.add_model_snapshot(snapshot("base"))
    debugger.add_model_snapshot(snapshot("now", day=2, metrics={"val_accuracy": 0.7}))
    found = debugger.detect_regressions("now", "base")

    assert [each.metric for each in found.regressions] == ["val_accuracy"]
    assert (found.current, found.baseline) == ("now@1", "base@1")


def test_a_strictly_better_model_has_no_regression_and_is_healthy(debugger):
    debugger.add_model_snapshot(snapshot("base"))
    better = {"val_accuracy": 0.95, "val_loss": 0.2, "inference_latency_ms": 40.0}
    debugger.add_model_snapshot(snapshot("now", day=2, metrics=better))
    found = debugger.detect_regressions(current_model="now", baseline_model="base")

    assert found.regressions == ()
    assert found.improvements
    assert found.overall_assessment.health_score > 0.5


def test_versions_before_the_current_one_are_its_history(debugger):
    random = np.random.default_rng(0)
    for at, value in enumerate(random.normal(0.9, 0.003, 8)):
        debugger.add_model_snapshot(snapshot("m", str(at), at + 1, metrics={"val_accuracy": value}))
    debugger.add_model_snapshot(snapshot("m", "8", 9, metrics={"val_accuracy": 0.8}))
    debugger.add_model_snapshot(snapshot("m", "9", 10, metrics={"val_accuracy": 0.1}))
    found = debugger.detect_regressions("m@8", "m@7")

    assert found.regressions[0].basis == "history"
    assert len(found.histories[0].points) == 8


def test_an_open_store_is_shared_and_left_open(tmp_path):
    with open_store(f"sqlite:///{tmp_path}/s.db") as store:
        with DifferentialDebugger(store=store) as first:
            filled(first, "a")
        second = DifferentialDebugger(store=store)

        assert second.snapshot("a").name == "a"


def test_what_was_recorded_is_there_after_opening_again(tmp_path):
    url = f"sqlite:///{tmp_path}/s.db"
    with DifferentialDebugger(store=url) as first:
        filled(first, "a", "b").compare_models(["a", "b"])
    with DifferentialDebugger(store=url) as second:
        found = second.generate_report()

    assert (found.total_models, found.comparison_count) == (2, 1)


def test_many_threads_may_use_one_debugger(debugger):
    def work(at):
        debugger.add_model_snapshot(snapshot("m", str(at), day=at % 28 + 1))
        debugger.add_model_snapshot(snapshot(f"n{at}"), replace=True)
        return debugger.run_ab_test(AB, [1.0, 2.0, 3.0], [2.0, 3.0, float(at)]).end_time

    debugger = DifferentialDebugger({"max_comparison_models": 100}) if (
        debugger.store.where == "memory"
    ) else debugger  # fmt: skip
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(24)))
    found = debugger.generate_report()

    assert found.total_models == 48
    assert found.ab_test_count == 24


def test_the_debugger_is_one_of_the_public_names():
    assert difflens.DifferentialDebugger is DifferentialDebugger
