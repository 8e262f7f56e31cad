"""What is true of every renderer: the laws of `difflens.testing`, and that they can fail."""

import random

import pytest

from difflens.core.records import SAME
from difflens.render.diffs import renderer
from difflens.testing import RENDERER_LAWS, check_renderer
from difflens.testing.renderers import (
    it_answers_by_its_values,
    it_harms_no_reader,
    it_is_described,
    it_is_pure,
    it_renders_every_report,
    it_tells_every_difference,
)


@pytest.mark.parametrize("law", RENDERER_LAWS, ids=lambda law: law.__name__)
@pytest.mark.parametrize("entry", list(renderer), ids=lambda entry: entry.name)
def test_every_renderer_keeps_the_contract(entry, law):
    check_renderer(entry.plugin, laws=(law,))


def forgetful(report, _view):
    """Names what changed, and forgets the rest."""
    return "".join(f"{row.name}\n" for row in report.tensors if row.kind == "changed")


def raw(report, _view):
    """Writes names as they are."""
    return "".join(f"{row.name}\n" for row in report.tensors if row.kind not in SAME)


def endless(report, _view):
    """Never ends its line."""
    return f"{len(report.tensors)}"


def fickle(report, _view):
    """Rolls a die."""
    return f"{report.verdict.word} {random.random()}\n"


def constant(_report, _view):
    """Says the same of every report."""
    return "all is well\n"


def nameless(report, _view):
    return raw(report, _view)


@pytest.mark.parametrize(
    ("plugin", "law"),
    [
        (nameless, it_is_described),
        (endless, it_renders_every_report),
        (fickle, it_is_pure),
        (forgetful, it_tells_every_difference),
        (constant, it_answers_by_its_values),
        (raw, it_harms_no_reader),
    ],
    ids=lambda each: each.__name__,
)
@pytest.mark.parametrize("suffix", [".txt"])
def test_a_renderer_that_breaks_a_law_is_caught(plugin, law, suffix, monkeypatch):
    monkeypatch.setattr(plugin, "__module__", "somewhere.broken")
    renderer(suffix=suffix)(plugin)
    try:
        with pytest.raises(AssertionError):
            check_renderer(plugin, laws=(law,))
    finally:
        del renderer._entries["broken"]


@pytest.mark.parametrize("suffix", [".json", ".csv", ".html"])
def test_names_written_raw_harm_the_reader_of_each_kind_of_file(suffix, monkeypatch):
    def careless(report, _view):
        """Writes names as they are, in a file of another kind."""
        lines = "".join(f"{row.name}\n" for row in report.tensors)
        return f"[NaN, {len(lines)}]\n" if suffix == ".json" else lines

    monkeypatch.setattr(careless, "__module__", "somewhere.broken")
    renderer(suffix=suffix)(careless)
    try:
        with pytest.raises(AssertionError):
            check_renderer(careless, laws=(it_harms_no_reader,))
    finally:
        del renderer._entries["broken"]
