"""What every operation on versions obeys, whatever was recorded."""

import json

import msgspec
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from versions.recorded import bare
from versions.records.test_snapshots import snapshots

from difflens.core.policy import MetricRule, Policy
from difflens.diffs.evidence.records import Example, Latency
from difflens.versions.compare import compare
from difflens.versions.regressions import detect_regressions
from difflens.versions.version_diff import version_diff

WHEN = "2026-01-01T00:00:00Z"
OPERATIONS = {
    "compare": lambda left, right: compare({"left": left, "right": right}, timestamp=WHEN),
    "version_diff": lambda left, right: version_diff(left, right, timestamp=WHEN),
    "regressions": lambda left, right: detect_regressions(right, left, timestamp=WHEN),
}

every_operation = pytest.mark.parametrize("name", OPERATIONS)
numbers = st.floats(-1e6, 1e6).map(lambda value: round(value, 2))
scores = st.lists(st.integers(0, 3).map(float), max_size=12)


@st.composite
def measured(draw, name="net"):
    """Draw a version with samples of every kind, many of them degenerate."""
    return bare(
        name,
        metrics={"val_accuracy": draw(st.none() | st.floats(0, 1)),
                 "custom_metrics": draw(st.dictionaries(st.sampled_from(["f1", "odd", "loss"]),
                                                        numbers))},
        replicates={"f1": tuple(draw(st.lists(numbers, max_size=7)))},
        evals=[Example(f"q{at}", value) for at, value in enumerate(draw(scores))],
        latency_samples=[Latency(value) for value in draw(scores)],
        evaluation={"n": draw(st.none() | st.integers(0, 50))},
    )  # fmt: skip


def plain(result):
    """Read JSON as strict readers do: no NaN, no Infinity."""

    def refuse(word):
        raise AssertionError(word)

    return json.loads(result.to_json(), parse_constant=refuse)


@every_operation
@given(left=snapshots, right=snapshots)
def test_any_two_snapshots_are_answered_and_the_answer_survives_json(name, left, right):
    if name == "compare" and left.key == right.key:
        right = msgspec.structs.replace(right, version=f"{right.version}'"[-40:])
    found = OPERATIONS[name](left, right)

    assert type(found).from_json(found.to_json()) == found
    assert plain(found)


@every_operation
@given(left=measured("a"), right=measured("b"))
def test_samples_of_every_kind_are_answered(name, left, right):
    found = OPERATIONS[name](left, right)

    assert type(found).from_json(found.to_json()) == found


@given(measured())
def test_a_version_against_itself_never_regresses(version):
    again = msgspec.structs.replace(version, version="2")
    found = detect_regressions(again, version)

    assert found.regressions == found.improvements == ()
    assert version_diff(version, again).config_changes == ()


def timed(*values):
    return bare("net", latency_samples=[Latency(float(value)) for value in values])


@given(measured("a"), measured("b"))
@example(timed(*[0] * 7), timed(0, *[1] * 6))
@example(timed(*[0] * 7), timed(0, 0, 0, 1, 1, 1, 1))
@example(timed(*[0] * 7), timed(0, 0, 0, 0, 1, 1, 1, 1))
def test_turned_round_losses_are_gains(left, right):
    there, back = detect_regressions(right, left), detect_regressions(left, right)
    tested = {each.metric for each in there.verdicts if each.statistical}

    assert {each.metric for each in there.regressions} & tested == {
        each.metric for each in back.improvements
    } & tested


@given(measured("a"), measured("b"), measured("c"))
def test_a_further_metric_of_its_own_moves_no_value(left, right, further):
    models = {"a": left, "b": right}
    wider = {
        name: msgspec.structs.replace(
            model, replicates={**model.replicates, "added": further.replicates["f1"]}
        )
        for name, model in models.items()
    }
    policy = Policy(metrics={"odd": MetricRule("lower")})
    found, more = (compare(each, policy=policy).performance_comparison for each in (models, wider))

    for metric, each in found.custom_comparisons.items():
        assert more.custom_comparisons[metric].values == each.values
        assert more.custom_comparisons[metric].ranking == each.ranking


def test_every_null_of_a_result_has_its_reason():
    random = np.random.default_rng(0)
    left, right = (bare(name, replicates={"f1": tuple(random.random(6).tolist())}) for name in "ab")
    found = compare({"a": left, "b": right})
    sections = (
        found.performance_comparison,
        found.statistical_analysis,
        found.summary,
        found.architecture_diff,
        *found.performance_comparison.custom_comparisons.values(),
        version_diff(left, right).performance_delta,
        version_diff(left, right).weight_changes,
    )

    assert {type(each).__name__: each.unexplained() for each in sections} == {
        type(each).__name__: [] for each in sections
    }
