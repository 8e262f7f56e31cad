"""What to do first: severity, then distance from the limit; layers, groups and the network."""

from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some
from training.gradients.layer_cases import noise

from difflens.training.gradients.analyzer import GradientAnalyzer
from difflens.training.gradients.priorities import _action, _score
from difflens.training.records.gradients import (
    ActionType,
    ImplementationEffort,
    OptimizationTarget,
    SuggestionType,
    UrgencyLevel,
)

DEAD = [0.0] * 200


def ordered(histories, depth="comprehensive"):
    return GradientAnalyzer(depth).analyze_gradients(histories).optimization_priorities


def of(histories, name):
    return next(each for each in ordered(histories) if each.target_name == name)


def test_what_is_not_finite_comes_before_everything():
    found = ordered({"wild": noise(sigma=2.0), "dead": DEAD, "nan": [*noise(), np.nan]})

    layers = [each.target_name for each in found if each.target_type == "IndividualLayer"]
    assert layers == ["nan", "dead", "wild"]


@given(some.floats(0, 1e300), some.floats(0, 1e300))
def test_the_score_is_bounded_and_severity_always_comes_first(mild, severe):
    """DC-28: an unbounded term, clipped at one, made ties of everything that mattered."""
    assert 1 <= _score("Warning", mild) <= 2 <= _score("Critical", severe) <= 3
    assert _score("Warning", 1.0) < _score("Warning", 2.0)


def test_equals_stand_in_the_order_of_the_network():
    """DC-28, DX-01."""
    names = ["zeta", "alpha", "mid"]
    found = [each for each in ordered(dict.fromkeys(names, DEAD))
             if each.target_type == "IndividualLayer"]  # fmt: skip

    assert [each.target_name for each in found] == names
    assert len({each.priority_score for each in found}) == 1


def test_healthy_layers_are_no_priorities():
    assert ordered({f"layer{i}": noise(seed=i) for i in range(4)}) == ()


def test_all_three_kinds_of_targets_are_found():
    """DC-28, DX-10: the reference has priorities of layers only."""
    layers = {f"net.{i}.{part}": DEAD for i in range(2) for part in "ab"}

    found = ordered(layers | {"head": noise()})

    assert {each.target_type for each in found} == set(get_args(OptimizationTarget))
    assert found[0].target_type == "NetworkLevel"
    assert found[0].finding == "dead in 4 of 5 layers"
    assert found[0].evidence["share"] == 0.8


def test_a_rule_that_few_layers_break_is_no_matter_of_the_group():
    found = ordered({"net.0.a": DEAD, "net.0.b": noise(), "net.0.c": noise(seed=1),
                     "head": noise(seed=2)})  # fmt: skip

    assert "block net.0" not in {each.target_name for each in found}
    assert "network" not in {each.target_name for each in found}


def test_a_network_that_fades_with_depth_is_a_finding_of_its_own():
    layers = {f"layer{i}": 0.4 ** (9 - i) * noise(seed=i) for i in range(10)}

    found = next(each for each in ordered(layers, "standard") if each.rule == "depth")

    assert found.target_type == "NetworkLevel"
    assert found.evidence["slope"] == pytest.approx(-np.log(0.4), abs=0.05)


def urgencies():
    past = noise(400)
    past[20] = 60.0
    grown = np.exp(np.arange(150) * 0.03) * noise(150, sigma=0.05)
    return {"Critical": DEAD, "High": grown, "Medium": noise(sigma=2.0), "Low": past}


@pytest.mark.parametrize("word", get_args(UrgencyLevel))
def test_every_urgency_has_a_series_that_earns_it(word):
    """DX-10."""
    assert of({"layer": urgencies()[word]}, "layer").urgency_level == word


def test_every_kind_of_action_and_effort_has_a_suggestion_behind_it():
    """DX-10, with the test that every kind of suggestion has a series."""
    made = [_action("", kind) for kind in get_args(SuggestionType)]

    assert {each.action_type for each in made} == set(get_args(ActionType))
    assert {each.implementation_effort for each in made} == set(get_args(ImplementationEffort))


def test_neither_impact_nor_potential_is_made_up():
    """DX-04, DC-28."""
    for each in ordered({"dead": DEAD, "wild": noise(sigma=2.0)}):
        assert each.optimization_potential is None
        assert each.unexplained() == []
        assert each.evidence
        assert all(action.expected_impact is None and action.unexplained() == []
                   for action in each.recommended_actions)  # fmt: skip


def test_actions_are_those_that_the_layer_was_advised():
    found = of({"layer": np.r_[noise(150), 50 * noise(50)]}, "layer")

    assert [each.action_type for each in found.recommended_actions] == [
        "LearningRateScheduling",
        "OptimizationTechnique",
    ]
