"""`difflens show`: what is in a model."""

import json

import numpy as np
import pytest
from cli.command import assert_refused
from models.small import arrays, tensor, write


@pytest.fixture
def path(tmp_path):
    model = arrays(**{"layers.10.w": [[1, 2], [3, 6]], "layers.2.w": [0, np.nan]})
    model["head"] = tensor([1, 2, 3], "BF16")
    return write(tmp_path / "m.safetensors", model, {"step": "7", "format": "pt"})


def test_tensors_come_in_natural_order_with_dtype_shape_and_size(difflens, path):
    outcome = difflens("show", path)

    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.lines == [
        f"{path}: safetensors, 3 tensors (1 BF16, 2 F32), 9 parameters, 30 B",
        "  format: pt",
        "  step: 7",
        "head         BF16     [3]   6 B",
        "layers.2.w    F32     [2]   8 B",
        "layers.10.w   F32  [2, 2]  16 B",
    ]


def test_stats_add_what_the_values_are(difflens, path):
    lines = difflens("show", path, "--stats").lines

    assert lines[-1].split()[-4:] == ["mean=3", "std=1.871", "min=1", "max=6"]
    assert lines[-2].endswith("1 NaN")


def test_without_stats_no_tensor_is_read(difflens, path, monkeypatch):
    def refuse(*_: object) -> None:
        pytest.fail("a tensor was read")

    monkeypatch.setattr("difflens.models.formats.safetensors.Safetensors.read_into", refuse)

    assert difflens("show", path).code == 0
    assert difflens("show", path, "-o", "json").code == 0


def test_stable_text_depends_on_the_content_alone(difflens, path, tmp_path):
    moved = tmp_path / "elsewhere.safetensors"
    moved.write_bytes(path.read_bytes())

    first, second = difflens("show", "--stable", path), difflens("show", moved, "--stable")

    assert first.out == second.out
    assert first.lines[:2] == ["# format: pt", "# step: 7"]
    assert first.lines[-1].startswith("layers.10.w F32 [2, 2] mean=3 std=1.871 sha256=")


def test_stable_text_shows_a_change_of_one_bit(difflens, tmp_path):
    texts = []
    for value in (0.0, -0.0):
        path = write(tmp_path / "m.safetensors", arrays(w=[value], x=[1]))
        texts.append(difflens("show", "--stable", path).lines)

    assert texts[0][0] != texts[1][0]
    assert texts[0][1] == texts[1][1]


@pytest.mark.parametrize("option", ["--stable", "--stats"])
@pytest.mark.parametrize("threads", ["1", "2", "5"])
def test_threads_change_nothing(difflens, path, option, threads):
    assert difflens("show", path, option, "--threads", threads) == difflens("show", path, option)


def test_json_holds_all_that_is_known(difflens, path):
    found = json.loads(
        difflens("show", path, "-o", "json", "--stats").out, parse_constant=pytest.fail
    )

    assert found["model"]["parameter_count"] == 9
    assert found["metadata"] == {"format": "pt", "step": "7"}
    assert [each["info"]["name"] for each in found["tensors"]] == [
        "head",
        "layers.2.w",
        "layers.10.w",
    ]
    assert found["tensors"][1]["stats"]["nan"] == 1
    assert found["tensors"][2]["stats"]["mean"] == 3


@pytest.mark.parametrize("options", [(), ("--stats",), ("--stable",), ("-o", "json")])
def test_hostile_names_and_metadata_stay_text(difflens, tmp_path, options):
    bad = "a\x1b[2J\n\x7f\u202eb"
    path = write(tmp_path / "m.safetensors", {bad: tensor([1])}, {bad: bad})

    out = difflens("show", path, *options).out

    assert all(line.isprintable() for line in out.splitlines())


def test_a_folder_shows_what_lies_beside_the_weights(difflens, tmp_path):
    write(tmp_path / "m" / "model.safetensors", arrays(w=[1]))
    (tmp_path / "m" / "config.json").write_text('{"width": 8}')

    assert "  config.json: width: 8" in difflens("show", "m").lines


def test_an_empty_model(difflens, tmp_path):
    empty = write(tmp_path / "e.safetensors", {})

    for options in ((), ("--stats",), ("--stable",), ("-o", "json")):
        assert difflens("show", empty, *options).code == 0


def test_out_takes_the_listing(difflens, path, tmp_path):
    text = difflens("show", path).out

    assert difflens("show", path, "--out", "listing.txt").out == ""
    assert (tmp_path / "listing.txt").read_text() == text


def test_what_cannot_be_shown(difflens, path):
    assert_refused(difflens("show", "nowhere"), "nowhere: no such file")
    assert_refused(difflens("show"), "missing argument 'FILE'")
    assert_refused(difflens("show", path, "-o", "csv"), "wrong value for '-o'", "'csv'")
