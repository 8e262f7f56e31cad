"""Remedies agree: the advice of a finding with its fix, and findings that are shown together."""

from itertools import combinations
from pathlib import Path

import pytest

from difflens.testing.histories import DEPTH, faulty, level, network, recorded
from difflens.training import diagnoses
from difflens.training.diagnoses import diagnose
from difflens.training.records.runs import Fix, RunFinding
from difflens.training.verdicts.remedies import INSTEAD, agreeing, turned_by, turned_by_words
from zoo.generate import Job, train
from zoo.parts import PARTS

TUNE = {each.id: each for each in PARTS["tune"].faults}


def shown(findings):
    """Return every turn of a knob that a reader is told, by fix or by words."""
    turns = []
    for each in findings:
        turns += [] if each.fix is None else [turned_by(each.fix)]
        turns += [turned_by_words(line) for line in each.advice]
    return turns


def conflicts(findings):
    return [
        (knob, one[knob], other[knob])
        for one, other in combinations(shown(findings), 2)
        for knob in one.keys() & other.keys()
        if one[knob] != other[knob]
    ]


def sigmoids(points=300):
    """Make a stack of sigmoids with small weights, whose gradients fade and whose loss is stuck."""
    import numpy as np

    fading = np.repeat(10.0 ** -np.arange(DEPTH)[::-1], 2) * 1e-2
    layers = network(activation="Sigmoid")
    sizes = 0.5 * np.sqrt([layer.count for layer in layers]) / 32**0.5
    return recorded(level(points), layers=layers, grad_l2=fading, weight_l2=sizes)


def finding(name, *advice, fix=None):
    return RunFinding(name, "warning", "x", {"n": 1.0}, advice=advice, fix=fix)


def test_small_sigmoids_are_not_told_to_take_relu_and_then_tanh():
    (found, *_) = [each for each in diagnose(sigmoids()).findings if each.name == "vanishing"]

    assert found.fix == Fix("change_activation", {"to": "tanh"})
    assert not any("ReLU or GELU" in line for line in found.advice)
    assert any("by tanh" in line for line in found.advice)


@pytest.mark.parametrize("name", sorted(faulty()))
def test_no_two_remedies_of_a_made_run_conflict(name):
    assert conflicts(diagnose(faulty()[name]).findings) == []


@pytest.mark.parametrize("name", ["V1", "S1", "O1"])
def test_no_two_remedies_of_a_run_of_the_zoo_conflict(name, tmp_path):
    job = Job(name, TUNE[name].config, TUNE[name].seeds[0])
    train(job, tmp_path)

    found = diagnose(read(tmp_path / "runs" / job.folder)).findings
    assert found
    assert conflicts(found) == []


def read(run):
    from difflens.training.history import read_history

    return read_history(run)


def test_the_fix_of_a_finding_speaks_before_its_advice():
    (kept,) = agreeing([
        finding("vanishing", "replace sigmoid or tanh by ReLU or GELU", "add residual connections",
                fix=Fix("change_activation", {"to": "tanh"})),
    ])  # fmt: skip

    assert kept.advice == ("add residual connections",)


def test_a_likelier_cause_speaks_before_the_next():
    high, slow = agreeing([
        finding("lr-high", "multiply the learning rate by about 0.1",
                fix=Fix("scale_lr", {"factor": 0.1})),
        finding("slow", "multiply the learning rate by about 10",
                fix=Fix("scale_lr", {"factor": 10})),
    ])  # fmt: skip

    assert (high.fix.code, slow.fix) == ("scale_lr", None)
    assert slow.advice == (INSTEAD,)
    assert conflicts([high, slow]) == []


def test_findings_that_agree_are_left_as_they_are():
    both = [
        finding("lr-high", "lower the learning rate", fix=Fix("scale_lr", {"factor": 0.1})),
        finding(
            "oscillating", "lower the learning rate", fix=Fix("lower_momentum", {"value": 0.9})
        ),
    ]

    assert agreeing(both) == both


@pytest.mark.parametrize(
    "path", sorted(Path(diagnoses.__file__).parent.rglob("*.py")), ids=lambda path: path.stem
)
def test_advice_that_names_a_knob_is_read_as_turning_it(path):
    """A new line of advice with such a word in it must be in the table."""
    import ast

    for each in ast.walk(ast.parse(path.read_text("utf-8"))):
        text = getattr(each, "value", None)
        if isinstance(each, ast.Constant) and isinstance(text, str) and path.stem != "remedies":
            for start in ("lower the learning rate", "raise the learning rate",
                          "lower the weight decay", "lower dropout", "add dropout",
                          "raise dropout", "lower the momentum", "replace sigmoid"):  # fmt: skip
                assert not text.startswith(start) or turned_by_words(text), text
