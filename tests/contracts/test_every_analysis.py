"""What is true of every analysis: the laws of `difflens.testing`, and that they can fail."""

from functools import cache
from itertools import count
from pathlib import Path

import pytest

from difflens.core.policy import Policy
from difflens.diffs.analyses import analysis, ask
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
from difflens.testing.situations import situations

COUNTER = count()


@pytest.mark.parametrize("law", ANALYSIS_LAWS, ids=lambda law: law.__name__)
@pytest.mark.parametrize("entry", list(analysis), ids=lambda entry: entry.name)
def test_every_analysis_keeps_the_contract(entry, law):
    check_analysis(entry.plugin, laws=(law,))


@cache
def tuned():
    """Make one pair of models with all evidence, measured once."""
    return dict(situations())["tuned"]


@pytest.mark.parametrize("entry", list(analysis), ids=lambda entry: entry.name)
def test_every_analysis_answers_where_all_others_are_deleted(entry, monkeypatch):
    situation = tuned()
    monkeypatch.setattr(analysis, "_entries", {entry.name: entry})
    monkeypatch.setattr(analysis, "_stems", list)

    answer = ask(entry.name, situation.diff, situation.evidence, Policy())

    assert answer.fields.keys() == (entry.options.get("fields") or {"findings": ""}).keys()


def undescribed(_diff, _evidence, _answer):
    pass


def unanswered(_diff, _evidence, _answer):
    """Declares a field and leaves it out."""


def null(diff, _evidence, answer):
    """Gives no reason for a null."""
    answer.say("n", len(diff.pairs))
    answer.lack("x", needs="", why="")


def infinite(diff, _evidence, answer):
    """Divides by zero and says so."""
    answer.say("n", len(diff.pairs))
    answer.say("x", 1e999)


def bare(diff, _evidence, answer):
    """Finds without evidence."""
    for delta in diff.changed:
        answer.find(delta.name, "look here", {})


def elsewhere(diff, _evidence, answer):
    """Finds in a tensor that is not there."""
    for _ in diff.changed:
        answer.find("nowhere", "look there", {"n": 1.0})


def nervous(diff, _evidence, answer):
    """Finds something in everything."""
    answer.find("", "look", {"n": len(diff.pairs)})


def fickle(_diff, _evidence, answer):
    """Never answers the same twice."""
    answer.say("n", next(COUNTER))


def writing(_diff, _evidence, _answer):
    """Writes notes."""
    Path("/dev/null").write_text("seen")


def constant(_diff, _evidence, answer):
    """Says 0.92 whatever happens."""
    answer.say("n", 0.92)


@pytest.mark.parametrize(
    ("plugin", "law"),
    [
        (undescribed, it_is_described),
        (unanswered, it_answers_every_diff),
        (null, it_says_what_is_missing),
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
    fields = {unanswered: {"n": ""}, fickle: {"n": ""}, constant: {"n": ""}}
    fields |= {each: {"n": "", "x": ""} for each in (null, infinite)}
    analysis(fields=fields.get(plugin))(plugin)
    try:
        with pytest.raises(AssertionError):
            check_analysis(plugin, laws=(law,))
    finally:
        del analysis._entries["broken"]


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        ({"needs": "scan"}, "expected one of"),
        ({"threshold": {}}, "no option threshold"),
        ({"gate": "verdict", "fields": {"word": ""}}, "gate='verdict' is not in its fields"),
    ],
)
def test_a_decorator_with_an_option_that_nobody_knows_is_caught(options, fault, monkeypatch):
    monkeypatch.setattr(nervous, "__module__", "somewhere.broken")
    analysis(**options)(nervous)
    try:
        with pytest.raises(AssertionError, match=fault):
            check_analysis(nervous, laws=(it_is_described,))
    finally:
        del analysis._entries["broken"]
