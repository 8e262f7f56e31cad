"""Optimiser states that torch saved, read without torch."""

from typing import Any

import pytest
import torch
from diffs.evidence.refusals import mutated, refused, refuses_bad_files, survives_mutants

from difflens.diffs.evidence.optimizer import optimizer

OPTIMIZERS = {
    "adamw": lambda each: torch.optim.AdamW(each, lr=3e-4, betas=(0.8, 0.99), weight_decay=0.01),
    "amsgrad": lambda each: torch.optim.Adam(each, amsgrad=True),
    "sgd": lambda each: torch.optim.SGD(each, lr=0.1, momentum=0.9),
    "tensor lr": lambda each: torch.optim.AdamW(each, lr=torch.tensor(0.25)),
    "groups": lambda each: torch.optim.AdamW(
        [{"params": each[:1], "lr": 0.5}, {"params": each[1:]}]
    ),
}


def trained(make):
    torch.manual_seed(0)
    parameters = [torch.nn.Parameter(torch.randn(4, 3)), torch.nn.Parameter(torch.tensor(0.5))]
    made = make(parameters)
    for _ in range(3):
        made.zero_grad()
        (parameters[0].square().sum() * parameters[1]).backward()
        made.step()
    return made


def same(found, made) -> None:
    """Hold what was read against what torch has."""
    state = made.state_dict()
    for group, theirs in zip(found.groups, state["param_groups"], strict=True):
        assert group["params"] == theirs["params"]
        assert group["lr"] == float(theirs["lr"])
        assert group.get("betas") == (list(theirs["betas"]) if "betas" in theirs else None)
    assert found.moments.keys() == state["state"].keys()
    for index, values in state["state"].items():
        assert found.moments[index].keys() == values.keys()
        for key, value in values.items():
            read = found.moments[index][key]
            if key == "step":
                assert read == float(value) == 3.0
            else:
                assert (read.array() == value.numpy()).all()
                assert read.shape == tuple(value.shape)


@pytest.mark.parametrize("kind", OPTIMIZERS)
@pytest.mark.parametrize("zipped", [True, False])
def test_an_optimizer_file_is_read_as_torch_reads_it(tmp_path, kind, zipped):
    made = trained(OPTIMIZERS[kind])
    path = tmp_path / "optimizer.pt"
    torch.save(made.state_dict(), path, _use_new_zipfile_serialization=zipped)

    same(optimizer(path), made)


@pytest.mark.parametrize(
    "wrap",
    [
        lambda state: {"state_dict": {}, "optimizer_states": [state], "global_step": 3},
        lambda state: {"model": {"w": torch.zeros(2)}, "optimizer": state},
        lambda state: {"model_state_dict": {"w": torch.zeros(2)}, "optimizer_state_dict": state},
    ],
    ids=["lightning", "optimizer", "optimizer_state_dict"],
)
def test_an_optimizer_inside_a_checkpoint_is_found(tmp_path, wrap):
    made = trained(OPTIMIZERS["adamw"])
    torch.save(wrap(made.state_dict()), tmp_path / "last.ckpt")

    same(optimizer(tmp_path / "last.ckpt"), made)


def test_steps_counted_by_a_plain_number_are_numbers(tmp_path):
    state = {"state": {0: {"step": 7, "exp_avg": torch.ones(2)}}, "param_groups": [{"params": [0]}]}
    torch.save(state, tmp_path / "optimizer.pt")

    assert optimizer(tmp_path / "optimizer.pt").moments[0]["step"] == 7


def test_parameters_called_by_name_are_numbered_in_their_order(tmp_path):
    state = {"a.weight": {"exp_avg": torch.ones(2)}, "b": {"exp_avg": torch.zeros(3)}}
    groups = [{"lr": 0.1, "params": ["b", "a.weight"]}]
    torch.save({"state": state, "param_groups": groups}, tmp_path / "optimizer.pt")
    found = optimizer(tmp_path / "optimizer.pt")

    assert found.groups[0]["params"] == [0, 1]
    assert found.groups[0]["names"] == ["b", "a.weight"]
    assert {index: each["exp_avg"].shape for index, each in found.moments.items()} == {
        0: (3,),
        1: (2,),
    }


def test_a_rate_that_is_no_number_is_unknown(tmp_path):
    groups = [{"lr": float("nan"), "weight_decay": torch.tensor(float("inf")), "params": []}]
    torch.save({"state": {}, "param_groups": groups}, tmp_path / "optimizer.pt")

    group = optimizer(tmp_path / "optimizer.pt").groups[0]
    assert group["lr"] is None
    assert group["weight_decay"] is None


class Loud:
    """An object whose loading would be heard."""

    def __reduce__(self):
        return (exec, ("raise SystemExit('loaded')",))


def test_nothing_in_the_file_is_called(tmp_path):
    made = trained(OPTIMIZERS["adamw"]).state_dict()
    made["param_groups"][0]["hook"] = Loud()
    torch.save(made, tmp_path / "optimizer.pt")

    assert optimizer(tmp_path / "optimizer.pt").groups[0]["hook"] is None


CYCLE: list[Any] = []
CYCLE.append(CYCLE)
BAD = {
    "weights": ({"w": torch.zeros(2)}, "it holds no optimiser: no 'state' with its 'param_groups'"),
    "a list": ([1, 2], "it holds no optimiser"),
    "no groups": ({"state": {}}, "it holds no optimiser"),
    "groups without parameters": ({"state": {}, "param_groups": [{"lr": 1}]}, "no optimiser"),
    "twice": (
        {"state": {}, "param_groups": [{"params": [0]}, {"params": [0]}]},
        "a parameter stands in its groups twice",
    ),
    "two": (
        {"optimizer_states": [{"state": {}, "param_groups": []}] * 2},
        "it holds 2 optimisers, one is wanted",
    ),
    "itself": ({"state": {}, "param_groups": CYCLE}, "repeat themselves"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_file_without_an_optimizer_says_so(tmp_path, name):
    value, sentence = BAD[name]
    torch.save(value, tmp_path / "optimizer.pt")

    assert sentence in refused(optimizer, tmp_path / "optimizer.pt").reason


def test_files_that_are_none_are_refused(tmp_path):
    refuses_bad_files(optimizer, tmp_path, ".pt", text=False)


@pytest.mark.parametrize("zipped", [True, False])
@mutated
def test_mutants_do_no_harm(tmp_path, zipped, count):
    path = tmp_path / "optimizer.pt"
    state = trained(OPTIMIZERS["adamw"]).state_dict()
    torch.save(state, path, _use_new_zipfile_serialization=zipped)

    survives_mutants(optimizer, path, count)
