"""`difflens diff -r`: folders of models, compared file by file."""

import csv
import io
import json

import pytest
import yaml
from cli.command import assert_refused
from hostile.files import INDEX
from models.small import arrays, write

from difflens.cli import _run


@pytest.fixture
def trees(tmp_path):
    """Make two trees: one model the same, one changed, one on each side only, one sharded."""
    for side, value in (("left", 1), ("right", 2)):
        root = tmp_path / side
        write(root / "same.safetensors", arrays(w=[1]))
        write(root / "deep" / "down" / "changed.safetensors", arrays(w=[value]))
        write(root / f"a-only-{side}.safetensors", arrays(w=[1]))
        write(root / "sharded" / "model-1.safetensors", arrays(w=[value]))
        index = {"weight_map": {"w": "model-1.safetensors"}}
        (root / "sharded" / INDEX).write_text(json.dumps(index))
        (root / "notes.txt").write_text("no model")


NAMES = [
    "a-only-left.safetensors",
    "a-only-right.safetensors",
    "deep/down/changed.safetensors",
    "same.safetensors",
    "sharded",
]


@pytest.mark.usefixtures("trees")
def test_every_model_is_told_under_its_relative_name(difflens):
    outcome = difflens("-r", "left", "right")

    assert (outcome.code, outcome.err) == (1, "")
    assert [line for line in outcome.lines if line.startswith(("==", "Only"))] == [
        "Only in left: a-only-left.safetensors",
        "Only in right: a-only-right.safetensors",
        "== deep/down/changed.safetensors",
        "== same.safetensors",
        "== sharded",
    ]
    assert outcome.out.count("~ w: ") == 2


@pytest.mark.usefixtures("trees")
def test_equal_trees_exit_0(difflens):
    outcome = difflens("left", "left", "--recursive")

    assert outcome.code == 0
    assert "Only in" not in outcome.out


@pytest.mark.parametrize("only", ["left", "right"])
def test_a_model_on_one_side_alone_is_a_difference(difflens, tmp_path, only):
    for side in ("left", "right"):
        write(tmp_path / side / "same.safetensors", arrays(w=[1]))
    write(tmp_path / only / "more.safetensors", arrays(w=[1]))

    assert difflens("-r", "left", "right").code == 1
    assert difflens("-r", "left", "right", "--exit-zero").code == 0
    assert difflens("-r", "left", "right", "-q").out == ""


@pytest.mark.parametrize(("name", "read"), [("json", json.loads), ("yaml", yaml.safe_load)])
@pytest.mark.usefixtures("trees")
def test_json_and_yaml_are_one_document_by_model(difflens, name, read):
    found = read(difflens("-r", "left", "right", "-o", name).out)

    assert list(found) == NAMES
    assert found["same.safetensors"] == []
    assert found["a-only-left.safetensors"] == [{"ModelRemoved": ["a-only-left.safetensors"]}]
    assert found["a-only-right.safetensors"] == [{"ModelAdded": ["a-only-right.safetensors"]}]
    assert found["sharded"][0]["TensorStatsChanged"][0] == "w"


@pytest.mark.usefixtures("trees")
def test_full_json_is_one_document_too(difflens):
    found = json.loads(difflens("-r", "left", "right", "-o", "full-json").out)

    assert list(found) == NAMES
    assert found["sharded"]["totals"]["changed"] == 1


@pytest.mark.usefixtures("trees")
def test_csv_has_one_header_and_every_line_as_many_columns(difflens):
    lines = list(csv.reader(io.StringIO(difflens("-r", "left", "right", "-o", "csv").out)))

    assert lines[0][:3] == ["file", "name", "kind"]
    assert {len(line) for line in lines} == {len(lines[0])}
    assert [line[:3] for line in lines[1:]] == [
        ["a-only-left.safetensors", "", "model removed"],
        ["a-only-right.safetensors", "", "model added"],
        ["deep/down/changed.safetensors", "w", "changed"],
        ["sharded", "w", "changed"],
    ]


def test_csv_of_lone_models_alone_has_its_header(difflens, tmp_path):
    write(tmp_path / "left" / "=x.safetensors", arrays(w=[1]))
    (tmp_path / "right").mkdir()

    lines = list(csv.DictReader(io.StringIO(difflens("-r", "left", "right", "-o", "csv").out)))

    assert [(line["file"], line["kind"]) for line in lines] == [
        ("'=x.safetensors", "model removed")
    ]


@pytest.mark.usefixtures("trees")
def test_brief_names_what_differs(difflens):
    assert difflens("-r", "left", "right", "--brief").lines == [
        "Only in left: a-only-left.safetensors",
        "Only in right: a-only-right.safetensors",
        "Files left/deep/down/changed.safetensors and right/deep/down/changed.safetensors differ",
        "Files left/sharded and right/sharded differ",
    ]


def test_names_that_command_the_terminal_are_shown_as_codes(difflens, tmp_path):
    write(tmp_path / "left" / "a\x1b[2J.safetensors", arrays(w=[1]))
    write(tmp_path / "right" / "b\x7f\u202e.safetensors", arrays(w=[1]))

    for name in ("cli", "json", "full-json", "yaml"):
        out = difflens("-r", "left", "right", "-o", name).out
        assert all(line.isprintable() for line in out.splitlines())


@pytest.mark.usefixtures("trees")
def test_a_page_shows_one_pair(difflens):
    assert_refused(difflens("-r", "left", "right", "-o", "html"), "a report is about one pair")


def test_folders_without_models(difflens, tmp_path):
    for side in ("left", "right"):
        (tmp_path / side).mkdir()

    assert_refused(difflens("-r", "left", "right"), "holds a model")


@pytest.mark.parametrize("right", ["nowhere", "right/same.safetensors"])
@pytest.mark.usefixtures("trees")
def test_what_is_no_folder(difflens, right):
    assert_refused(difflens("-r", "left", right), right)


def test_a_bad_file_among_good_ones_is_told_and_the_others_are_still_compared(tmp_path, capsys):
    for side in ("left", "right"):
        write(tmp_path / side / "good.safetensors", arrays(w=[1, 2]))
        (tmp_path / side / "bad.safetensors").write_bytes(b"nothing")

    code = _run(["-r", str(tmp_path / "left"), str(tmp_path / "right")])

    said = capsys.readouterr()
    assert code == 2
    assert "bad.safetensors" in said.err
    assert "== good.safetensors" in said.out
