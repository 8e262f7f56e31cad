"""`needs` names what is missing: no analysis asks for evidence that was given."""

from functools import cache

import pytest

from difflens.core.policy import Policy
from difflens.diffs.analyses import analysis, ask
from difflens.diffs.evidence.records import Evidence, Example, Log, Past, Side
from difflens.testing.situations import situations

SIDES = {
    "config": "--config-", "metrics": "--metrics-", "evals": "--eval-", "latency": "--latency-",
    "tokens": "--tokenizer-", "optimizer": "--optimizer-",
}  # fmt: skip
WHOLE = {
    "history": "--history", "log": "--log", "gradients": "--gradients", "runs": "--runs",
    "trajectory": "--checkpoint", "base": "--base", "hardware": "--measure-hardware",
}  # fmt: skip
OPTIONS = SIDES | WHOLE


@cache
def pair():
    """Make one pair of models, measured once."""
    situation = dict(situations())["tuned"]
    return situation.diff, situation.evidence


def of_both(**known):
    return Evidence(left=Side(**known), right=Side(**known))


def nameless():
    """Evidence of which nobody knows which way is better."""
    points = tuple((float(step), step / 7) for step in range(9))
    scores = tuple(Example(f"q{at}", at / 50, "sparkle") for at in range(50))
    return {
        "evals": of_both(evals=scores),
        "metrics": of_both(metrics={"sparkle": 1.0}),
        "log": Evidence(log=Log({"sparkle": points})),
        "history": Evidence(history=tuple(Past(str(at), "sparkle", at / 9) for at in range(9))),
    }


def given():
    _, known = pair()
    found = {kind: Evidence(left=Side(**{kind: getattr(known.left, kind)}),
                            right=Side(**{kind: getattr(known.right, kind)}))
             for kind in SIDES}  # fmt: skip
    found |= {kind: Evidence(**{kind: getattr(known, kind)}) for kind in WHOLE}
    return found


@pytest.mark.long
@pytest.mark.parametrize("entry", list(analysis), ids=lambda entry: entry.name)
def test_needs_never_names_evidence_that_was_given(entry):
    difference, everything = pair()
    asked = [(f"{kind} alone", (kind,), each) for kind, each in given().items()]
    asked += [(f"{kind} without a direction", (kind,), each) for kind, each in nameless().items()]
    asked.append(("all", tuple(OPTIONS), everything))
    wrong = [
        f"{what}: {each.field} needs {each.needs}"
        for what, kinds, evidence in asked
        for each in ask(entry.name, difference, evidence, Policy()).missing
        for kind in kinds
        if OPTIONS[kind] in each.needs
    ]

    assert wrong == []


@pytest.mark.parametrize("name", ["regression-test", "alert-on-degradation", "learning-progress"])
def test_examples_of_an_unknown_metric_ask_for_its_direction(name):
    difference, _ = pair()
    missing = ask(name, difference, nameless()["evals"], Policy()).missing

    assert any("[metrics.sparkle] direction in --policy" in each.needs for each in missing)
    assert any("--lower-is-better" in each.needs for each in missing)
