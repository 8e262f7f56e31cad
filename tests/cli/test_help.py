"""The help is in groups, and a mistyped command is not taken for a file."""

import re

import pytest
from cli.command import assert_refused

from difflens.cli import _analyses


def sections(text: str) -> dict[str, list[str]]:
    """Return the options of a help text by the titles above them."""
    parts = re.split(r"^(\S.*):\n", text, flags=re.MULTILINE)[1:]
    return {
        title: re.findall(r"^  (?:-\w, )?(--[\w-]+)", body, re.MULTILINE)
        for title, body in zip(parts[::2], parts[1::2], strict=True)
    }


def test_the_help_of_a_diff_is_in_groups_and_names_every_option_once(difflens):
    groups = sections(difflens("diff", "--help").out)

    assert list(groups) == [
        "Comparing",
        "Output",
        "Analyses",
        *[title for title in _analyses.FAMILIES if title != _analyses.GATES],
        "Evidence, if it is not found beside the models",
        _analyses.GATES,
        "Other options",
        "Examples",
    ]
    options = [option for group in groups.values() for option in group]
    assert len(options) == len(set(options))
    assert {f"--{name}" for name in _analyses.names()} <= set(options)
    assert groups["Other options"] == ["--debug", "--help"]


def test_an_analysis_that_no_family_names_is_listed_with_the_general_ones(monkeypatch):
    monkeypatch.setattr(_analyses, "names", lambda: ["lineage", "outsized"])

    sections = _analyses.sections()

    assert "run_outsized" in sections["Analyses"]
    assert "run_lineage" not in sections["Analyses"]


def test_families_name_analyses_that_exist():
    named = [name for text in _analyses.FAMILIES.values() for name in text.split()]

    assert sorted(named) == sorted(set(named) & set(_analyses.names()))


@pytest.mark.parametrize(
    ("typed", "meant"), [("diagnos", "diagnose"), ("chekc", "check"), ("run-dif", "run-diff")]
)
def test_a_mistyped_command_is_suggested(difflens, typed, meant):
    assert_refused(difflens(typed, "run"), f"did you mean `difflens {meant}`?")


def test_a_file_that_is_called_almost_like_a_command_is_a_file(difflens, tmp_path):
    (tmp_path / "chekc").write_bytes(b"no model")

    assert_refused(difflens("chekc", "chekc"), "chekc: no reader knows this format")


def test_a_first_word_like_no_command_is_a_file_that_is_missing(difflens):
    assert_refused(difflens("base.safetensors", "b.safetensors"), "base.safetensors: no such file")
