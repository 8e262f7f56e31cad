"""Results of comparisons: JSON both ways, refusals, and the schema that is published."""

import json
import math
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from difflens.core.errors import InvalidConfig, SnapshotError
from difflens.core.kept import Kept
from difflens.versions.records import ab as ab_results
from difflens.versions.records import comparisons
from difflens.versions.records import regressions as regression_results
from difflens.versions.records.ab import (
    ABTestConclusion,
    ABTestConfig,
    ABTestMetrics,
    ABTestResult,
    StatisticalTestResult,
    SummaryStats,
)
from difflens.versions.records.comparisons import PairwiseTest, VersionDiff
from difflens.versions.records.regressions import PUBLISHED, RegressionAssessment, schema

SCHEMA = Path(__file__).parents[3] / "docs" / "versions.schema.json"
RESULTS = sorted(
    {
        each
        for home in (comparisons, ab_results, regression_results)
        for each in vars(home).values()
        if isinstance(each, type) and issubclass(each, Kept) and each.__struct_fields__
    },
    key=lambda each: each.__name__,
)
finite = st.floats(allow_nan=False, allow_infinity=False)


def config(**fields: Any) -> ABTestConfig:
    return ABTestConfig(**{"name": "t", "model_a": "a", "model_b": "b", **fields})


def result(**fields: Any) -> ABTestResult:
    conclusion = ABTestConclusion(
        winner=None, confidence=0.95, practical_significance=None, recommendation="", summary=""
    )
    arms = {f"model_{arm}_results": ABTestMetrics(sample_size=0) for arm in "ab"}
    return ABTestResult(**{"config": config(), "conclusion": conclusion, **arms, **fields})


@given(st.data(), st.sampled_from(RESULTS))
def test_every_result_comes_back_from_json_as_it_was(data, kind):
    fields = {
        each.name: data.draw(finite, label=each.name)
        for each in msgspec.structs.fields(kind)
        if each.type == float | None
    }
    for bounded in ("p", "p_value", "p_adjusted", "probability_b_better", "health_score"):
        fields.pop(bounded, None)
    try:
        one = kind(**{**required(kind), **fields})
    except SnapshotError as refusal:  # the drawn numbers may contradict each other
        assert any(word in str(refusal) for word in ("above", "must be"))  # noqa: PT017
        return

    assert kind.from_json(one.to_json()) == one
    assert kind.from_dict(one.to_dict()) == one


def required(kind: Any) -> dict[str, Any]:
    return {
        each.name: value_of(msgspec.inspect.type_info(each.type), each.name)
        for each in msgspec.structs.fields(kind)
        if each.required
    }


def value_of(kind: Any, name: str) -> Any:
    if isinstance(kind, msgspec.inspect.StructType):
        return kind.cls(**required(kind.cls))
    if isinstance(kind, msgspec.inspect.UnionType):
        return None
    if isinstance(kind, msgspec.inspect.EnumType):
        return list(kind.cls)[-1]
    made = {"StrType": name, "FloatType": 0.5, "IntType": 2, "BoolType": True}
    return made.get(type(kind).__name__, {} if "Dict" in type(kind).__name__ else ())


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"name": ""}, "name is empty"),
        ({"model_a": ""}, "model_a is empty"),
        ({"model_b": "a"}, "model_a and model_b are both 'a'"),
        ({"sample_size": -1}, "sample_size is -1"),
        ({"duration_hours": 1.5}, "duration_hours is 1.5, not a whole number"),
        ({"min_effect_size": -0.1}, "min_effect_size is -0.1; it must be at least 0"),
        ({"min_effect_size": math.nan}, "min_effect_size is nan; it must be a finite number"),
        ({"margin": -1.0}, "margin is -1.0; it must be at least 0"),
        ({"power": 1.0}, "power is 1.0; it lies between 0 and 1"),
        ({"alpha": 0}, "alpha is 0; it lies between 0 and 1"),
        ({"effect_unit": "cohen"}, "effect_unit is 'cohen'; it must be one of standardised"),
        ({"directions": {"f1": "up"}}, "directions.f1 is 'up'; it must be one of higher, lower"),
    ],
)
def test_a_test_that_asks_nothing_is_refused(fields, said):
    with pytest.raises(InvalidConfig) as refusal:
        config(**fields)

    assert said in str(refusal.value)


@pytest.mark.parametrize(
    ("make", "fields", "said"),
    [
        (SummaryStats, {"median": 2.0, "q75": 1.0}, "median is 2.0, above q75, which is 1.0"),
        (SummaryStats, {"mean": math.nan}, "mean is nan; it must be a finite number"),
        (StatisticalTestResult, {"test_type": "t", "p_value": 1.5}, "p_value is 1.5; it must be"),
        (result, {"start_time": "2999-01-01T00:00:00Z"}, "is after end_time"),
        (VersionDiff, {"from_version": "1", "to_version": "2", "timestamp": "x"}, "timestamp is"),
        (PairwiseTest, {"metric": "m", "left": "a", "right": "b", "p": -1.0}, "p is -1.0"),
        (
            RegressionAssessment,
            {"health_score": 2.0, "critical_regressions": 0, "improvements": 0,
             "recommendation": ""},
            "health_score is 2.0; it must be between 0 and 1",
        ),
    ],
)  # fmt: skip
def test_a_result_that_contradicts_itself_is_refused(make, fields, said):
    with pytest.raises(SnapshotError) as refusal:
        make(**fields)

    assert said in str(refusal.value)


def test_samples_that_are_not_finite_are_kept_as_words():
    arm = ABTestMetrics(sample_size=2, metrics={"f1": [1.0, math.nan]})

    assert arm.metrics == {"f1": (1.0, "NaN")}
    assert ABTestMetrics.from_json(arm.to_json()) == arm


def test_the_end_of_a_test_is_always_set_and_its_start_only_if_known():
    done = result()

    assert done.end_time.endswith("Z")
    assert done.start_time is None


def test_the_published_schema_is_current():
    assert json.loads(SCHEMA.read_text()) == json.loads(json.dumps(schema())), (
        "run python -c 'import json, difflens.versions.records.regressions as r; "
        "print(json.dumps(r.schema(), indent=1))' > docs/versions.schema.json"
    )


@pytest.mark.parametrize("kind", PUBLISHED, ids=lambda each: each.__name__)
def test_the_schema_takes_what_is_written(kind):
    fields = required(kind)
    if "model_b" in fields:
        fields["model_b"] = "another"

    written = json.loads(kind(**fields).to_json())

    part = {**schema(), "anyOf": [{"$ref": f"#/$defs/{kind.__name__}"}]}
    jsonschema.validate(written, part)


def test_the_schema_refuses_a_word_where_a_number_belongs():
    written = {**config().to_dict(), "power": "much"}

    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(written, {**schema(), "anyOf": [{"$ref": "#/$defs/ABTestConfig"}]})
