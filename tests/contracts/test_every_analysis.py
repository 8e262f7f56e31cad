"""What is true of every analysis: the laws of `difflens.testing`, and that they can fail."""

from itertools import count
from pathlib import Path

import pytest

from difflens.analyses import analysis
from difflens.measure.scan import Scan
from difflens.records import Envelope, Finding, Missing
from difflens.testing import ANALYSIS_LAWS, check_analysis
from difflens.testing.analyses import (
    it_answers_by_its_values,
    it_answers_every_diff,
    it_finds_nothing_in_equal_models,
    it_is_described,
    it_is_pure,
    it_says_what_is_missing,
    its_findings_show_evidence,
)

COUNTER = count()


@pytest.mark.parametrize("law", ANALYSIS_LAWS, ids=lambda law: law.__name__)
@pytest.mark.parametrize("entry", list(analysis), ids=lambda entry: entry.name)
def test_every_analysis_keeps_the_contract(entry, law):
    check_analysis(entry.plugin, laws=(law,))


def undescribed(_diff, _evidence, _policy):
    return []


def misnamed(_diff, _evidence, _policy):
    """Puts another name on its envelope."""
    return Envelope("other", "ok", {}, method="other/1")


def silent(diff, _evidence, _policy):
    """Leaves a field null and says nothing."""
    return Envelope("broken", "ok", {"figure": None, "n": len(diff.pairs)}, method="broken/1")


def infinite(diff, _evidence, _policy):
    """Divides by zero and tells."""
    why = (Missing("other", "nothing", "a test"),)
    return Envelope("broken", "ok", {"n": len(diff.pairs), "x": 1e999}, missing=why, method="b/1")


def bare(diff, _evidence, _policy):
    """Finds without evidence."""
    return [Finding("broken", delta.name, "look here", {}) for delta in diff.changed]


def elsewhere(diff, _evidence, _policy):
    """Finds in a tensor that is not there."""
    return [Finding("broken", "nowhere", "look there", {"n": 1.0}) for _ in diff.changed]


def nervous(diff, _evidence, _policy):
    """Finds something in everything."""
    return [Finding("broken", "", "look", {"n": len(diff.pairs)})]


def fickle(_diff, _evidence, _policy):
    """Never answers the same twice."""
    return Envelope("broken", "ok", {"n": next(COUNTER)}, method="broken/1")


def writing(diff, _evidence, _policy):
    """Keeps notes."""
    Path("/dev/null").write_text("seen")
    return Envelope("broken", "ok", {"n": len(diff.pairs)}, method="broken/1")


def constant(_diff, _evidence, _policy):
    """Says 0.92 whatever happens."""
    return Envelope("broken", "ok", {"readiness": 0.92}, method="broken/1")


@pytest.mark.parametrize(
    ("plugin", "law"),
    [
        (undescribed, it_is_described),
        (misnamed, it_answers_every_diff),
        (silent, it_says_what_is_missing),
        (infinite, it_says_what_is_missing),
        (bare, its_findings_show_evidence),
        (elsewhere, its_findings_show_evidence),
        (nervous, it_finds_nothing_in_equal_models),
        (fickle, it_is_pure),
        (writing, it_is_pure),
        (constant, it_answers_by_its_values),
    ],
    ids=lambda each: each.__name__,
)
def test_an_analysis_that_breaks_a_law_is_caught(plugin, law, monkeypatch):
    monkeypatch.setattr(plugin, "__module__", "somewhere.broken")
    analysis(needs=[Scan])(plugin)
    try:
        with pytest.raises(AssertionError):
            check_analysis(plugin, laws=(law,))
    finally:
        del analysis._entries["broken"]


def test_needs_are_types_not_words(monkeypatch):
    def wordy(_diff, _evidence, _policy):
        """Names its measure by a word."""
        return []

    monkeypatch.setattr(wordy, "__module__", "somewhere.broken")
    analysis(needs=["scan"])(wordy)
    try:
        with pytest.raises(AssertionError, match="a list of measure types is wanted"):
            check_analysis(wordy)
    finally:
        del analysis._entries["broken"]
