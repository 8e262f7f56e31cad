"""An optimizer or tensors that are replaced in the middle of a run are followed."""

import gc
import weakref

import numpy as np
import pytest
from training.hooks.loops import mlp, read, with_layers

import difflens

torch = pytest.importorskip("torch")
nn = torch.nn


def reassign(model):
    """Load every weight as a new tensor of the same values."""
    model.load_state_dict(
        {name: each.clone() for name, each in model.state_dict().items()}, assign=True
    )


def run(folder, change, *, steps=40, at=15, every=1):
    """Train; `change` returns the optimizers that go on. Return the norms of the weights."""
    torch.manual_seed(1)
    model, norms = mlp(), []
    optimizers = [torch.optim.Adam(model.parameters(), 1e-2)]
    with difflens.monitor(model, optimizers[0], folder, every=every, diagnose_every=None) as watch:
        for step in range(steps):
            if step == at:
                optimizers = change(model, optimizers[0])
            optimizer = optimizers[step % len(optimizers)]
            x = torch.randn(32, 20)
            loss = (model(x) - x[:, :5]).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            watch.step(loss=float(loss.detach()))
            norms.append([float(each.detach().double().norm()) for each in model.parameters()])
    return np.array(norms)


def field(frames, name):
    from difflens.training.records.runs import LAYER_FIELDS

    return np.array([frame.layers[LAYER_FIELDS.index(name)] for frame in frames])


def scalar(frames, info, name):
    return np.array([frame.scalars[info.scalars.index(name)] for frame in frames])


def rebuilt(model, _old):
    return [torch.optim.Adam(model.parameters(), 1e-2)]


def resumed(model, _old):
    reassign(model)
    return [torch.optim.Adam(model.parameters(), 1e-2)]


def taking_turns(model, old):
    return [old, torch.optim.SGD(model.parameters(), 1e-3)]


@pytest.mark.parametrize("change", [rebuilt, resumed, taking_turns])
def test_every_step_after_the_change_is_seen_as_it_was(tmp_path, change):
    norms = run(tmp_path / "run", change)

    frames, info = read(tmp_path / "run")
    np.testing.assert_allclose(field(frames, "weight_l2"), norms, rtol=1e-5)
    assert (field(frames, "grad_l2") > 0).all()
    assert (field(frames, "update_l2") > 0).all()
    assert (scalar(frames, info, "optimizer_steps") == 1).all()
    assert info.facts["not_optimised"] == []


@pytest.mark.parametrize("change", [rebuilt, resumed])
def test_a_run_that_is_resumed_is_healthy(tmp_path, change):
    run(tmp_path / "run", change, steps=150, at=60)

    assert [each for each in difflens.diagnose(tmp_path / "run").findings if each.is_alarm] == []


def test_steps_that_are_passed_over_find_the_new_optimizer_too(tmp_path):
    norms = run(tmp_path / "run", resumed, every=10, steps=41, at=13)

    frames, info = read(tmp_path / "run")
    assert (scalar(frames, info, "optimizer_steps") == 1).all()
    read_frames = with_layers(frames)
    steps = [frame.step for frame in read_frames]
    np.testing.assert_allclose(field(read_frames, "weight_l2"), norms[steps], rtol=1e-5)


@pytest.mark.parametrize("pattern", ["", "2."])
def test_new_tensors_that_nobody_optimises_are_named(tmp_path, pattern):
    def loaded(model, old):
        names = [name for name, _ in model.named_parameters() if name.startswith(pattern)]
        state = model.state_dict()
        fresh = {name: state[name].clone() for name in names}
        model.load_state_dict(fresh, assign=True, strict=False)
        return [old]

    run(tmp_path / "run", loaded, steps=80, at=30)

    _, info = read(tmp_path / "run")
    names = [layer.name for layer in info.layers if layer.name.startswith(pattern)]
    assert info.facts["not_optimised"] == names
    [first, *_] = difflens.diagnose(tmp_path / "run").findings
    assert (first.name, first.severity, first.since_step) == ("not-training", "critical", 30)
    assert sorted(first.layers) == sorted(names)


def test_an_optimizer_of_another_model_is_none_of_ours(tmp_path):
    other = mlp()
    others = torch.optim.SGD(other.parameters(), 0.1)

    def beside(_model, old):
        other(torch.randn(4, 20)).sum().backward()
        others.step()
        return [old]

    run(tmp_path / "run", beside)

    frames, info = read(tmp_path / "run")
    assert (scalar(frames, info, "optimizer_steps") == 1).all()
    assert info.optimizer["name"] == "Adam"


def test_an_optimizer_that_is_replaced_is_released(tmp_path):
    model = mlp()
    old = torch.optim.Adam(model.parameters())
    with difflens.monitor(model, old, tmp_path / "run", diagnose_every=None) as watch:
        for optimizer in (old, torch.optim.Adam(model.parameters())):
            model(torch.randn(4, 20)).sum().backward()
            optimizer.step()
            watch.step(loss=1.0)
        gone = weakref.ref(old)
        del old, optimizer
        gc.collect()
        assert gone() is None


def test_nothing_is_left_on_torch_when_the_monitor_ends(tmp_path):
    from torch.optim import optimizer as module

    before = len(module._global_optimizer_pre_hooks)
    run(tmp_path / "run", rebuilt)

    assert len(module._global_optimizer_pre_hooks) == before
