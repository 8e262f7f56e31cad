import pytest
from versions.recorded import snapshot
from versions.store import test_store as laws

from difflens.core.errors import SnapshotError, UnknownModel
from difflens.versions.compare import compare
from difflens.versions.records.comparisons import ModelComparisonResult
from difflens.versions.records.snapshots import ModelSnapshot
from difflens.versions.store import memory
from difflens.versions.store.memory import Memory

LAWS = [
    laws.test_a_key_that_is_taken_is_refused_and_the_first_stays,
    laws.test_the_same_snapshot_put_twice_is_kept_once,
    laws.test_a_name_alone_is_its_latest_version_by_time_not_by_arrival,
    laws.test_a_version_may_hold_the_sign_that_parts_it_from_the_name,
    laws.test_pages_follow_each_other_without_gap_or_repetition,
    laws.test_a_line_shows_figures_commit_and_size,
    laws.test_names_and_metrics_are_listed_in_alphabetical_order,
    laws.test_a_history_is_by_time_oldest_first_and_its_newest_part_where_it_is_long,
    laws.test_the_best_are_ranked_and_ties_go_to_the_first_recorded,
    laws.test_dropping_takes_one_version_or_all_of_a_name,
    laws.test_nothing_is_dropped_until_keep_asks_and_then_it_says_what,
    laws.test_of_many_records_all_are_kept_or_none,
    laws.test_many_threads_may_use_one_store,
    laws.test_what_is_no_snapshot_and_no_result_is_refused,
]


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
def test_memory_keeps_the_laws_of_every_store(law):
    law(Memory())


def filled(capacity, count):
    store = Memory(capacity)
    for at in range(count):
        store.put(snapshot(f"m{at}", day=at + 1))
    return store


def test_capacity_two_after_three_keeps_two_and_says_which_is_gone():
    store = filled(2, 3)

    assert [line.name for line in store.find()] == ["m2", "m1"]
    assert store.dropped == {"snapshots": 1}
    assert "m0@1 was dropped" in store.warnings[0]


def test_updating_a_key_at_capacity_throws_nobody_out():
    store = filled(2, 2)
    store.put(snapshot("m0", day=9), replace=True)

    assert {line.name for line in store.find()} == {"m0", "m1"}
    assert store.dropped == {}


def test_the_one_updated_last_is_dropped_last():
    store = filled(2, 2)
    store.put(snapshot("m0", day=9), replace=True)
    store.put(snapshot("m2", day=10))

    assert {line.name for line in store.find()} == {"m0", "m2"}


def test_a_new_version_does_not_overwrite_the_one_before():
    store = Memory(5)
    store.put(snapshot("m", "1"))
    store.put(snapshot("m", "2", day=2))

    assert store.count(ModelSnapshot) == 2
    assert store.get("m").version == "2"


def test_a_pinned_baseline_is_never_dropped():
    store = filled(2, 1)
    store.pin("m0")
    for at in range(5):
        store.put(snapshot(f"n{at}", day=at + 2))

    assert {line.name for line in store.find()} == {"m0", "n4"}


def test_results_are_bounded_and_those_gone_are_counted(monkeypatch):
    monkeypatch.setattr(memory, "RESULTS", 3)
    store = filled(None, 2)
    found = compare({"m0": store.get("m0"), "m1": store.get("m1")})
    for _ in range(5):
        store.put(found)

    assert store.count(ModelComparisonResult) == 5
    assert len(store.results(ModelComparisonResult, limit=10)) == 3
    assert store.dropped == {"ModelComparisonResult": 2}


def test_what_is_not_there_is_an_unknown_model():
    with pytest.raises(UnknownModel, match="absent"):
        filled(2, 2).get("absent")
    with pytest.raises(SnapshotError, match="keep none"):
        filled(2, 2).keep(0)
