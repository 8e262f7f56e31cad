import numpy as np
import pytest
from diffs.analyses.scores import evals, examples, history, latencies, numbers
from scipy.stats import ttest_ind, ttest_rel

from difflens.diffs.evidence.records import Evidence, Past, Side
from difflens.diffs.quality.trials import Settings, trials

SETTINGS = Settings()


def only(evidence, settings=SETTINGS):
    (found,) = trials(evidence, settings)
    return found


def test_examples_with_one_id_are_paired():
    left, right = np.random.default_rng(0).normal(size=(2, 40))
    made = only(evals(left, right)).compare(0.95)

    assert (made.low, made.high) == pytest.approx(
        tuple(ttest_rel(right, left).confidence_interval(0.95))
    )


def test_examples_without_ids_in_common_are_two_samples():
    left, right = np.random.default_rng(0).normal(size=(2, 40))
    sides = Side(evals=examples(left)), Side(evals=examples(right, prefix="other"))
    found = only(Evidence(left=sides[0], right=sides[1]))

    interval = ttest_ind(right, left, equal_var=False).confidence_interval(0.95)
    assert (found.compare(0.95).low, found.compare(0.95).high) == pytest.approx(tuple(interval))
    assert found.note == "no ids in common: not paired, 40 and 40 examples"


def test_right_and_wrong_answers_are_told_by_their_flips():
    found = only(evals([1, 1, 1, 0, 0, 1], [1, 0, 0, 1, 0, 1]))

    assert found.flips == (2, 1)
    assert found.compare(0.95).method == "newcombe, paired"


def test_clusters_make_the_interval_wider_where_they_agree():
    random = np.random.default_rng(1)
    shifts = np.repeat(random.normal(size=40), 10)
    left = random.normal(size=400)
    right = left + shifts
    clusters = [f"c{i // 10}" for i in range(400)]

    alone = only(evals(left, right)).compare(0.95)
    together = only(evals(left, right, clusters=clusters)).compare(0.95)
    assert together.high - together.low > 2 * (alone.high - alone.low)


def test_the_strongest_evidence_speaks_for_a_metric():
    weak = numbers({"accuracy": 0.8}, {"accuracy": 0.7})
    past = tuple(Past(f"v{i}", "accuracy", 0.8 + i / 1e3) for i in range(6))
    strong = evals([1, 0] * 10, [0, 1] * 10)

    def source(**kept):
        left = Side(metrics=weak.left.metrics, evals=kept.get("left", ()))
        right = Side(metrics=weak.right.metrics, evals=kept.get("right", ()))
        return only(Evidence(left=left, right=right, history=kept.get("history", ()))).source

    assert source() == "metrics"
    assert source(history=past) == "history"
    assert source(history=past, left=strong.left.evals, right=strong.right.evals) == "evals"


def test_two_single_numbers_are_not_compared():
    found = only(numbers({"loss": 2.0}, {"loss": 1.0}))

    assert found.compare is None
    assert "no repeat measurements" in found.note


def test_a_latency_is_named_by_its_quantile_and_resampled_by_run():
    random = np.random.default_rng(0)
    evidence = latencies(random.gamma(9, 1, 400), random.gamma(9, 1.3, 400), runs=8)
    found = only(evidence, Settings(latency_quantile=0.9))
    made = found.compare(0.95)

    assert found.metric == "latency_p90_ms"
    assert made.low > 0
    assert made.p < 0.05
    low, high = found.own(0.95)
    assert low < found.right < high


def test_latencies_without_runs_say_so():
    random = np.random.default_rng(0)

    assert "no runs named" in only(latencies(*random.gamma(9, 1, (2, 100)))).note


def test_a_past_is_what_the_newest_value_is_expected_to_be():
    past = [0.80, 0.81, 0.79, 0.80, 0.82]
    made = only(history(past, 0.70)).compare(0.95)

    assert made.difference == pytest.approx(0.70 - np.mean(past))
    assert made.high < 0
    assert made.method == "prediction interval"


def test_a_past_of_equal_values_shows_no_noise_to_test_against():
    other, same = only(history([0.8] * 5, 0.7)), only(history([0.8] * 5, 0.8))

    assert other.compare(0.95).low is None
    assert "no noise" in other.compare(0.95).note
    assert (same.compare(0.95).low, same.compare(0.95).high) == (0, 0)


def test_a_drifting_past_is_continued_before_it_is_held_against():
    random = np.random.default_rng(3)
    past = 0.5 + 0.02 * np.arange(20) + random.normal(0, 0.002, 20)
    found = only(history(past, 0.9))

    assert "the line through 20 past versions" in found.note
    assert found.left == pytest.approx(0.9, abs=0.01)


def test_a_past_in_order_of_time_is_the_same_in_any_order():
    values = [0.8, 0.82, 0.79, 0.81, 0.83, 0.8, 0.84, 0.85, 0.86]
    past = [Past(f"v{i}", "m", value, f"2026-01-{i + 1:02}") for i, value in enumerate(values)]
    right = Side(metrics={"m": 0.5})

    one = only(Evidence(right=right, history=tuple(past)))
    other = only(Evidence(right=right, history=tuple(reversed(past))))
    assert one.compare(0.95) == other.compare(0.95)


def test_two_past_values_are_no_history():
    assert trials(history([0.8, 0.81], 0.7), SETTINGS) == []
