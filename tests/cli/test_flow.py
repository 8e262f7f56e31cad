"""`difflens flow`: the picture in every form, played in a terminal, and what it refuses."""

import csv
import io
import json
import re
import signal
from pathlib import Path

import numpy as np
import pytest
from cli.command import assert_refused
from cli.terminal import Terminal
from training.flow.flows import recorded

from difflens.training.history.frame import MISSING
from difflens.training.history.writer import RunWriter
from difflens.training.records.runs import Layer, RunInfo

NAMES = ("stem.weight", "layers.2.weight", "layers.10.weight", "=hostile\x1b[31m<b>")


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Write a run in which one layer fades, one explodes once and one turns NaN."""
    info = RunInfo(name="exp1", layers=tuple(Layer(name, shape=(10, 10)) for name in NAMES))
    writer = RunWriter(tmp_path / "runs" / "exp1", info)
    for step in range(60):
        norms = np.array([1.0, 10.0 ** (-step / 5), 1.0, 2.0])
        block = np.stack([norms, norms / 10, norms / 2, norms * 0, norms * 0, norms * 0 + 5,
                          norms / 1e3]).astype(np.float32)  # fmt: skip
        if step == 30:
            block[2, 0] = 1e6
        if step == 40:
            block[0, 2], block[3, 2] = np.nan, 7
        if step > 50:
            block[:, 3] = MISSING
        writer.append(step, {"loss": 1.0}, block)
    writer.close()
    return tmp_path / "runs" / "exp1"


def rows(text: str) -> dict[str, str]:
    lines = [line.strip().rsplit("  ", 1) for line in text.splitlines()[3:7]]
    return {line[0]: line[1] for line in lines}


def test_the_picture_shows_what_happened_to_each_layer(difflens, run):
    outcome = difflens("flow", run)
    found = rows(outcome.out)

    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.lines[0].startswith("gradient flow of exp1: ")
    assert found["stem.weight"].index("!") == 30
    assert found["layers.10.weight"].index("x") == 40
    assert found["layers.2.weight"].endswith("v")
    assert found["=hostile\\x1b[31m<b>"].endswith("·" * 9)
    assert outcome.out.index("layers.2") < outcome.out.index("layers.10")


def test_json_holds_the_frames_and_the_summary(difflens, run):
    outcome = difflens("flow", run, "-o", "json")
    plain = json.loads(outcome.out, parse_constant=pytest.fail)

    assert plain["run"] == "exp1"
    assert len(plain["frames"]) == plain["frames_recorded"] == 60
    assert plain["frames"][40]["layers"][2]["state"] == "non_finite"
    assert plain["summary"]["overall_health"] == "Critical"
    assert [layer["name"] for layer in plain["frames"][0]["layers"]] == list(NAMES)


def test_what_json_wrote_is_shown_again(difflens, run, tmp_path):
    difflens("flow", run, "-o", "json", "--out", "flow.json")

    outcome = difflens("flow", tmp_path / "flow.json")

    assert rows(outcome.out) == rows(difflens("flow", run).out)


def test_what_an_animator_exported_is_shown(difflens, tmp_path):
    recorded({"a": [1.0]}, {"a": [np.nan]}).export_json(tmp_path / "flow.json")

    assert "█x" in difflens("flow", "flow.json").out
    assert difflens("flow", "flow.json", "-o", "csv").out.count("\n") == 3


def test_csv_is_a_line_a_frame_and_layer(difflens, run):
    found = list(csv.DictReader(io.StringIO(difflens("flow", run, "-o", "csv").out)))

    assert len(found) == 4 * 60
    assert found[3]["layer"].startswith("'=hostile")
    assert found[0]["grad_norm"] == "1.0"


def test_html_is_one_page(difflens, run, tmp_path):
    outcome = difflens("flow", run, "-o", "html", "--out", "flow.html")
    text = (tmp_path / "flow.html").read_text()

    assert (outcome.code, outcome.out, outcome.err) == (0, "", "")
    assert text.startswith("<!doctype html>")
    assert "<b>" not in text.split('id="data"')[1].split("</script>")[0]


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (("--field", "update_ratio"), "norm of the update by norm of the weights"),
        (("--field", "weight_l2"), "norm of the weights"),
        (("--scale", "layer"), "each layer from its lowest"),
        (("--scale", "frame"), "each column from its lowest"),
        (("--rows", "2"), "2 of 4 layers are left out"),
        (("--columns", "12"), "a column is up to 5 frames"),
        (("--exploding", "1e7"), "max |g| > 1e+07"),
    ],
)
def test_options_change_the_picture_and_say_so(difflens, run, options, word):
    assert word in difflens("flow", run, *options).out


def test_layers_are_chosen_by_name(difflens, run):
    for output in ("ascii", "json", "csv", "html"):
        text = difflens("flow", run, "--layers", "layers.*", "-o", output).out
        assert "layers.10.weight" in text
        assert "stem.weight" not in text


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--field", "grad_l3"), ("no field is called 'grad_l3'", "did you mean grad_l2?")),
        (("--field", "act_dead"), ("act_dead was not recorded", "recorded: ")),
        (("--layers", "nope"), ("no layer is called 'nope'",)),
        (("--vanishing", "nan"), ("nan is not a finite number",)),
        (("--vanishing", "10", "--exploding", "1"), ("not below exploding_threshold",)),
        (("--fps", "0"), ("0.1<=x<=60",)),
        (("--rank", "3"), ("rank 3",)),
        (("--animate", "-o", "csv"), ("--animate and -o csv",)),
    ],
)
def test_what_cannot_be_done_is_one_line_and_exit_two(difflens, run, options, words):
    assert_refused(difflens("flow", run, *options), *words)


def test_a_run_that_is_not_there_is_refused(difflens):
    assert_refused(difflens("flow", "nowhere"), "nowhere")


def test_a_broken_export_is_refused(difflens, tmp_path):
    (tmp_path / "flow.json").write_text('{"what": "difflens.flow", "frames": 3}')

    assert_refused(difflens("flow", "flow.json"), "no recorded flow")


def test_without_a_terminal_the_still_picture_is_shown_and_that_is_said(difflens, run):
    outcome = difflens("flow", run, "--animate")

    assert outcome.out == difflens("flow", run).out
    assert "no terminal" in outcome.err


def playing(run: Path, fps: str) -> Terminal:
    return Terminal("flow", run, "--animate", "--fps", fps, lines=30, columns=90, folder=run)


def test_it_plays_in_place_and_gives_the_cursor_back(run):
    terminal = playing(run, "60")

    assert terminal.end() == 0
    steps = re.findall(r"step (\d+), (\d+) of 60", terminal.seen)
    assert [int(step) for step, _ in steps] == list(range(60))
    moves = set(re.findall(r"\x1b\[(\d+)A", terminal.seen))
    assert len(moves) == 1  # always the same number of lines up
    assert terminal.seen.startswith("\x1b[?25l")
    assert terminal.seen.rstrip().endswith("\x1b[?25h")
    assert "\x1b[31m<b>" not in terminal.seen


def test_control_c_gives_the_cursor_back(run):
    terminal = playing(run, "5")
    terminal.until("2 of 60")

    terminal.process.send_signal(signal.SIGINT)

    assert terminal.end() == 130
    assert terminal.seen.rstrip().endswith("\x1b[?25h")
