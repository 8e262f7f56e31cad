import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import difflens
from difflens.cli import group
from difflens.testing.histories import faulty, healthy, recorded
from difflens.training.history.writer import RunWriter


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
    from difflens.training.records.runs import Layer

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
    from difflens.core.errors import DifflensError

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


WORDS = {
    (True, 0): "healthy: no diagnosis found a fault",
    (False, 0): "warnings, none critical: ",
    (False, 1): "not healthy: ",
    (None, 2): "cannot tell: ",
}


@pytest.mark.parametrize("name", [*sorted(faulty()), "healthy", "empty"])
def test_the_first_line_the_json_and_the_exit_code_say_the_same(runs, name):
    result = diagnose(runs[name])
    told = json.loads(diagnose(runs[name], "-o", "json").output)

    assert f": {WORDS[told['healthy'], result.return_value]}" in result.output.splitlines()[0]
    severities = {each["severity"] for each in told["findings"]}
    assert (told["healthy"] is False) == bool(severities & {"warning", "critical"})
    assert (result.return_value == 1) == ("critical" in severities)


def test_warnings_alone_are_not_called_not_healthy_in_any_format(runs):
    for output in ("cli", "markdown", "html"):
        shown = diagnose(runs["over-fit"], "-o", output).output

        assert "not healthy" not in shown.lower()
        assert "warnings, none critical" in shown.lower()


@pytest.fixture(scope="module")
def half_frozen(tmp_path_factory):
    """A run of three layers of which the first two are frozen, weights and one bias."""
    import torch

    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 8, bias=False),
        torch.nn.Linear(8, 1),
    )  # fmt: skip
    for each in [*model[0].parameters(), *model[2].parameters()]:
        each.requires_grad_(False)
    trained = [each for each in model.parameters() if each.requires_grad]
    optimizer = torch.optim.SGD(trained, lr=0.05)
    inputs = torch.randn(64, 4)
    targets = inputs.sum(1, keepdim=True)
    run = tmp_path_factory.mktemp("frozen") / "run"
    with difflens.monitor(model, optimizer, run, every=1) as watch:
        for _ in range(60):
            optimizer.zero_grad()
            loss = torch.nn.functional.mse_loss(model(inputs), targets)
            loss.backward()
            optimizer.step()
            watch.step(loss=loss)
    return str(run)


@pytest.mark.parametrize("output", ["cli", "markdown", "html"])
def test_frozen_layers_are_noted_and_are_no_warning(half_frozen, output):
    shown = diagnose(half_frozen, "-o", output)

    assert "3 layers, not trained: 0.weight, 0.bias, 2.weight" in shown.output.replace("`", "")
    assert "frozen" in shown.output
    assert output != "cli" or "frozen: 3 layers" in shown.output


def test_frozen_layers_are_named_in_json_and_leave_the_verdict_alone(half_frozen):
    told = json.loads(diagnose(half_frozen, "-o", "json").output)

    assert told["frozen"] == ["0.weight", "0.bias", "2.weight"]
    assert not any("frozen" in each for each in told["warnings"])
    assert "not-training" not in [each["name"] for each in told["findings"]]


def test_a_layer_that_was_set_free_later_is_not_called_frozen():
    from difflens.training.records.runs import Layer

    free = Layer("a.weight", (4, 4), "Linear", "weight", 0, trainable=False)
    made = recorded([2.0, 1.0, 0.5, 0.2, 0.1, 0.05], layers=(free,))

    assert difflens.diagnose(made).frozen == ()


def logged(folder, head, row):
    path = folder / "log.csv"
    path.write_text("\n".join([head, *(row(i) for i in range(200))]) + "\n")
    return str(path)


@pytest.mark.parametrize(
    ("head", "row", "lacking", "judged"),
    [
        ("step,grad_norm/a,grad_norm/b", lambda i: f"{i},1.{i % 3},2.{i % 5}", "loss", ["nan"]),
        ("step,loss,val_loss", lambda i: f"{i},{2 / (i + 1)},{2.1 / (i + 1)}", "grad_l2",
         ["nan", "over-fit", "spike"]),
    ],
    ids=["no loss", "a loss alone"],
)  # fmt: skip
def test_the_headline_claims_no_more_than_was_judged(tmp_path, head, row, lacking, judged):
    log = logged(tmp_path, head, row)
    result = diagnose(log)
    told = json.loads(diagnose(log, "-o", "json").output)
    headline = result.output.splitlines()[0]

    number = len(told["unjudged"])
    assert (number > 3, result.return_value) == (True, 0)
    assert not set(judged) & told["unjudged"].keys()
    assert f": no fault found, but {number} diagnoses could not be judged (" in headline
    assert lacking in headline
    assert "healthy" not in headline
    assert "healthy" not in diagnose(log, "-o", "html").output.lower().partition("beside it")[0]


def test_without_a_loss_on_held_back_data_the_headline_says_what_was_left_out(runs):
    headline = diagnose(runs["healthy"]).output.splitlines()[0]

    assert "fault, 1 diagnosis could not be judged (val_loss not recorded)" in headline
