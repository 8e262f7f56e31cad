import numpy as np
import pytest
from diffs.analyses.scores import evals, history, latencies, numbers, rules
from hypothesis import given
from hypothesis import strategies as st

from difflens.core.policy import MetricRule, Policy
from difflens.diffs.evidence.records import Evidence, Side
from difflens.diffs.quality.check import Check, checks, stepped_down
from difflens.diffs.quality.trials import Settings, Trial
from difflens.stats.comparison import Comparison, quantile, two_sided
from difflens.stats.decision import decide, holm

SETTINGS = Settings()


def normal(z: float, direction="lower", margin=None) -> Check:
    """A metric whose loss is z standard errors."""

    def compare(level):
        reach = quantile((1 + level) / 2, None)
        return Comparison(z, z - reach, z + reach, level, two_sided(z, None), "z", 99, 99,
                          standard_error=1.0)  # fmt: skip

    trial = Trial(f"m{z}", "evals", 10.0, 10.0 + z, "", compare)
    made = compare(0.95)
    return Check(trial, direction, MetricRule(margin=margin), made, decide(made, direction))


@given(st.lists(st.floats(0, 6), min_size=1, max_size=6))
def test_intervals_step_down_as_holms_p_values_do(zs):
    found = stepped_down([normal(z) for z in zs], 0.05, lambda _: 0.0)

    rejected = [each.sure_loss > 0 for each in found]
    adjusted = holm([two_sided(z, None) for z in zs])
    certain = [
        (mine, p) for mine, p in zip(rejected, adjusted, strict=True) if abs(p - 0.05) > 1e-9
    ]
    assert all(mine == (p < 0.05) for mine, p in certain)


def test_a_margin_is_what_must_be_crossed():
    near, far = stepped_down(
        [normal(4.0, margin=3.0), normal(9.0, margin=3.0)], 0.05, lambda each: each.rule.margin
    )

    assert near.sure_loss < 3.0 < far.sure_loss
    assert far.sure_level == pytest.approx(0.975)
    assert near.sure_level == pytest.approx(0.95)


def test_what_has_no_direction_or_too_little_data_takes_no_share():
    odd = normal(5.0, direction=None)
    found = stepped_down([odd, normal(2.2)], 0.05, lambda _: 0.0)

    assert found[0].sure_loss is None
    assert found[1].sure_level == pytest.approx(0.95)


def test_a_bootstrap_without_a_p_takes_part_in_the_family():
    random = np.random.default_rng(0)
    timed = latencies(random.gamma(9, 1, 300), random.gamma(9, 1, 300))
    answers = evals([1, 0] * 20, [0, 1] * 20)
    sides = [Side(evals=one.evals, latency=other.latency) for one, other in
             ((answers.left, timed.left), (answers.right, timed.right))]  # fmt: skip

    found = checks(Evidence(left=sides[0], right=sides[1]), Policy(), SETTINGS)

    assert {each.source for each in found} == {"evals", "latency"}
    assert [each.sure_level for each in found] == pytest.approx([0.975, 0.975])
    assert {each.source: each.adjusted for each in found}["latency"] is None


def test_swapping_the_sides_turns_the_loss_around():
    random = np.random.default_rng(4)
    left, right = random.normal(size=(2, 60))
    (one,) = checks(evals(left, right), Policy(), SETTINGS)
    (other,) = checks(evals(right, left), Policy(), SETTINGS)

    assert one.degradation == pytest.approx(-other.degradation)
    assert one.decision.degradation_low == pytest.approx(-other.decision.degradation_high)


def test_a_margin_of_nothing_is_no_trouble():
    (found,) = checks(evals([1, 0] * 20, [1, 0] * 20), rules(accuracy=MetricRule(margin=0.0)),
                      SETTINGS)  # fmt: skip

    assert found.decision.word == "inconclusive"


def test_the_users_direction_goes_before_the_known_one():
    policy = rules(accuracy=MetricRule("lower"))
    (found,) = checks(numbers({"accuracy": 0.8}, {"accuracy": 0.9}), policy, SETTINGS)

    assert found.degradation == pytest.approx(0.1)


def test_three_past_versions_are_enough_for_a_verdict_of_history():
    (found,) = checks(history([0.8, 0.81, 0.79], 0.2), Policy(), SETTINGS)

    assert found.is_enough
    assert found.sure_loss > 0


def test_what_could_be_found_stands_beside_what_was():
    left, right = np.random.default_rng(0).normal(size=(2, 50))
    (found,) = checks(evals(left, right), Policy(), SETTINGS)

    error = found.comparison.standard_error
    assert found.to_dict()["detectable"] == pytest.approx(2.86 * error, rel=0.02)
