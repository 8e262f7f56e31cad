"""A gradient without one finite value has no mean and no largest value: missing, never 0."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

import difflens
from difflens.training.history import open_run
from difflens.training.history.exports import export_run
from difflens.training.history.frame import is_missing
from difflens.training.hooks.jax import statistics
from difflens.training.hooks.keras.variables import _block
from difflens.training.records.runs import LAYER_FIELDS

OF_FINITE = [LAYER_FIELDS.index(name) for name in ("grad_mean_abs", "grad_max_abs")]
COUNT, NORM = LAYER_FIELDS.index("grad_nonfinite"), LAYER_FIELDS.index("grad_l2")


def lost_and_half_lost(torch_like):
    return [torch_like([np.nan, np.inf]), torch_like([np.nan, 2.0]), torch_like([0.0, 0.0])]


def by_torch():
    tensors = lost_and_half_lost(torch.tensor)
    return _block(tensors, [torch.ones(2)] * 3, [torch.zeros(2)] * 3)


def by_jax():
    return np.asarray(statistics(lost_and_half_lost(jnp.asarray)))


def by_compiled_jax():
    return np.asarray(jax.jit(statistics)(lost_and_half_lost(jnp.asarray)))


@pytest.mark.parametrize("read", [by_torch, by_jax, by_compiled_jax])
def test_a_mean_over_no_finite_gradient_is_missing_in_keras_and_jax(read):
    block = read()

    assert is_missing(block[OF_FINITE, 0]).all()
    assert block[OF_FINITE, 1].tolist() == [2.0, 2.0]
    assert block[OF_FINITE, 2].tolist() == [0.0, 0.0]
    assert block[COUNT].tolist() == [2, 1, 0]
    assert not np.isfinite(block[NORM, 0])


@pytest.mark.parametrize("handed_over", [2, 1], ids=["every layer", "a layer left out"])
def test_a_mean_over_no_finite_gradient_is_missing_in_a_run_of_torch(tmp_path, handed_over):
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Linear(3, 2, bias=False), torch.nn.Linear(2, 1, bias=False)
    )
    optimizer = torch.optim.SGD(list(model.parameters())[:handed_over], lr=0.1)
    with difflens.monitor(model, optimizer, tmp_path / "run", every=1) as watch:
        for step in range(3):
            optimizer.zero_grad()
            loss = model(torch.ones(4, 3)).sum() * (float("nan") if step == 2 else 1.0)
            loss.backward()
            optimizer.step()
            watch.step(loss=loss)

    course = difflens.read_history(tmp_path / "run").course
    for name in ("grad_mean_abs", "grad_max_abs"):
        missing = course.missing(name)[:, 0].tolist()
        assert missing == [False, False, True]
    assert course.field("grad_nonfinite")[:, 0].tolist() == [0, 0, 6]
    assert not course.missing("grad_l2")[:, 0].any()


def test_a_mean_over_no_finite_gradient_is_null_in_json(tmp_path):
    model = torch.nn.Linear(2, 1, bias=False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with difflens.monitor(model, optimizer, tmp_path / "run", every=1) as watch:
        (model(torch.ones(1, 2)).sum() * float("nan")).backward()
        optimizer.step()
        watch.step(loss=1.0)

    export_run(open_run(str(tmp_path / "run")), "json", str(tmp_path / "run.json"))
    (frame,) = json.loads((tmp_path / "run.json").read_text())["frames"]

    assert frame["layers"]["grad_mean_abs"] == frame["layers"]["grad_max_abs"] == [None]
    assert frame["layers"]["grad_nonfinite"] == [2.0]
