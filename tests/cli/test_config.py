"""The project file: what it sets, what it may not set, and what `difflens config` shows."""

import json
import os

import pytest
from cli.command import assert_refused
from hypothesis import given
from hypothesis import strategies as st
from models.small import arrays, write

from difflens.cli import _project


@pytest.fixture
def repo(tmp_path, monkeypatch, difflens):  # noqa: ARG001  it changes the folder first
    monkeypatch.delenv("DIFFLENS_STORE", raising=False)
    (tmp_path / ".git").mkdir()
    return tmp_path


def pair(folder, **right):
    left = write(folder / "left.safetensors", arrays(a=[1.0, 2.0], b=[3.0]))
    return left, write(
        folder / "right.safetensors", arrays(**({"a": [1.0, 2.5], "b": [3.0]} | right))
    )


def settings(difflens, *words):
    return {
        each["setting"]: (each["value"], each["origin"])
        for each in json.loads(difflens("config", "-o", "json", *words).out)
    }


def test_the_nearest_file_counts_up_to_the_root_of_the_repository(repo, difflens, monkeypatch):
    below = repo / "a" / "b"
    below.mkdir(parents=True)
    monkeypatch.chdir(below)
    (repo.parent / "difflens.toml").write_text("wrong = 1")  # above the root: nobody reads it
    (repo / "pyproject.toml").write_text('[tool.difflens]\nignore = "top.*"')
    assert settings(difflens)["ignore"] == (["top.*"], str(repo / "pyproject.toml"))

    (repo / "a" / "pyproject.toml").write_text("[tool.other]\nx = 1")
    assert settings(difflens)["ignore"][0] == ["top.*"]
    (repo / "a" / "difflens.toml").write_text('ignore = ["near.*"]')
    assert settings(difflens)["ignore"] == (["near.*"], str(repo / "a" / "difflens.toml"))
    (repo.parent / "difflens.toml").unlink()


def test_outside_a_repository_only_the_folder_itself_counts(tmp_path, difflens, monkeypatch):
    (tmp_path / "below").mkdir()
    (tmp_path / "difflens.toml").write_text('ignore = "a"')
    assert settings(difflens)["ignore"][0] == ["a"]
    monkeypatch.chdir(tmp_path / "below")
    assert settings(difflens)["ignore"] == ([], "default")


def test_the_command_line_goes_before_the_environment_before_the_file(repo, difflens, monkeypatch):
    assert settings(difflens)["store"] == (".difflens/store.db", "default")
    (repo / "difflens.toml").write_text('store = "models.db"')
    assert settings(difflens)["store"] == (str(repo / "models.db"), str(repo / "difflens.toml"))
    monkeypatch.setenv("DIFFLENS_STORE", "postgresql://ada:secret@db/models")
    value, origin = settings(difflens)["store"]
    assert origin == "environment: DIFFLENS_STORE"
    assert "secret" not in value
    assert settings(difflens, "--store", "x.db")["store"] == ("x.db", "command line")


def test_the_store_of_the_project_is_where_snapshots_go(repo, difflens, monkeypatch):
    (repo / "difflens.toml").write_text('store = "models.db"')
    (repo / "below").mkdir()
    monkeypatch.chdir(repo / "below")

    assert difflens("snapshot", "add", "m", "--version", "1").code == 0

    assert (repo / "models.db").is_file()
    monkeypatch.setenv("DIFFLENS_STORE", str(repo / "other.db"))
    assert difflens("snapshot", "add", "m", "--version", "1").code == 0
    assert (repo / "other.db").is_file()


def test_what_the_project_leaves_out_is_left_out_and_reported(repo, difflens):
    left, right = pair(repo)
    assert difflens("diff", left, right).code == 1
    (repo / "difflens.toml").write_text('ignore = ["a", "x?*"]')

    found = difflens("diff", left, right)

    assert found.code == 0
    assert "warning: difflens.toml leaves out tensors: a, x?*" in found.err
    assert "1 warning" in found.out
    report = json.loads(difflens("diff", left, right, "-o", "full-json").out)
    assert any("leaves out" in each for each in report["warnings"])
    named = difflens("diff", left, right, "--ignore-keys-regex", "^b$")
    assert (named.code, named.err) == (1, "")


def test_the_output_of_the_project_is_used_unless_another_is_named(repo, difflens):
    left, right = pair(repo)
    (repo / "difflens.toml").write_text('[output]\ndiff = "json"\ncompare = "markdown"')

    assert json.loads(difflens("diff", left, right).out)
    assert json.loads(difflens(left, right).out)
    assert difflens("diff", left, right, "-o", "csv").out.startswith("name,kind,")
    assert settings(difflens)["output.compare"] == ("markdown", str(repo / "difflens.toml"))


def test_the_policy_of_the_project_holds_for_analyses_and_is_no_burden_without(repo, difflens):
    left, right = pair(repo)
    (repo / "difflens.toml").write_text('policy = "gates.toml"')
    (repo / "gates.toml").write_text("[change_summary]\nsparse_fraction = 0.125\n")

    assert difflens("diff", left, right).code == 1
    report = json.loads(difflens("diff", left, right, "--change-summary", "-o", "full-json").out)
    assert report["analyses"][0]["policy"]["sparse_fraction"]["value"] == 0.125
    assert "gates.toml" in report["evidence"]["policy"]


REFUSED = {
    "polcy = 'x'": "did you mean policy?",
    "out = 'x'": "no setting is called 'out'",
    "model_code = 'os:system'": "no setting is called 'model_code'",
    "threads = 3": "no setting",
    "store = 'postgresql://u:p@h/d'": "relative to this file",
    "store = 'sqlite:///x.db'": "relative to this file",
    "store = '/etc/x.db'": "relative to this file",
    "store = '~/x.db'": "relative to this file",
    "store = ':memory:'": "relative to this file",
    "store = '../x.db'": "leads out of the folder",
    "store = 'a/../../x.db'": "leads out of the folder",
    "store = 'link/x.db'": "leads out of the folder",
    "policy = '/etc/passwd'": "relative to this file",
    "policy = 'link/passwd'": "leads out of the folder",
    "policy = 3": "must be the path of a file",
    "policy = ''": "must be the path of a file",
    "ignore = 3": "must be a list of names",
    "ignore = [3]": "must be a list of names",
    "ignore = ['" + "a" * 300 + "']": "names of 200 characters",
    "output = 'json'": "output must be a table",
    "output = {diff = 3}": "must be the name of an output",
    "output = {diff = 'jsn'}": "did you mean json?",
    "output = {dif = 'json'}": "did you mean diff?",
    "output = {demo = 'json'}": "no command with an output",
    "output = {'../x' = 'json'}": "no command with an output",
    "[": "not TOML",
    "x = " + "[" * 3000: "not TOML",
    "a = 1\na = 2": "not TOML",
    "\x00": "not TOML",
}


@pytest.mark.parametrize("text", REFUSED)
@pytest.mark.parametrize("name", ["difflens.toml", "pyproject.toml"])
def test_what_a_project_may_not_say_is_one_clear_line(repo, difflens, text, name):
    (repo / "link").symlink_to("/etc")
    head = "[tool.difflens]\n" if name == "pyproject.toml" else ""
    (repo / name).write_text(head + text)

    for words in (["config"], ["diff", "a", "b"]):
        assert_refused(difflens(*words), str(repo / name), REFUSED[text])
    assert difflens("diff", "--help").code == 0
    assert difflens("list", "renderers").code == 0


def test_a_table_that_is_no_table_and_a_file_that_is_too_large_are_refused(repo, difflens):
    (repo / "pyproject.toml").write_text("[tool]\ndifflens = 3")
    assert_refused(difflens("config"), "tool.difflens must be a table")
    (repo / "difflens.toml").write_bytes(b"#" * 1_000_001)
    assert_refused(difflens("config"), "larger than 1000000 bytes")
    (repo / "difflens.toml").write_bytes(b'ignore = "\xff"')
    assert_refused(difflens("config"), "not TOML")


@given(
    st.lists(st.text(st.sampled_from("ab*?[]!.^$|\\\n"), max_size=6), max_size=4), st.text("ab.\n")
)
def test_a_pattern_matches_as_a_shell_would(patterns, name):
    import re
    from fnmatch import fnmatchcase

    expression = _project.as_expression(tuple(patterns))

    assert bool(patterns and re.search(expression, name)) == any(
        fnmatchcase(name, each) for each in patterns
    )


def test_a_pattern_that_takes_long_as_a_regular_expression_takes_no_time(repo, difflens):
    name = "a" * 200
    left = write(repo / "l.safetensors", arrays(**{name: [1.0]}))
    (repo / "difflens.toml").write_text('ignore = ["' + "*a" * 90 + '*b"]')

    assert difflens("diff", left, left).code == 0


def test_the_text_form_names_every_setting_and_its_origin(repo, difflens):
    (repo / "difflens.toml").write_text('ignore = ["a\\u001b[31m"]')

    shown = difflens("config").out

    assert "\x1b" not in shown
    assert [line.split()[0] for line in shown.splitlines()] == [
        "store", "policy", "ignore", "output.diff",
    ]  # fmt: skip
    assert os.linesep.join(shown.splitlines()).count("(default)") == 3
