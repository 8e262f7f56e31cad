"""`regressions` and `--regression-test` give one verdict on the same data."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from versions.recorded import bare

from difflens.core.policy import MetricRule, Policy
from difflens.diffs.analyses import ask
from difflens.diffs.evidence.records import Evidence, Example, Latency, Side
from difflens.diffs.story import diff
from difflens.versions.regressions import detect_regressions

MODEL = {"w": np.arange(4, dtype=np.float32)}
POLICIES = (
    Policy(),
    Policy(metrics={"score": MetricRule(margin=0.1)}),
    Policy(metrics={"f1": MetricRule("lower")}, direction="lower"),
    Policy(
        {"regression_test": {"alpha": 0.2, "share_margin": 0.05}, "regressions": {"minor": 3.0}}
    ),
)


def evidence_of(left, right):
    """Return two sides, each (scores, latencies, numbers), as they are recorded and as evidence."""
    sides = [
        {"evals": tuple(Example(f"q{at}", float(score), metric)
                        for metric, values in scores.items() for at, score in enumerate(values)),
         "latency": tuple(Latency(float(ms)) for ms in times), "metrics": numbers}
        for scores, times, numbers in (left, right)
    ]  # fmt: skip
    recorded = [
        bare(version=str(at), day=at, evals=side["evals"], latency_samples=side["latency"],
             metrics={"custom_metrics": side["metrics"]})
        for at, side in enumerate(sides, 1)
    ]  # fmt: skip
    return recorded, Evidence(left=Side(**sides[0]), right=Side(**sides[1]))


def verdicts(left, right, policy):
    """Ask both about two sides."""
    recorded, evidence = evidence_of(left, right)
    envelope = ask("regression_test", diff(MODEL, MODEL), evidence, policy)
    found = detect_regressions(recorded[1], recorded[0], policy=policy)
    return envelope.fields["verdict"], found.overall_assessment.verdict


@st.composite
def sides(draw):
    """Draw what two models did: examples, latencies and numbers, each perhaps absent."""
    random = np.random.default_rng(draw(st.integers(0, 999)))
    size, shift = draw(st.sampled_from([0, 1, 3, 40, 600])), draw(st.sampled_from([0.0, 0.02, 0.3]))
    metrics = draw(st.sets(st.sampled_from(["score", "f1", "sparkle", "loss"]), max_size=2))
    names = draw(st.sets(st.sampled_from(["val_loss", "accuracy", "epoch"]), max_size=2))
    timed = draw(st.sampled_from([0, 60]))
    found = []
    for lost in (0.0, shift):
        scores = {name: random.random(size) < 0.8 - lost for name in sorted(metrics)}
        numbers = {name: round(float(random.random()), 2) for name in sorted(names)}
        found.append((scores, random.gamma(9, 1 + lost, timed), numbers))
    return found


@pytest.mark.parametrize("policy", POLICIES, ids=["none", "margin", "direction", "thresholds"])
@given(both=sides())
def test_both_commands_agree_on_every_data_set(policy, both):
    gate, regressions = verdicts(*both, policy)

    assert gate == regressions


@pytest.mark.parametrize("policy", POLICIES[:3], ids=["none", "margin", "direction"])
@given(both=sides())
def test_the_alarm_goes_by_the_same_verdict(policy, both):
    evidence = evidence_of(*both)[1]
    one = ask("regression_test", diff(MODEL, MODEL), evidence, policy).fields
    other = ask("alert_on_degradation", diff(MODEL, MODEL), evidence, policy).fields

    assert other["verdict"] == one["verdict"]
    assert other["alert_triggered"] in (None, one["verdict"] == "failed")


@pytest.mark.parametrize(
    ("rates", "word"),
    [((0.6, 0.9), "passed"), ((0.9, 0.6), "failed"), ((0.8, 0.79), "cannot_tell")],
)
def test_each_verdict_is_reached_by_both(rates, word):
    random = np.random.default_rng(0)
    both = [({"score": random.permutation(300) < 300 * rate}, (), {}) for rate in rates]

    assert verdicts(*both, Policy()) == (word, word)
