"""Advice: every kind has a condition, cites its rule, and estimates nothing."""

from typing import get_args

import numpy as np
import pytest
from training.gradients.layer_cases import details, noise, one

import difflens
from difflens import GradientAnalyzer
from difflens.testing.histories import falling, recorded
from difflens.training.gradients.comparison import Standing
from difflens.training.gradients.suggestions import suggestions
from difflens.training.gradients.verdicts import NO_VERDICT, Verdict, verdict_on
from difflens.training.records.gradients import (
    ImplementationComplexity,
    LayerHealth,
    RiskFactor,
    SuggestionType,
)


def fading(ratio: float) -> dict[str, np.ndarray]:
    return {f"layer{i}": ratio ** (9 - i) * noise(seed=i) for i in range(10)}


CASES = {
    "WeightInitialization": lambda: one([0.0] * 50),
    "LearningRateAdjustment": lambda: one(np.r_[noise(150), 50 * noise(50)]),
    "OptimizationAlgorithm": lambda: one([1.0, np.nan]),
    "ArchitecturalModification": lambda: details(fading(0.1))["layer0"],
    "BatchNormalization": lambda: details(
        {f"layer{i}": noise(seed=i) for i in range(5)} | {"small": 1e-5 * noise()}
    )["small"],
}


def advice(
    rule: str, severity: LayerHealth = "Warning", *, recent: bool = True, verdict=NO_VERDICT
):
    risk = RiskFactor(rule=rule, severity=severity, text="measured", measured=2.0, threshold=1.0,
                      recent=recent)  # fmt: skip
    alone = Standing("", "norm", 0, np.array([]), False)
    return suggestions("fc.weight", [risk], alone, verdict)


@pytest.mark.parametrize("kind", CASES)
def test_every_kind_of_suggestion_has_a_series_that_earns_it(kind):
    """DX-10, DC-21."""
    assert kind in {each.suggestion_type for each in CASES[kind]().optimization_suggestions}


def test_weights_that_grow_earn_regularisation():
    """DX-10: the one kind that needs the weights of a run."""
    assert [each.suggestion_type for each in advice("weight-growth")] == ["RegularizationAdd"]


def test_all_words_of_suggestions_are_produced():
    """DX-10: a word that nothing can earn is no word of ours."""
    made = [each for make in CASES.values() for each in make().optimization_suggestions]
    made += advice("weight-growth")

    assert {each.suggestion_type for each in made} == set(get_args(SuggestionType))
    assert {each.implementation_complexity for each in made} == set(
        get_args(ImplementationComplexity)
    )


def test_advice_shares_its_limit_with_the_rule_that_asked_for_it():
    """DC-21: the reference warns above 100 and advises above 10."""
    found = one(np.r_[noise(150), 50 * noise(50)])
    risk = found.health_metrics.risks[0]

    for each in found.optimization_suggestions:
        assert each.rule == risk.rule
        assert each.evidence == {"measured": risk.measured, "threshold": risk.threshold}
        assert risk.text in each.rationale
        assert each.description.startswith("layer: ")


def test_no_improvement_is_promised():
    """DX-04, DC-21: 0.7, 0.6 and 0.5 were constants."""
    for make in CASES.values():
        for each in make().optimization_suggestions:
            assert each.expected_improvement is None
            assert each.unexplained() == []


def test_healthy_layers_get_no_advice():
    """DC-13: the reference tells noise to add dropout."""
    assert one(noise()).optimization_suggestions == ()


def test_what_is_over_needs_no_advice():
    assert advice("spike", recent=False) == ()
    assert advice("non-finite", "Critical", recent=False) != ()


def test_every_rule_has_its_advice():
    """A rule added later cannot be forgotten here."""
    import ast
    import inspect

    from difflens.training.gradients import rules

    calls = [
        node for node in ast.walk(ast.parse(inspect.getsource(rules)))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in {"_risk", "_jump"}
    ]  # fmt: skip
    names = {call.args[0].value for call in calls if isinstance(call.args[0], ast.Constant)}

    assert len(names) == 12
    assert all(advice(name) for name in names)


def ran(scaled=None, learning_rate=1e-3):
    """Analyse a run that was lost at a rate far too high, with or without a loss scale."""
    scale = {} if scaled is None else {"loss_scale": scaled}
    losses = np.r_[falling(30), np.full(30, np.nan)]
    norms = np.r_[np.full(30, 1e-2), np.full(30, np.nan)]
    history = recorded(losses, grad_l2=norms, scalars={"lr": learning_rate, **scale})
    return GradientAnalyzer().analyze_run(history), difflens.diagnose(history)


def advised(found):
    told = [each for details in found.layer_details.values()
            for each in details.optimization_suggestions]  # fmt: skip
    return {each.description.removeprefix(f"{each.layer_name}: ") for each in told}


def test_where_diagnose_has_a_remedy_the_advice_is_that_remedy():
    found, told = ran()
    fix = next(each.fix for each in told.findings if each.fix is not None)

    assert advised(found)
    assert all(each.startswith(f"do what `difflens diagnose` says of the run: {fix.code}")
               for each in advised(found))  # fmt: skip


@pytest.mark.parametrize("rule", ["non-finite", "underflow"])
def test_the_loss_scale_is_turned_only_where_one_was_recorded(rule):
    turns = ("lower the loss scale", "raise the loss scale")

    plain = advice(rule, verdict=Verdict())
    scaled = advice(rule, verdict=Verdict(has_loss_scale=True))

    assert not any(turn in each.description for each in plain for turn in turns)
    assert any(turn in each.description for each in scaled for turn in turns)


def test_a_run_tells_whether_it_has_a_loss_scale():
    assert verdict_on(recorded(falling(60), scalars={"loss_scale": 1024.0})).has_loss_scale
    assert not verdict_on(recorded(falling(60))).has_loss_scale
