"""A store keeps what it is given and finds it again, on SQLite and PostgreSQL alike."""

import math
import sqlite3
import threading
import time
from contextlib import closing
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lanes import examples
from sqlalchemy import event
from versions.records.test_snapshots import snapshots

from difflens.core.errors import SnapshotError, StoreError, UnknownModel
from difflens.diffs.evidence.records import Example
from difflens.versions.records.ab import ABTestConclusion, ABTestConfig, ABTestMetrics, ABTestResult
from difflens.versions.records.comparisons import (
    ArchitectureDiff,
    ComparisonSummary,
    ModelComparisonResult,
    PerformanceComparison,
    StatisticalAnalysis,
    VersionDiff,
)
from difflens.versions.records.regressions import (
    DifferentialDebuggingReport,
    RegressionAssessment,
    RegressionDetectionResult,
)
from difflens.versions.records.snapshots import ModelMetrics, ModelSnapshot
from difflens.versions.store import open_store


def snap(name: str = "m", version: str = "1", day: int = 1, **metrics: Any) -> ModelSnapshot:
    return ModelSnapshot(
        name=name,
        version=version,
        timestamp=f"2026-01-{day:02}T00:00:00Z",
        metrics=ModelMetrics(custom_metrics=metrics),
    )


def comparison(*models: str) -> ModelComparisonResult:
    return ModelComparisonResult(
        models=models,
        performance_comparison=PerformanceComparison(),
        architecture_diff=ArchitectureDiff(),
        statistical_analysis=StatisticalAnalysis(p_values={"f1: a vs b": None}),
        summary=ComparisonSummary(best_model=None),
    )


def ab_test() -> ABTestResult:
    return ABTestResult(
        config=ABTestConfig(name="t", model_a="a", model_b="b"),
        model_a_results=ABTestMetrics(sample_size=2, metrics={"f1": (1.0, math.nan)}),
        model_b_results=ABTestMetrics(sample_size=0),
        conclusion=ABTestConclusion(winner=None, confidence=0.95, practical_significance=None,
                                    recommendation="", summary=""),
    )  # fmt: skip


def regression() -> RegressionDetectionResult:
    assessment = RegressionAssessment(
        health_score=None, critical_regressions=0, improvements=0, recommendation=""
    )
    return RegressionDetectionResult(regressions=(), improvements=(), overall_assessment=assessment)


def keys(lines) -> list[str]:
    return [f"{line.name}@{line.version}" for line in lines]


def test_a_snapshot_comes_back_as_it_was_also_after_opening_again(url):
    one = snap(f1=0.5)
    with open_store(url) as store:
        assert store.put(one) == "m@1"

    with open_store(url) as store:
        assert store.get("m@1") == one


def test_every_snapshot_comes_back_as_it_was(store):
    @given(snapshots)
    @examples(40)
    def holds(snapshot: ModelSnapshot) -> None:
        store.put(snapshot, replace=True)

        assert store.get(snapshot.key) == snapshot
        assert store.find(snapshot.name, limit=1)[0].id == snapshot.id

    holds()


@pytest.mark.parametrize(
    "names",
    [
        ("caf\u00e9", "cafe\u0301"),
        ("Model", "model"),
        ("it's", 'the "one"; DROP TABLE difflens_snapshots'),
        ("%", "_"),
        ("a" * 255, "\U0001f98a" * 255),
    ],
    ids=["composed", "case", "quotes", "patterns", "long"],
)
def test_names_that_only_look_alike_are_kept_apart(store, names):
    for number, name in enumerate(names):
        store.put(snap(name, f1=number))

    for number, name in enumerate(names):
        assert store.get(name).metrics.custom_metrics == {"f1": number}
        assert keys(store.find(name)) == [f"{name}@1"]
    assert store.names() == tuple(sorted(names))


def test_numbers_keep_every_bit(store):
    one = snap(zero=-0.0, small=5e-324, large=1.7976931348623157e308, whole=2**64 - 1, odd=math.nan)

    store.put(one)

    found = store.get("m").metrics.custom_metrics
    assert found == one.metrics.custom_metrics
    assert math.copysign(1, found["zero"]) == -1
    assert store.find()[0].metrics["small"] == 5e-324
    assert "odd" not in store.find()[0].metrics


def test_text_with_nul_comes_back(store):
    one = ModelSnapshot(name="m", version="1", metadata={"a\x00b": "c\x00d"})

    store.put(one)

    assert store.get("m@1") == one


def test_a_key_that_is_taken_is_refused_and_the_first_stays(store):
    store.put(snap(f1=0.5))

    with pytest.raises(SnapshotError, match=r"m@1 is already recorded in"):
        store.put(snap(f1=0.6))

    assert store.get("m@1").metrics.custom_metrics == {"f1": 0.5}


def test_the_same_snapshot_put_twice_is_kept_once(store):
    one = snap(f1=0.5)

    store.put(one)
    store.put(one)

    assert store.count(ModelSnapshot) == 1


def test_replacing_keeps_every_other_key_and_moves_the_new_one_to_the_front(store):
    for version in "123":
        store.put(snap(version=version, f1=0.1))

    store.put(snap(version="1", f1=0.9), replace=True)

    assert keys(store.find()) == ["m@1", "m@3", "m@2"]
    assert store.count(ModelSnapshot) == 3
    assert store.best("f1", highest=True) == (("m@1", 0.9),)
    assert store.verify() == 4


def test_a_name_alone_is_its_latest_version_by_time_not_by_arrival(store):
    store.put(snap(version="2", day=2))
    store.put(snap(version="1", day=1))

    assert store.get("m").version == "2"
    assert keys(store.find()) == ["m@1", "m@2"]


def test_a_version_may_hold_the_sign_that_parts_it_from_the_name(store):
    store.put(snap(version="a@b"))

    assert store.get("m@a@b").version == "a@b"


def test_an_unknown_key_is_answered_with_a_near_one(store):
    store.put(snap("resnet", "v1"))

    with pytest.raises(UnknownModel, match="no snapshot is called 'resmet'") as by_name:
        store.get("resmet")
    with pytest.raises(UnknownModel, match="no snapshot is called 'resnet@v2'") as by_version:
        store.get("resnet@v2")

    assert by_name.value.hint == "did you mean resnet?"
    assert by_version.value.hint == "did you mean resnet@v1?"


def test_pages_follow_each_other_without_gap_or_repetition(store):
    store.put_all(snap(version=str(number)) for number in range(25))
    seen, after = [], None

    while page := store.find("m", limit=10, after=after):
        seen += keys(page)
        after = page[-1].position
        store.put(snap("other", version=str(after)))  # a writer in between moves no page

    assert seen == [f"m@{number}" for number in reversed(range(25))]


def test_a_line_shows_figures_commit_and_size(store):
    store.put(
        ModelSnapshot(
            name="m",
            version="1",
            commit_hash="abc",
            metrics={"val_accuracy": 0.5},
            architecture={"parameter_count": 2**64 - 1},
            replicates={"f1": (0.25, 0.75)},
        )
    )

    line = store.find()[0]

    assert (line.commit_hash, line.parameter_count) == ("abc", 2**64 - 1)
    assert line.metrics == {"f1": 0.5, "val_accuracy": 0.5}


def test_names_and_metrics_are_listed_in_alphabetical_order(store):
    for name in ("b", "a", "C"):
        store.put(snap(name, f1=1.0, **{f"only_{name}": 1.0}))

    assert store.names() == ("C", "a", "b")
    assert store.names(limit=1, after="C") == ("a",)
    assert store.metrics() == ("f1", "only_C", "only_a", "only_b")
    assert store.metrics("a") == ("f1", "only_a")


def test_a_history_is_by_time_oldest_first_and_its_newest_part_where_it_is_long(store):
    for version, day in (("c", 3), ("a", 1), ("b", 2)):
        store.put(snap(version=version, day=day, f1=day / 10))

    assert [past.version for past in store.history("m", "f1")] == ["a", "b", "c"]
    assert [past.value for past in store.history("m", "f1", limit=2)] == [0.2, 0.3]
    assert store.history("m", "f2") == ()


def test_the_best_are_ranked_and_ties_go_to_the_first_recorded(store):
    for version, value in (("1", 0.5), ("2", 0.9), ("3", 0.9)):
        store.put(snap(version=version, f1=value))

    assert store.best("f1", highest=True, limit=2) == (("m@2", 0.9), ("m@3", 0.9))
    assert store.best("f1", highest=False) == (("m@1", 0.5),)
    assert store.best("f2", highest=True) == ()


def test_dropping_takes_one_version_or_all_of_a_name(store):
    store.put_all([snap(version="1"), snap(version="2"), snap("other")])

    assert store.drop("m@1") == ("m@1",)
    assert store.drop("m") == ("m@2",)

    assert keys(store.find()) == ["other@1"]
    with pytest.raises(UnknownModel):
        store.drop("m")


def test_nothing_is_dropped_until_keep_asks_and_then_it_says_what(store):
    store.put_all(snap(version=str(day), day=day, f1=day) for day in range(1, 6))
    store.put(snap("other"))
    assert store.count(ModelSnapshot) == 6

    gone = store.keep(2, pinned=["m@1"])

    assert gone == ("m@2", "m@3")
    assert keys(store.find()) == ["other@1", "m@5", "m@4", "m@1"]
    assert [past.version for past in store.history("m", "f1")] == ["1", "4", "5"]
    with pytest.raises(SnapshotError, match="would keep none"):
        store.keep(0)


@pytest.mark.parametrize(
    "result",
    [comparison("a", "b"), ab_test(), VersionDiff(from_version="1", to_version="2"), regression()],
    ids=lambda each: type(each).__name__,
)
def test_results_are_kept_and_come_back_newest_first(store, result):
    kind = type(result)
    later = kind.from_dict({**result.to_dict(), "warnings": ["later"]})
    for each in (result, later):
        store.put(each)

    assert store.results(kind) == (later, result)
    assert store.results(kind, limit=1, after=1) == (result,)
    assert store.count(kind) == 2
    assert store.count(ModelSnapshot) == 0
    assert store.verify() == 2


def test_what_is_no_snapshot_and_no_result_is_refused(store):
    with pytest.raises(SnapshotError, match="DifferentialDebuggingReport is nothing that a store"):
        store.results(DifferentialDebuggingReport)
    with pytest.raises(SnapshotError, match="ComparisonSummary is nothing that a store keeps"):
        store.put(ComparisonSummary())


def test_of_many_records_all_are_kept_or_none(store):
    store.put(snap(version="3"))

    with pytest.raises(SnapshotError, match="m@3 is already"):
        store.put_all([snap(version="1"), snap(version="2"), snap(version="3", f1=1.0)])

    assert keys(store.find()) == ["m@3"]


def test_many_threads_may_use_one_store(store):
    def put(number: int) -> None:
        for each in range(10):
            store.put(snap(f"m{number}", str(each)))
            store.find(limit=3)

    threads = [threading.Thread(target=put, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert store.count(ModelSnapshot) == 80
    assert len({line.position for line in store.find(limit=100)}) == 80


def test_a_body_that_was_tampered_with_is_told_and_not_given(store):
    store.put(snap(f1=0.5))
    with store._writing() as connection:
        connection.exec_driver_sql(
            "UPDATE difflens_snapshots SET body = replace(body, '0.5', '0.9')"
        )

    with pytest.raises(StoreError, match="m@1 is damaged: its digest"):
        store.get("m@1")
    with pytest.raises(StoreError, match="m@1 is damaged: its digest"):
        store.verify()


@given(st.lists(st.sampled_from("abc"), max_size=12), st.integers(1, 4))
@examples(25)
def test_keeping_the_newest_leaves_exactly_these(tmp_path_factory, names, newest):
    folder = tmp_path_factory.mktemp("keep")
    with open_store(str(folder / "store.db")) as store:
        store.put_all(snap(name, str(at), day=at + 1) for at, name in enumerate(names))

        gone = store.keep(newest)

        left = {name: [at for at, each in enumerate(names) if each == name][-newest:]
                for name in set(names)}  # fmt: skip
        assert {line.name: None for line in store.find()}.keys() == left.keys()
        for name, ats in left.items():
            found = sorted(int(line.version) for line in store.find(name))
            assert found == ats
        assert len(gone) == len(names) - sum(map(len, left.values()))


def test_a_large_snapshot_is_one_transaction(store):
    evals = [Example(str(number), number / 7, cluster=f"c{number % 9}") for number in range(20_000)]
    one = ModelSnapshot(name="m", version="1", evals=evals)

    store.put(one)

    assert store.get("m") == one


def test_of_several_that_record_one_version_at_once_one_succeeds(store):
    ends = []

    def put(number: int) -> None:
        try:
            ends.append(store.put(snap(f1=number)))
        except SnapshotError as error:
            ends.append(error.reason)

    threads = [threading.Thread(target=put, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert ends.count("m@1") == 1
    assert sum("is already recorded" in end for end in ends) == 7


def test_no_question_reads_more_of_a_table_than_its_answer(tmp_path):
    """Each is served by an index, so that a hundred thousand snapshots make no difference."""
    asked = []
    with open_store(str(tmp_path / "store.db")) as store:
        store.put(snap(f1=1.0))
        event.listen(store._engine, "before_cursor_execute",
                     lambda *call: asked.append((call[2], call[3])))  # fmt: skip
        store.put(snap(version="2", f1=1.0))
        store.find(after=9)
        store.find("m")
        store.get("m@1")
        store.get("m")
        store.names()
        store.metrics()
        store.metrics("m")
        store.history("m", "f1")
        store.best("f1", highest=True)
        store.results(VersionDiff)
    plans = []
    with closing(sqlite3.connect(tmp_path / "store.db")) as connection:
        for statement, values in asked:
            if statement.startswith("SELECT"):
                plan = connection.execute(f"EXPLAIN QUERY PLAN {statement}", values).fetchall()
                plans += [step[3] for step in plan]

    assert len(plans) > 12
    assert [step for step in plans if step.startswith("SCAN")] == []


@pytest.mark.slow
def test_a_million_tensors_are_one_snapshot(store):
    tensors = [{"name": f"t{at}", "dtype": "F32", "shape": [at], "count": at, "sha256": "a" * 64}
               for at in range(1_000_000)]  # fmt: skip
    one = ModelSnapshot(name="m", version="1", weights_summary={"tensors": tensors})
    start = time.monotonic()

    store.put(one)

    assert store.get("m").weights_summary.tensors[-1].name == "t999999"
    assert time.monotonic() - start < 60


def test_the_mean_of_samples_is_kept_with_its_standard_error(store):
    scores = tuple(Example(f"q{i}", float(i % 4 == 0), "accuracy") for i in range(40))
    store.put(ModelSnapshot(name="m", version="1", evals=scores))
    store.put(ModelSnapshot(name="m", version="2", metrics={"custom_metrics": {"accuracy": 0.5}}))

    first, second = store.history("m", "accuracy")

    assert (first.value, first.n) == (0.25, 40)
    assert first.standard_error == pytest.approx((0.25 * 0.75 / 39) ** 0.5)
    assert (second.standard_error, second.n) == (None, None)
