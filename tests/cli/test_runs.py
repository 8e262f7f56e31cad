"""`difflens runs` and `difflens export`: what there is, and other programs' formats."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from cli.command import InProcess, assert_refused

from difflens.training.history import read_history
from difflens.training.history.writer import RunWriter
from difflens.training.records.runs import Layer, RunInfo

INFO = RunInfo(layers=(Layer("h.0.weight", (2, 2)),), fields=("grad_l2",), scalars=("loss",))


def recorded(name: str, steps: int = 3) -> Path:
    with RunWriter(Path("runs") / name, INFO) as writer:
        for step in range(steps):
            layers = np.full((1, 1), 0.5, np.float32)
            writer.append(step, {"loss": 1 / (step + 1)}, layers, wall_time=1e9 + step)
    return writer.path


def test_runs_are_listed_with_how_far_they_came(difflens: InProcess) -> None:
    recorded("one")
    recorded("two\x1b[31m", 1)
    done = difflens("runs")

    assert done.code == 0
    assert "2 runs" in done.out
    assert "0 to 2" in done.out
    assert "0.3333" in done.out
    assert "\x1b" not in done.out


def test_the_list_as_json_holds_every_line(difflens: InProcess) -> None:
    recorded("one")
    found = json.loads(difflens("runs", "runs", "-o", "json").out)

    assert [line["name"] for line in found["runs"]] == ["one"]
    assert found["runs"][0]["state"] == "ended"
    assert found["runs"][0]["frames"] == 3


def test_damage_is_told_in_the_list(difflens: InProcess) -> None:
    path = recorded("one")
    path.write_bytes(path.read_bytes()[:-10])
    done = difflens("runs")

    assert "stopped without end" in done.out
    assert "bytes at the end are incomplete" in done.out
    assert "1 run, 1 with damage" in done.out


def test_a_folder_that_is_not_there_is_refused(difflens: InProcess) -> None:
    assert_refused(difflens("runs"), "runs: no such folder")


@pytest.mark.parametrize("to", ["csv", "json", "parquet", "tensorboard", "run"])
def test_a_run_is_exported_in_every_format(difflens: InProcess, to: str) -> None:
    recorded("one")
    done = difflens("export", "runs/one", "--to", to, "--out", "out")

    assert (done.code, done.out, done.err) == (0, "wrote 3 frames to out\n", "")
    assert Path("out").exists()


def test_a_foreign_log_becomes_a_run_and_a_run_a_table(difflens: InProcess) -> None:
    Path("log.jsonl").write_text('{"step": 5, "loss": 2.5, "grad_norm/a": 1}\n')
    assert difflens("export", "log.jsonl", "--to", "run", "--out", "made").code == 0
    assert difflens("export", "made", "--to", "csv", "--out", "made.csv").code == 0
    with Path("made.csv").open(newline="") as file:
        (row,) = csv.DictReader(file)

    assert (row["step"], row["loss"], row["layers/grad_l2/a"]) == ("5", "2.5", "1")
    assert read_history("made").frames == 1


def test_what_is_damaged_is_left_out_and_told(difflens: InProcess) -> None:
    path = recorded("one")
    path.write_bytes(path.read_bytes()[:-10])
    done = difflens("export", "runs/one", "--to", "csv", "--out", "out")

    assert done.code == 0
    assert "warning: runs/one: " in done.err
    assert "bytes at the end are incomplete" in done.err


def test_what_cannot_be_exported_is_one_line(difflens: InProcess) -> None:
    recorded("one")
    Path("text").write_text("hello")

    assert_refused(difflens("export", "none", "--to", "csv", "--out", "x"), "no such file")
    assert_refused(difflens("export", "text", "--to", "csv", "--out", "x"), "no run that can be")
    assert_refused(difflens("export", "runs/one", "--to", "csv", "--out", "no/x"), "no such file")
    assert_refused(difflens("export", "runs/one", "--to", "xlsx", "--out", "x"), "xlsx")
    assert_refused(
        difflens("export", "runs/one", "--to", "run", "--out", "runs"), "it is there already"
    )
    assert not Path("x").exists()


def test_one_frame_is_no_frames(difflens: InProcess) -> None:
    Path("log.csv").write_text("step,loss\n0,1.5\n")

    assert difflens("export", "log.csv", "--to", "csv", "--out", "out").out == (
        "wrote 1 frame to out\n"
    )
