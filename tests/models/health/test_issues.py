"""What is found in a tensor: each code by a planted fault, none in healthy weights."""

import numpy as np
import pytest
from simulation import replicates

from difflens.models.health.analyzer import WeightAnalyzer
from difflens.models.health.issues import ADVICE, RULES
from difflens.models.health.records import IssueCode, WeightConfig


def draws(seed=0):
    return np.random.default_rng(seed)


HEALTHY = draws().normal(0, 0.1, size=(64, 200))


def found(values, name="fc.weight", activations=None, **config):
    analyzer = WeightAnalyzer(WeightConfig(**config))
    (layer,) = analyzer.analyze_weight_distribution(
        {name: values}, activations=activations
    ).layer_analyses
    return layer.issues


def codes(values, name="fc.weight", **how):
    return {each.code.value: each.severity for each in found(values, name, **how)}


def planted(**changes):
    weights = HEALTHY.copy()
    for place, value in changes.values():
        weights[place] = value
    return weights


FAULTS = {
    "non_finite": planted(a=((3, 4), np.nan)),
    "saturated": planted(a=((3, 4), 65504.0)).astype(np.float16),
    "all_zero": np.zeros((8, 8)),
    "constant": np.full((8, 8), 0.3),
    "zero_rows": planted(a=(slice(0, 8), 0.0)),
    "mostly_zero": np.where(draws(1).random((64, 200)) < 0.8, 0, HEALTHY),
    "scale": HEALTHY * 1000,
    "extreme": planted(a=((3, 4), 50.0)),
    "skewed": draws(2).exponential(0.1, size=(64, 200)) ** 1.5,
    "heavy_tailed": draws(3).standard_t(1.5, size=(64, 200)) * 0.01,
}


def test_healthy_weights_have_no_issue():
    assert codes(HEALTHY) == {}


@pytest.mark.parametrize("code", sorted(FAULTS))
def test_a_planted_fault_is_found_with_its_number_and_its_advice(code):
    issue = next(each for each in found(FAULTS[code]) if each.code == code)

    assert issue.advice == ADVICE[IssueCode(code)]
    assert issue.evidence
    assert issue.text
    assert issue.name == "fc.weight"


def test_every_code_yields_advice():
    """DB-13: advice was looked up by words in a text, and two of four never matched."""
    assert set(ADVICE) == set(IssueCode) == set(RULES)
    assert all(ADVICE.values())


def test_dead_units_need_activations():
    """DB-10: zeros alone were called dead neurons."""
    weights = planted(a=(slice(0, 16), 0.0))
    activations = np.ones((10, 64))
    activations[:, :8] = 0

    without = codes(weights)
    beside = found(weights, activations={"fc": activations})

    assert without == {"zero_rows": "medium"}
    assert {each.code.value: each.evidence for each in beside} == {
        "dead_units": {"dead_units": 8, "units": 64, "share": 0.125},
        "zero_rows": {"zero_rows": 8, "rows": 64, "share": 0.125, "tolerance": 1e-4},
    }


def test_rows_that_are_nearly_zero_count_as_zero():
    """DB-10."""
    assert codes(planted(a=(slice(0, 16), 1e-9))) == {"zero_rows": "medium"}


@pytest.mark.parametrize(("rows", "severity"), [(1, "low"), (7, "medium"), (40, "high")])
def test_the_share_of_zero_rows_says_how_bad(rows, severity):
    assert codes(planted(a=(slice(0, rows), 0.0)), zero_fraction=0.99)["zero_rows"] == severity


def test_limits_depend_on_what_a_tensor_is():
    """DB-11: the same absolute limits for embeddings, gains, biases and matrices."""
    assert codes(np.zeros(8), "fc.bias") == {"all_zero": "info"}
    assert codes(np.ones(8), "layer_norm.weight") == {"constant": "info"}
    assert codes(draws().normal(0, 20, size=(50, 40)), "wte.weight") == {}
    assert codes(draws().normal(12, 1, size=100), "layer_norm.weight") == {}
    assert codes(np.array([np.nan, 0.0]), "bn.running_mean") == {"non_finite": "critical"}
    assert codes(np.zeros(8), "bn.running_mean") == {}


def test_the_scale_is_held_against_the_fan_in():
    """DB-11: weights of 11 were extreme whatever the fan-in."""
    wide = draws().normal(0, np.sqrt(2 / 20_000), size=(10, 20_000))

    assert codes(wide) == {}
    assert codes(wide * 50) == {"scale": "medium"}
    assert codes(wide / 50) == {"scale": "medium"}
    assert codes(wide * 50, scale_ratio=100) == {}


def test_one_far_value_is_no_heavy_tail():
    """DB-17: a claim about tails is backed by quantiles."""
    assert "heavy_tailed" not in codes(FAULTS["extreme"])


@pytest.mark.parametrize("seed", range(20))
def test_few_values_have_no_shape(seed):
    assert not {"skewed", "heavy_tailed"} & set(codes(draws(seed).exponential(size=(10, 10)) ** 3))


@replicates
def test_freshly_initialised_layers_raise_no_alarm(repeats):
    random = np.random.default_rng(1)
    alarms = 0
    for _ in range(repeats):
        fan_in = int(random.integers(16, 400))
        laws = (
            random.normal(0, np.sqrt(2 / fan_in), size=(32, fan_in)),
            random.uniform(-1, 1, size=(32, fan_in)) / np.sqrt(fan_in),
            random.normal(0, 0.02, size=(32, fan_in)),
        )
        alarms += sum(bool(codes(each)) for each in laws)

    assert alarms == 0
