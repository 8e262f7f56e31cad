import numpy as np
from simulation import replicates

from difflens.core.policy import Policy
from difflens.diffs.analyses.regression_test import courses
from difflens.diffs.evidence.records import Evidence, Past, Side


def course(values, current=None):
    history = tuple(Past(f"v{i}", "accuracy", float(value)) for i, value in enumerate(values))
    right = Side(metrics={"accuracy": current}) if current is not None else Side()
    (found,) = courses(Evidence(history=history, right=right), Policy(), alpha=0.05, seed=0)
    return found


def test_a_jump_is_named_by_the_first_version_of_the_new_regime():
    random = np.random.default_rng(1)
    found = course([*random.normal(0.9, 0.005, 12), *random.normal(0.8, 0.005, 12)])

    surest = min(found["change_points"], key=lambda each: each["p"])
    assert surest["version"] == "v12"
    assert surest["after"] < 0.82
    assert surest["before"] > 0.88


def test_right_is_the_last_point_of_the_course():
    found = course([0.9, 0.91, 0.9], current=0.7)

    assert found["versions"] == ["v0", "v1", "v2", "right"]
    assert found["values"][-1] == 0.7


def test_a_drift_after_the_baseline_raises_an_alarm():
    random = np.random.default_rng(2)
    found = course([*random.normal(0.9, 0.01, 20), *random.normal(0.88, 0.01, 20)])

    assert found["cusum_alarms"]
    assert found["in_control_run_length"] > 400


def test_a_short_history_is_not_watched_and_says_so():
    found = course([0.9, 0.8, 0.9])

    assert found["cusum_alarms"] is None
    assert "more than 20 values" in found["why"]


@replicates
def test_noise_has_change_points_no_more_often_than_promised(repeats):
    random = np.random.default_rng(3)
    few = max(repeats // 5, 60)  # each is a permutation test of its own
    found = sum(bool(course(random.normal(0.9, 0.01, 24))["change_points"]) for _ in range(few))

    assert found / few <= 0.05 + 3 * (0.05 * 0.95 / few) ** 0.5
