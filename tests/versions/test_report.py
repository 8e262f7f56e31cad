import numpy as np
import pytest
from versions.recorded import bare, snapshot

from difflens.versions import report as module
from difflens.versions.compare import compare
from difflens.versions.records.regressions import DifferentialDebuggingReport
from difflens.versions.regressions import detect_regressions
from difflens.versions.report import report
from difflens.versions.store.memory import Memory
from difflens.versions.version_diff import version_diff


def stored(*snapshots):
    store = Memory()
    store.put_all(snapshots)
    return store


def test_an_empty_store_has_a_report_and_no_best_model():
    found = report(stored())

    assert found.total_models == 0
    assert found.model_summary == {"total_models": 0}


def test_numbers_stay_numbers():
    found = report(
        stored(snapshot("a"), snapshot("b", metrics={"val_accuracy": 0.95}))
    ).model_summary

    assert found["best_accuracy_model"] == "b@1"
    assert found["best_accuracy_value"] == 0.95
    assert found["fastest_latency"] == 50.0
    assert found["total_models"] == 2


def test_equal_models_are_named_in_the_order_they_were_recorded():
    found = report(stored(snapshot("b"), snapshot("a"))).model_summary

    assert found["best_accuracy_model"] == found["fastest_model"] == "b@1"


def test_every_kind_of_result_is_counted_and_shown_newest_first():
    one, other = snapshot("a"), snapshot("b", day=2)
    store = stored(one, other)
    for at in range(7):
        store.put(compare({"a": one, "b": other}, timestamp=f"2026-02-0{at + 1}T00:00:00Z"))
        store.put(detect_regressions(other, one))
        store.put(version_diff(one, other))
    found = report(store)

    assert (found.comparison_count, found.regression_detection_count) == (7, 7)
    assert found.version_diff_count == 7
    assert len(found.recent_comparisons) == len(found.recent_version_diffs) == 5
    assert len(found.recent_regressions) == 3
    assert found.recent_comparisons[0].timestamp.startswith("2026-02-07")


def test_a_metric_is_followed_over_its_versions():
    random = np.random.default_rng(0)
    levels = [*random.normal(0.8, 0.01, 10), *random.normal(0.6, 0.01, 10)]
    found = report(stored(*(
        bare("m", str(at), day=at + 1, metrics={"val_accuracy": value})
        for at, value in enumerate(levels)
    )))  # fmt: skip
    history = found.histories[0]

    assert (history.model, history.metric, history.direction) == ("m", "val_accuracy", "higher")
    assert [each.value for each in history.points] == pytest.approx(levels)
    assert [each.version for each in history.change_points] == ["10"]
    assert history.slope < 0


def test_a_value_that_is_a_mean_of_seeds_has_its_interval():
    found = report(stored(
        bare("m", "1", day=1, replicates={"f1": (0.7, 0.8, 0.9)}),
        bare("m", "2", day=2, metrics={"custom_metrics": {"f1": 0.8}}),
    ))  # fmt: skip
    sampled, single = found.histories[0].points

    # mean 0.8, standard error 0.1/sqrt(3), t of two degrees 4.3027
    assert (sampled.low, sampled.high) == pytest.approx((0.551586, 1.048414), abs=1e-6)
    assert (single.low, single.high) == (None, None)


def test_models_are_held_side_by_side_by_their_newest_version():
    found = report(stored(
        snapshot("a", metrics={"val_accuracy": 0.5}),
        snapshot("a", "2", day=2, metrics={"val_accuracy": 0.95}),
        snapshot("b", metrics={"inference_latency_ms": 10.0}),
        snapshot("c"),
    ))  # fmt: skip
    points = {point.model: point for point in found.pareto}

    assert points["a"].values["val_accuracy"] == 0.95
    assert points["a"].on_front
    assert points["b"].on_front
    assert points["c"].dominated_by == ("a", "b")
    assert (found.total_models, found.total_names) == (4, 3)


def test_names_beyond_the_first_page_are_counted(monkeypatch):
    monkeypatch.setattr(module, "LINES", 3)

    assert report(stored(*(snapshot(f"m{at}") for at in range(7)))).total_names == 7


def test_three_models_on_two_tasks_are_ranked():
    models = [bare(name, metrics={"custom_metrics": {"f1_x": mean, "f1_y": mean}})
              for name, mean in (("a", 0.9), ("b", 0.8), ("c", 0.7))]  # fmt: skip
    found = report(stored(*models)).ranks

    assert min(found.mean_ranks, key=found.mean_ranks.get) == "a"


def test_a_report_survives_json():
    found = report(stored(snapshot("a"), snapshot("b"), snapshot("b", "2", day=2)))

    assert DifferentialDebuggingReport.from_json(found.to_json()) == found
