"""Gathering: named before discovered, everything listed, nothing guessed."""

import json
import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from models.small import arrays, write

import difflens
from difflens.core.errors import DifflensError, EvidenceError
from difflens.diffs.evidence.gather import gather
from difflens.diffs.evidence.records import Evidence

CONFIG = {"hidden_size": 4}


def state(*losses: float) -> dict[str, Any]:
    history = [{"step": 10 * at, "loss": loss} for at, loss in enumerate(losses, 1)]
    return {"global_step": 10 * len(losses), "log_history": history}


@pytest.fixture
def run(tmp_path):
    """Return a way to write the folder of a checkpoint."""

    def make(name: str, values, *losses: float):
        folder = tmp_path / name
        write(folder / "model.safetensors", arrays(w=values, frozen=[3, 4]))
        (folder / "config.json").write_text(json.dumps(CONFIG))
        if losses:
            (folder / "trainer_state.json").write_text(json.dumps(state(*losses)))
        return folder

    return make


def test_two_mappings_have_nothing_beside_them():
    model = {"w": np.ones(2)}

    assert gather(model, model) == Evidence()


def test_what_lies_beside_a_checkpoint_is_found_and_listed(run):
    left, right = run("checkpoint-10", [1, 1], 3.0), run("checkpoint-20", [1, 2], 3.0, 2.0)
    found = gather(left, right)

    assert found.left.config == CONFIG
    assert (found.left.step, found.right.step) == (10, 20)
    assert found.log is found.right.log
    assert found.log.columns["loss"] == ((10.0, 3.0), (20.0, 2.0))
    assert found.given == {
        "config_left": f"{left}/config.json (discovered)",
        "log_left": f"{left}/trainer_state.json (discovered)",
        "config_right": f"{right}/config.json (discovered)",
        "log_right": f"{right}/trainer_state.json (discovered)",
    }


def test_without_discovery_only_what_is_named_is_used(run, tmp_path):
    left, right = run("checkpoint-10", [1, 1], 3.0), run("checkpoint-20", [1, 2], 3.0, 2.0)
    (tmp_path / "metrics.json").write_text('{"accuracy": 0.5}')
    found = gather(left, right, discovery=False, metrics_right=tmp_path / "metrics.json")

    assert found.right.metrics == {"accuracy": 0.5}
    assert found.given == {"metrics_right": f"{tmp_path}/metrics.json (named)"}
    assert found == Evidence(given=found.given, right=found.right)


def test_what_is_named_comes_before_what_lies_there(run, tmp_path):
    left, right = run("left", [1, 1]), run("right", [1, 2])
    (tmp_path / "other.json").write_text('{"hidden_size": 8}')
    found = gather(left, right, config_left=tmp_path / "other.json")

    assert found.left.config == {"hidden_size": 8}
    assert found.right.config == CONFIG
    assert found.given["config_left"] == f"{tmp_path}/other.json (named)"


def test_logs_of_two_different_runs_are_no_common_log(run):
    left, right = run("left", [1, 1], 3.0, 2.5), run("right", [1, 2], 9.0)
    found = gather(left, right)

    assert found.log is None
    assert found.left.log.columns["loss"] == ((10.0, 3.0), (20.0, 2.5))
    assert found.right.log.columns["loss"] == ((10.0, 9.0),)


def test_a_log_that_is_named_is_the_log(run, tmp_path):
    (tmp_path / "log.csv").write_text("step,loss\n1,5\n")
    found = gather(run("left", [1, 1], 3.0), run("right", [1, 2], 9.0), log=tmp_path / "log.csv")

    assert found.log.columns == {"loss": ((1.0, 5.0),)}


def test_a_found_file_that_cannot_be_used_is_told_and_stops_nobody(run):
    left, right = run("left", [1, 1]), run("right", [1, 2])
    (left / "config.json").write_text("[]")
    found = gather(left, right)

    assert found.left.config is None
    said = "discovered, not used: it holds a list, an object is wanted"
    assert found.given["config_left"] == f"{left}/config.json ({said})"


def test_a_named_file_that_cannot_be_used_is_an_error(run, tmp_path):
    with pytest.raises(EvidenceError, match=r"nowhere\.csv: no such file"):
        gather(run("left", [1]), run("right", [2]), evals_left=tmp_path / "nowhere.csv")


def test_a_kind_that_does_not_exist_is_a_mistake_of_the_caller(run):
    with pytest.raises(TypeError, match="gather\\(\\) takes no 'metric_left'"):
        gather(run("left", [1]), run("right", [2]), metric_left="x")


def test_every_kind_of_file_can_be_named(tmp_path, run):
    files = {
        "evals_left": "id,score\n1,1\n", "latency_right": "1\n2\n", "runs": "lr\n1\n",
        "history": "version,metric,value\n1,a,2\n", "gradients": "step,w\n1,2\n",
    }  # fmt: skip
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    named = {name: tmp_path / name for name in files}
    found = gather(run("left", [1]), run("right", [2]), discovery=False, **named)

    assert found.given.keys() == files.keys()
    assert found.left.evals[0].score == 1.0
    assert [each.ms for each in found.right.latency] == [1.0, 2.0]
    assert found.runs == ({"lr": 1.0},)
    assert found.history[0].value == 2.0
    assert found.gradients.norms == {"w": ((1.0, 2.0),)}


def test_an_optimizer_and_a_licence_beside_a_checkpoint_are_its_own(run):
    left, right = run("left", [1, 1]), run("right", [1, 2])
    weight = torch.nn.Parameter(torch.ones(2))
    weight.grad = torch.ones(2)
    made = torch.optim.AdamW([weight], lr=0.5)
    made.step()
    torch.save(made.state_dict(), right / "optimizer.pt")
    (right / "LICENSE").write_text("MIT License\n")
    found = gather(left, right)

    assert found.right.optimizer.groups[0]["lr"] == 0.5
    assert found.right.optimizer.moments[0]["exp_avg"].array().shape == (2,)
    assert found.right.licence == "MIT License"
    assert found.left.optimizer is None


def test_a_checkpoint_without_an_optimizer_inside_is_not_spoken_of(tmp_path):
    for name in ("left", "right"):
        (tmp_path / name).mkdir()
        torch.save({"w": torch.ones(2)}, tmp_path / name / "model.pt")

    assert gather(tmp_path / "left" / "model.pt", tmp_path / "right" / "model.pt") == Evidence()


def test_further_checkpoints_make_a_trajectory(run):
    series = [run(f"checkpoint-{step}", [1, value]) for step, value in ((1, 1), (2, 2), (5, 4))]
    found = gather(series[0], series[2], checkpoints=[series[1]])

    assert found.trajectory.points == tuple(map(str, series))
    assert found.trajectory.steps == (1, 2, 5)
    assert found.trajectory.distances["w"] == ((0, 1, 9), (1, 0, 4), (9, 4, 0))
    assert found.trajectory.distances["frozen"] == ((0, 0, 0),) * 3
    assert found.trajectory.norms["frozen"] == (25, 25, 25)
    assert found.given["checkpoint_1"] == f"{series[1]} (named)"


def test_the_step_of_a_checkpoint_without_one_in_its_name_is_that_of_its_log(run):
    series = [run("a", [1], 3.0), run("b", [2], 3.0, 2.0), run("c", [3], 3.0, 2.0, 1.0)]
    found = gather(series[0], series[2], checkpoints=[series[1]])

    assert found.trajectory.steps == (10, 20, 30)


def test_a_common_ancestor_is_compared_with_both(run):
    base, left, right = run("base", [0, 0]), run("left", [3, 4]), run("right", [0, 1])
    found = gather(left, right, base=base)

    assert [each["w"].l2 for each in found.base] == [5.0, 1.0]
    assert found.given["base"] == f"{base} (named)"


@pytest.mark.parametrize("option", ["base", "checkpoints"])
def test_a_further_model_that_is_not_there_is_an_error(run, tmp_path, option):
    gone = tmp_path / "gone.safetensors"
    named = {option: gone if option == "base" else [gone]}

    with pytest.raises(DifflensError, match=r"gone\.safetensors: no such file"):
        gather(run("left", [1]), run("right", [2]), **named)


def test_a_sample_and_its_code_go_together(run, tmp_path):
    np.savez(tmp_path / "sample.npz", x=np.ones(1))

    with pytest.raises(EvidenceError, match="--model-code: it is missing"):
        gather(run("left", [1]), run("right", [2]), sample=tmp_path / "sample.npz")
    with pytest.raises(EvidenceError, match="--sample: it is missing"):
        gather(run("left", [1]), run("right", [2]), model_code="a:b")


def test_a_sample_is_handed_on_with_its_code(run, tmp_path, monkeypatch):
    np.savez(tmp_path / "sample.npz", x=np.ones(1))
    fake = SimpleNamespace(activations=lambda *given: given)
    monkeypatch.setitem(sys.modules, "difflens.diffs.evidence.activations", fake)
    left, right = run("left", [1]), run("right", [2])
    found = gather(left, right, sample=tmp_path / "sample.npz", model_code="code:load")

    assert found.activations == (left, right, tmp_path / "sample.npz", "code:load")
    assert found.given["model_code"] == "code:load (named)"


@pytest.mark.parametrize("code", ["load", "code:", ":load", "co de:load", "code:load()", "a:b;c"])
def test_code_that_names_no_callable_is_refused(run, tmp_path, code):
    np.savez(tmp_path / "sample.npz", x=np.ones(1))

    with pytest.raises(EvidenceError, match="module:callable is wanted"):
        gather(run("l", [1]), run("r", [2]), sample=tmp_path / "sample.npz", model_code=code)


def test_a_sample_that_is_no_archive_is_refused(run, tmp_path):
    (tmp_path / "sample.npz").write_bytes(b"\x93NUMPY")

    with pytest.raises(EvidenceError, match=r"it is no \.npz"):
        gather(run("l", [1]), run("r", [2]), sample=tmp_path / "sample.npz", model_code="a:b")


def test_the_library_hands_evidence_and_policy_to_an_analysis(run, tmp_path):
    left, right = run("left", [1, 1]), run("right", [1, 2])
    (tmp_path / "policy.toml").write_text("[change_summary]\nfull_fraction = 0.5\n")
    evidence = difflens.gather(left, right)
    policy = difflens.read_policy(tmp_path / "policy.toml")
    answer = difflens.diff(left, right).analyse("change_summary", evidence, policy)

    assert answer.policy["full_fraction"] == {"value": 0.5, "source": "user"}
