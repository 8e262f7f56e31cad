import numpy as np
import pytest
from simulation import replicates
from versions.recorded import bare, examples, snapshot

from difflens.diffs.evidence.records import Latency, Past
from difflens.diffs.quality.trials import Settings
from difflens.versions.trials import trials


def found(left, right, metric, past=()):
    return next(each for each in trials(left, right, Settings(), past) if each.metric == metric)


def seeds(values, ids=()):
    return bare(replicates={"f1": tuple(values)}, replicate_ids=tuple(ids))


def test_two_single_numbers_cannot_be_tested():
    trial = found(snapshot(), snapshot(version="2"), "val_accuracy")

    assert (trial.source, trial.compare) == ("scalars", None)


def test_seeds_with_the_same_names_are_paired():
    ids = [str(each) for each in range(6)]
    left = [0.71, 0.75, 0.69, 0.80, 0.77, 0.73]
    right = [0.73, 0.76, 0.72, 0.81, 0.80, 0.74]
    paired = found(seeds(left, ids), seeds(right, ids), "f1").compare(0.95)
    apart = found(seeds(left), seeds(right), "f1").compare(0.95)

    assert paired.p == pytest.approx(0.0060156, rel=1e-4)
    assert apart.p == pytest.approx(0.4327173, rel=1e-6)


def test_seeds_in_another_order_are_the_same_pairs():
    left, right = [0.1, 0.5, 0.9], [0.2, 0.7, 0.95]
    one = found(seeds(left, "abc"), seeds(right, "abc"), "f1").compare(0.95)
    other = found(seeds(left, "abc"), seeds(right[::-1], "cba"), "f1").compare(0.95)

    assert one == other


def test_enough_seeds_go_before_examples_and_few_do_not():
    scores = examples([1, 0, 1, 1, 0, 1], "f1")
    many = bare(replicates={"f1": (0.1, 0.2, 0.3, 0.4, 0.5)}, evals=scores)
    few = bare(replicates={"f1": (0.1, 0.2)}, evals=scores)

    assert found(many, many, "f1").source == "seeds"
    assert found(few, few, "f1").source == "evals"


def test_latency_samples_are_compared_by_median_and_by_tail():
    random = np.random.default_rng(0)
    sides = [
        bare(latency_samples=[Latency(float(ms)) for ms in random.gamma(4, 10 * scale, 400)])
        for scale in (1, 2)
    ]
    middle, tail = (found(*sides, metric) for metric in ("inference_latency_ms", "latency_p95_ms"))

    assert middle.source == tail.source == "latency"
    assert middle.compare(0.95).low > 0
    assert tail.compare(0.95).difference > middle.compare(0.95).difference


def test_an_accuracy_with_its_number_of_examples_is_a_proportion():
    left = bare(metrics={"val_accuracy": 0.900}, evaluation={"n": 1000})
    right = bare(metrics={"val_accuracy": 0.891}, evaluation={"n": 1000})
    trial = found(left, right, "val_accuracy")

    assert trial.source == "counts"
    assert trial.compare(0.95).p == pytest.approx(0.51, abs=0.005)


def test_counts_are_used_only_where_it_is_clear_which_accuracy_they_are_of():
    both = bare(metrics={"val_accuracy": 0.9, "test_accuracy": 0.9}, evaluation={"n": 100})
    odd = bare(metrics={"val_accuracy": 0.97}, evaluation={"n": 10})

    assert found(both, both, "val_accuracy").source == "scalars"
    assert found(odd, odd, "val_accuracy").source == "scalars"


def test_past_versions_go_before_two_single_numbers():
    past = [Past(str(at), "val_accuracy", 0.9 + at / 1000) for at in range(5)]

    assert found(snapshot(), snapshot(), "val_accuracy", past).source == "history"


@replicates
def test_counts_raise_a_false_alarm_no_more_often_than_they_say(repeats):
    random = np.random.default_rng(1)
    alarms = 0
    for _ in range(repeats):
        left, right = (
            bare(metrics={"val_accuracy": hits / 200}, evaluation={"n": 200})
            for hits in random.binomial(200, 0.9, 2)
        )
        alarms += found(left, right, "val_accuracy").compare(0.95).p < 0.05

    assert alarms / repeats <= 0.05 + 3 * (0.05 * 0.95 / repeats) ** 0.5
