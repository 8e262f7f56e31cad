"""What is true of every diagnosis: the laws of `difflens.testing`, and that they can fail."""

import ast
from itertools import count
from pathlib import Path

import pytest

from difflens.core.policy import Policy, Threshold
from difflens.core.registry import Entry
from difflens.testing.diagnoses import (
    LAWS,
    Case,
    it_is_described,
    it_is_pure,
    it_is_silent_on_healthy_runs,
    it_is_silent_where_too_little_is_known,
    its_findings_show_evidence,
    the_names_of_layers_do_not_matter,
    the_order_of_layers_does_not_matter,
    the_unit_of_the_loss_does_not_matter,
)
from difflens.testing.histories import faulty, healthy, too_little
from difflens.training import diagnoses
from difflens.training.diagnoses import diagnose, diagnosis
from difflens.training.records.runs import RunFinding

NAMES = sorted(faulty())
DOCS = Path(__file__).parents[3] / "docs" / "diagnoses"
COUNTER = count()
OPTIONS = {"needs": (), "window": 1, "thresholds": {"a": Threshold(1, "a test")}}


# Scripts rely on these; a diagnosis that is added needs no line here.
SPECIFIED = """
vanishing exploding dead oscillating slow plateau not-training wiring loss-pairing data nan
spike over-fit lr-high lr-low symmetry diverging
"""


def test_the_names_are_those_of_the_command_line():
    assert set(SPECIFIED.split()) <= {entry.name for entry in diagnosis.ours()}
    assert sorted(SPECIFIED.split()) == NAMES


@pytest.mark.parametrize("entry", list(diagnosis.ours()), ids=lambda entry: entry.name)
def test_every_threshold_stands_on_its_page_with_its_default(entry):
    page = (DOCS / f"{entry.name}.md").read_text("utf-8")

    for name, threshold in entry.options["thresholds"].items():
        assert f"| `{name}` | {threshold.value:g} | {threshold.why} |" in page


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
@pytest.mark.parametrize("entry", list(diagnosis.ours()), ids=lambda entry: entry.name)
def test_every_diagnosis_keeps_the_contract(entry, law):
    law(Case(entry))


@pytest.mark.parametrize("name", NAMES)
def test_a_run_with_a_fault_has_that_fault_told_first(name):
    told = diagnose(faulty()[name])

    assert told.healthy is False
    assert name == told.findings[0].name


@pytest.mark.parametrize("name", list(healthy()))
def test_a_healthy_run_is_called_healthy(name):
    told = diagnose(healthy()[name])

    assert [each for each in told.findings if each.severity != "info"] == []
    assert told.healthy is True


@pytest.mark.parametrize("name", list(too_little()))
def test_no_history_at_all_is_one_consistent_unknown(name):
    """DC-31, DC-16, DC-03: the reference calls an empty run healthy and diverging at once."""
    told = diagnose(too_little()[name])

    assert told.healthy is None
    assert told.findings == ()


SOURCE = Path(diagnoses.__file__).parent


@pytest.mark.parametrize(
    "path", sorted(SOURCE.rglob("*.py")), ids=lambda path: str(path.relative_to(SOURCE))
)
def test_no_finding_is_made_without_signs_of_how_sure_it_is(path):
    made = [
        each
        for each in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(each, ast.Call) and getattr(each.func, "id", "") in ("finding", "RunFinding")
    ]
    for call in made:
        signs = [each.value for each in call.keywords if each.arg == "signs"]
        if call.func.id == "finding":
            assert len(signs) == 1, f"line {call.lineno}: no signs"
            assert not isinstance(signs[0], ast.List) or signs[0].elts, f"line {call.lineno}"
        else:
            assert path.name == "wording.py", f"line {call.lineno}: findings are made by `finding`"


@pytest.mark.parametrize("name", NAMES)
def test_every_finding_that_warns_says_how_sure_it_is(name):
    for entry in diagnosis.ours():
        for each in entry.plugin(faulty()[name], Policy()):
            assert each.severity == "info" or 0 <= each.confidence <= 1


@pytest.mark.parametrize("name", NAMES)
def test_what_is_told_of_a_run_as_a_whole_is_as_sure_as_its_parts(name):
    serious = [each for each in diagnose(faulty()[name]).findings if each.severity != "info"]

    assert serious
    assert all(0 <= each.confidence <= 1 for each in serious)


def test_a_loss_that_is_no_number_is_certain():
    (found,) = diagnose(faulty()["nan"]).findings

    assert (found.name, found.severity, found.confidence) == ("nan", "critical", 1.0)


def finding(name="broken", **changes):
    plain = {
        "severity": "warning",
        "text": "look",
        "evidence": {"n": 1.0},
        "cause": "a test",
        "advice": ("nothing",),
        "confidence": 0.5,
    }
    return RunFinding(name, **{**plain, **changes})


def undescribed(_history, _policy):
    return []


def nervous(_history, _policy):
    """Find something in everything."""
    return [finding()]


def fickle(_history, _policy):
    """Never answer the same twice."""
    return [finding(evidence={"n": float(next(COUNTER))})]


def bare(_history, _policy):
    """Find without a number."""
    return [finding(evidence={"because": "so"})]


def unsure(_history, _policy):
    """Warn without a word of how sure it is."""
    return [finding(confidence=None)]


def elsewhere(_history, _policy):
    """Find in a layer that is not there."""
    return [finding(layers=("nowhere",))]


def listening(history, _policy):
    """Name the layer that was recorded first."""
    return [finding(layers=tuple(layer.name for layer in history.info.layers[:1]))]


def reading(history, _policy):
    """Judge by names."""
    return [finding()] if any("hidden" in each.name for each in history.info.layers) else []


def metric(history, _policy):
    """Judge by the unit of the loss."""
    loss = history.course.scalar("loss")
    return [finding()] if loss is not None and len(loss) and loss[0] > 2.0 else []


@pytest.mark.parametrize(
    ("law", "broken"),
    [
        (it_is_described, undescribed),
        (it_is_silent_on_healthy_runs, nervous),
        (it_is_silent_where_too_little_is_known, nervous),
        (it_is_pure, fickle),
        (its_findings_show_evidence, bare),
        (its_findings_show_evidence, elsewhere),
        (its_findings_show_evidence, unsure),
        (the_order_of_layers_does_not_matter, listening),
        (the_names_of_layers_do_not_matter, reading),
        (the_unit_of_the_loss_does_not_matter, metric),
    ],
)
def test_each_law_can_fail(law, broken):
    with pytest.raises(AssertionError):
        law(Case(Entry("broken", broken, OPTIONS)))
