"""`difflens fingerprint`, and fingerprints where a model goes: every output says what it is."""

import csv
import io
import json
import sys

import numpy as np
import pytest
import yaml
from cli.command import assert_refused
from models.small import arrays, tensor, write


@pytest.fixture
def models(tmp_path):
    """Two models: `w` moved, `same` did not, `cast` is BF16 on the right, `new` is added."""
    values = np.random.default_rng(0).standard_normal((3, 70, 50))
    left = arrays(w=values[0], same=values[1], cast=values[2])
    right = arrays(w=values[0] * 1.01, same=values[1], new=[1.0])
    right["cast"] = tensor(values[2], "BF16")
    return write(tmp_path / "l.safetensors", left), write(tmp_path / "r.safetensors", right)


@pytest.fixture
def recorded(difflens, models):
    for path in models:
        out = path.with_suffix(".fingerprint")
        assert difflens("fingerprint", path, "-o", out).code == 0
    return [path.with_suffix(".fingerprint") for path in models]


def test_a_fingerprint_is_written_and_looked_at(difflens, models, tmp_path):
    done = difflens("fingerprint", models[0], "-o", "m.fingerprint")

    assert done.code == 0
    assert "3 tensors" in done.out
    assert done.out.endswith("in m.fingerprint\n")
    listed = difflens("fingerprint", "m.fingerprint", "-v")
    assert listed.lines[0].startswith("m.fingerprint: 3 tensors")
    assert [line.split()[-3] for line in listed.lines[1:]] == ["w", "same", "cast"]
    assert not [each for each in tmp_path.iterdir() if each.name.startswith(".")]


def test_exit_codes_are_those_of_a_diff(difflens, models, recorded):
    left, right = recorded

    assert difflens(left, right).code == 1
    assert difflens(left, left).code == 0
    assert difflens(left, models[0]).code == 0
    assert difflens(models[0], right, "-q").code == 1
    assert difflens(left, right, "--exit-zero").code == 0
    assert difflens(left, right, "--brief").out.startswith("Files ")


def test_text_marks_estimates_and_states_their_error(difflens, recorded):
    done = difflens(*recorded)

    assert "~ w: relative_l2=~1.0e-02, ±2.2%" in done.lines
    assert "! cast: dtype=F32 -> BF16, relative_l2=~" in done.out
    assert "+ new: F32 [1]" in done.lines
    assert "relative_l2 ~" in done.lines[-2]
    assert done.lines[-1].endswith("distances marked ~ are estimates, ±2.2%")
    assert "max_abs" not in done.out


def test_exact_figures_are_not_marked(difflens, models, recorded):
    exact = difflens(*models)

    assert difflens(*recorded, "--exact").out == exact.out
    assert difflens(recorded[0], models[1], "--exact").out == exact.out
    assert "estimate" not in exact.out


def test_data_has_the_error_beside_the_distance(difflens, recorded):
    rows = json.loads(difflens(*recorded, "-o", "json").out)
    (changed,) = [each["TensorStatsChanged"] for each in rows
                  if each.get("TensorStatsChanged", [""])[0] == "w"]  # fmt: skip
    full = json.loads(difflens(*recorded, "-o", "full-json").out)
    table = list(csv.DictReader(io.StringIO(difflens(*recorded, "-o", "csv").out)))
    plain = yaml.safe_load(difflens(*recorded, "-o", "yaml").out)

    assert changed[3]["estimated_error"] == pytest.approx(0.0221, abs=1e-4)
    assert changed[3]["max_abs"] is None
    errors = {row["name"]: row["estimated_error"] for row in full["tensors"]}
    assert errors["w"] == changed[3]["estimated_error"]
    assert errors["same"] is None
    assert full["totals"]["estimated_error"] == max(filter(None, errors.values()))
    assert {row["name"]: row["estimated_error"] for row in table}["w"] == repr(errors["w"])
    assert plain == rows


def test_documents_mark_estimates(difflens, recorded):
    markdown = difflens(*recorded, "-o", "markdown").out
    page = difflens(*recorded, "-o", "html").out

    assert "relative\\_l2=\\~" in markdown or "relative_l2=~" in markdown
    assert "distances marked" in markdown
    assert "~1.0e-02" in page
    assert "distances marked ~ are estimates" in page


def test_stats_are_known_without_the_bytes(difflens, models, recorded):
    exact = [line for line in difflens(*models, "--stats").lines if line.startswith("~ w")]

    assert [
        line for line in difflens(*recorded, "--stats").lines if line.startswith("~ w")
    ] == exact


def test_shape_only_reads_no_tensor(difflens, models, recorded):
    exact = difflens(*models, "--shape-only")

    assert difflens(recorded[0], models[1], "--shape-only").out == exact.out


def test_many_lines_fold(difflens, tmp_path):
    values = np.random.default_rng(0).standard_normal((50, 40))
    for side, factor in (("l", 1.0), ("r", 1.1)):
        model = arrays(**{f"layers.{i}.w": each * factor for i, each in enumerate(values)})
        write(tmp_path / f"{side}.safetensors", model)
        difflens("fingerprint", f"{side}.safetensors", "-o", f"{side}.fingerprint")

    done = difflens("l.fingerprint", "r.fingerprint")

    assert done.lines[0].startswith("~ layers.{0..49}.w (50): relative_l2 ~1.0e-01")


def test_what_fingerprints_cannot_do_is_said(difflens, models, recorded):
    assert_refused(difflens(*recorded, "--epsilon", "1"), "--epsilon", "--exact")
    assert_refused(difflens(*recorded, "--verify-conversion"), "reads values", "--exact")
    assert difflens(*recorded, "--verify-conversion", "--exact").code == 1
    models[0].write_bytes(models[0].read_bytes() + b" ")
    assert_refused(difflens(*recorded, "--exact"), "has changed since")
    answer = difflens(*recorded, "--spectral-analysis").out
    assert "the model's bytes (--exact)" in answer


def test_bad_inputs_are_one_line(difflens, models, tmp_path):
    (tmp_path / "cut.fingerprint").write_bytes(b"")
    good = difflens("fingerprint", models[0], "-o", "good.fingerprint")
    assert good.code == 0
    data = (tmp_path / "good.fingerprint").read_bytes()
    (tmp_path / "bad.fingerprint").write_bytes(data[:-9] + data[-8:] + b"x")

    assert_refused(difflens("fingerprint", "absent.safetensors"), "no such file")
    assert_refused(difflens("fingerprint", "cut.fingerprint"), "empty")
    assert_refused(difflens("bad.fingerprint", models[0]), "the fingerprint is damaged")
    assert_refused(difflens("fingerprint", models[0], "-o", "no/such/folder/m.fingerprint"))
    assert_refused(difflens("fingerprint", models[0], "-o", tmp_path), "it is a folder")
    before = models[0].read_bytes()
    assert_refused(difflens("fingerprint", models[0], "-o", models[0].name), "the model itself")
    assert models[0].read_bytes() == before


def test_without_blake3_there_is_one_line_and_no_file(difflens, models, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "blake3", None)

    done = difflens("fingerprint", models[0], "-o", "m.fingerprint")

    assert_refused(done, "pip install 'difflens[fingerprints]'")
    assert not (tmp_path / "m.fingerprint").exists()


def test_two_recorded_models_need_no_blake3(difflens, recorded, monkeypatch):
    monkeypatch.setitem(sys.modules, "blake3", None)

    assert difflens(*recorded).code == 1


def test_hostile_names_are_made_harmless(difflens, tmp_path):
    path = write(tmp_path / "m.safetensors", {"a\x1b[31m\n<b>": tensor([1.0, 2.0])})
    difflens("fingerprint", path, "-o", "m.fingerprint")

    done = difflens("fingerprint", "m.fingerprint", "-v")

    assert "\x1b" not in done.out
    assert len(done.lines) == 2
