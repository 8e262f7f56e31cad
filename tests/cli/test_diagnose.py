import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import difflens
from difflens.cli import group
from difflens.history.writer import RunWriter
from difflens.testing.histories import faulty, healthy, recorded


def written(folder, history):
    """Write a made history as the monitor would."""
    with RunWriter(folder, history.info) as run:
        for at in range(len(history.recent)):
            values = np.ascontiguousarray(history.recent._layers[0, at], np.float32)
            run.append(int(history.recent.steps[at]), history.recent._scalars[0, at].copy(), values)
    return str(folder)


def diagnose(*arguments):
    return CliRunner().invoke(group, ["diagnose", *arguments], standalone_mode=False)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    histories = {**faulty(), "healthy": healthy()["learning"], "empty": recorded([])}
    return {name: written(folder / name, each) for name, each in histories.items()}


@pytest.mark.parametrize(
    ("name", "options", "code"),
    [
        ("healthy", [], 0),
        ("lr-high", [], 1),
        ("over-fit", [], 0),
        ("over-fit", ["--fail-on", "warning"], 1),
        ("empty", [], 2),
    ],
)
def test_the_exit_code_says_whether_it_is_healthy(runs, name, options, code):
    assert diagnose(runs[name], *options).return_value == code


def test_json_has_the_shape_of_the_specification(runs):
    told = json.loads(diagnose(runs["lr-high"], "-o", "json").output)

    assert (told["run"], told["steps"], told["healthy"]) == (runs["lr-high"], 60, False)
    first = told["findings"][0]
    assert {"name", "severity", "layers", "since_step", "evidence", "cause", "try",
            "confidence", "fix", "also"} <= set(first)  # fmt: skip
    assert first["fix"]["code"] == "scale_lr"


def test_nothing_to_judge_is_said(runs):
    told = diagnose(runs["empty"], "-o", "json")

    assert json.loads(told.output)["healthy"] is None
    assert "cannot tell" in diagnose(runs["empty"]).output


def test_the_first_line_is_the_verdict(runs):
    first = diagnose(runs["nan"]).output.splitlines()[0]

    assert "not healthy: nan since step 60" in first


@pytest.mark.parametrize("output", ["cli", "json", "yaml", "markdown", "html"])
def test_names_out_of_a_file_command_no_terminal_and_no_page(tmp_path, output):
    from difflens.runs import Layer

    hostile = "a\x1b[31m<script>alert(1)</script>"
    layers = tuple(
        Layer(f"{hostile}.{place}.weight", (4, 4), "Linear", "weight", place) for place in range(3)
    )
    run = written(tmp_path / "run", recorded([2.3] * 10, layers=layers, update_l2=0.0,
                                             scalars={"optimizer_steps": 0.0}))  # fmt: skip

    shown = diagnose(run, "-o", output).output

    assert "\x1b" not in shown
    assert output != "html" or "<script>alert" not in shown


def test_a_policy_changes_what_is_said(runs, tmp_path):
    policy = tmp_path / "policy.toml"
    policy.write_text("[lr_high]\nupdate = 100.0\n[oscillating]\npoints = 1000\n")

    told = json.loads(diagnose(runs["lr-high"], "-o", "json", "--policy", str(policy)).output)

    assert "lr-high" not in [each["name"] for each in told["findings"]]


def test_a_folder_without_a_run_is_one_line_of_trouble(tmp_path):
    from difflens.errors import DifflensError

    result = diagnose(str(tmp_path))

    assert isinstance(result.exception, DifflensError)


def test_in_python_a_path_is_answered_as_on_the_command_line(runs):
    told = json.loads(diagnose(runs["lr-high"], "-o", "json").output)

    assert json.loads(json.dumps(difflens.diagnose(runs["lr-high"]).to_dict())) == told
    assert difflens.diagnose(Path(runs["lr-high"])).to_dict()["run"] == runs["lr-high"]
    history = difflens.read_history(runs["lr-high"])
    assert (
        difflens.diagnose(history, run=runs["lr-high"]).to_dict()
        == difflens.diagnose(runs["lr-high"]).to_dict()
    )
    assert difflens.diagnose(runs["lr-high"], run="mine").run == "mine"


def test_in_python_what_is_no_run_is_one_clear_error(tmp_path):
    with pytest.raises(difflens.DifflensError, match="absent: no such file or directory"):
        difflens.diagnose(tmp_path / "absent")
    with pytest.raises(difflens.DifflensError, match="it is no run that can be read"):
        difflens.diagnose(str(tmp_path))
    with pytest.raises(difflens.DifflensError, match="history is a list, neither a path nor"):
        difflens.diagnose([])


def test_in_python_a_policy_is_heard(runs, tmp_path):
    (tmp_path / "deaf.toml").write_text("[lr_high]\nupdate = 1e9\n")
    deaf = difflens.read_policy(tmp_path / "deaf.toml")

    assert [each.name for each in difflens.diagnose(runs["lr-high"]).findings] == ["lr-high"]
    assert difflens.diagnose(runs["lr-high"], deaf).findings == ()
