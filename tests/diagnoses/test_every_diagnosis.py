"""What is true of every diagnosis: the laws of `difflens.testing`, and that they can fail."""

from itertools import count
from pathlib import Path

import pytest

from difflens.diagnoses import diagnose, diagnosis
from difflens.records import Threshold
from difflens.registry import Entry
from difflens.runs import RunFinding
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

NAMES = sorted(faulty())
DOCS = Path(__file__).parents[2] / "docs" / "diagnoses"
COUNTER = count()
OPTIONS = {"needs": (), "window": 1, "thresholds": {"a": Threshold(1, "a test")}}


# cli.md 7
SPECIFIED = """
vanishing exploding dead oscillating slow plateau not-training wiring loss-pairing data nan
spike over-fit lr-high lr-low symmetry diverging
"""


def test_the_names_are_those_of_the_command_line():
    assert sorted(SPECIFIED.split()) == [entry.name for entry in diagnosis.ours()]
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


def finding(name="broken", **changes):
    plain = {
        "severity": "warning",
        "text": "look",
        "evidence": {"n": 1.0},
        "cause": "a test",
        "advice": ("nothing",),
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
        (the_order_of_layers_does_not_matter, listening),
        (the_names_of_layers_do_not_matter, reading),
        (the_unit_of_the_loss_does_not_matter, metric),
    ],
)
def test_each_law_can_fail(law, broken):
    with pytest.raises(AssertionError):
        law(Case(Entry("broken", broken, OPTIONS)))
