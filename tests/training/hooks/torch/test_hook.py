"""What the hooks read of a PyTorch loop, against arithmetic in 64 bits beside the same loop."""

import copy
import gc
import io
import weakref

import numpy as np
import pytest
from training.hooks.loops import Wrong, mlp, read, reference, trained, with_layers

import difflens
from difflens.training.records.runs import LAYER_FIELDS

torch = pytest.importorskip("torch")
nn, functional = torch.nn, torch.nn.functional


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16, torch.float64])
@pytest.mark.parametrize("optimizer", ["SGD", "AdamW", "fused"])
def test_every_field_of_every_step_equals_64_bits(tmp_path, dtype, optimizer):
    model = mlp().to(dtype)
    wanted = trained(model, tmp_path / "run", optimizer=optimizer, steps=6)

    frames, info = read(tmp_path / "run")
    assert [layer.name for layer in info.layers] == [name for name, _ in model.named_parameters()]
    assert [frame.step for frame in frames] == list(range(6))
    for frame, exact in zip(frames, wanted, strict=True):
        for field, row, right in zip(LAYER_FIELDS, frame.layers, exact, strict=True):
            np.testing.assert_allclose(row, right, rtol=1e-5, atol=1e-30, err_msg=field)


def test_steps_that_are_passed_over_do_not_enter_an_update(tmp_path):
    """Fused optimizers move weights without counting their version up."""
    model = mlp()
    wanted = trained(model, tmp_path / "run", optimizer="fused", steps=9, every=4)

    frames = with_layers(read(tmp_path / "run")[0])
    assert [frame.step for frame in frames] == [0, 4, 8]
    for frame in frames:
        np.testing.assert_allclose(frame.layers[6], wanted[frame.step][6], rtol=1e-5)


def scheduled(folder, *, first, rate=0.1, every=16, steps=40):
    """Train with a rate that falls, told before or after the frame is closed; give the rates."""
    model, used = mlp(), []
    optimizer = torch.optim.SGD(model.parameters(), copy.deepcopy(rate))
    with difflens.monitor(model, optimizer, folder, every=every, diagnose_every=None) as watch:
        for _ in range(steps):
            model(torch.randn(4, 20)).square().mean().backward()
            used.append(float(optimizer.param_groups[0]["lr"]))
            optimizer.step()
            optimizer.zero_grad()
            if first == "frame":
                watch.step(loss=1.0)
            lower(optimizer.param_groups[0])
            if first == "schedule":
                watch.step(loss=1.0)
    return used


def lower(group):
    if isinstance(group["lr"], float):
        group["lr"] *= 0.9
    else:
        group["lr"].mul_(0.9)


def told(folder, name):
    """Return a scalar of every step; of a step that is recorded twice the last counts."""
    frames, info = read(folder)
    by_step = {frame.step: frame.scalars[info.scalars.index(name)] for frame in frames}
    return list(by_step.values())


@pytest.mark.parametrize("rate", [0.1, torch.tensor(0.1)], ids=["number", "tensor"])
@pytest.mark.parametrize("first", ["schedule", "frame"])
@pytest.mark.parametrize("every", [1, 3, 16])
def test_the_learning_rate_of_every_step_is_kept_read_or_not(tmp_path, first, rate, every):
    used = scheduled(tmp_path / "run", first=first, rate=rate, every=every)

    np.testing.assert_allclose(told(tmp_path / "run", "lr"), used, rtol=1e-7)
    assert told(tmp_path / "run", "optimizer_steps") == [1.0] * 40


@pytest.mark.parametrize("every", [3, 16])
def test_steps_of_several_optimizers_are_counted_where_nothing_is_read(tmp_path, every):
    model = mlp()
    both = [torch.optim.SGD(model[:2].parameters(), 0.1), torch.optim.Adam(model[2:].parameters())]
    trained(model, tmp_path / "run", steps=40, given=both, every=every)

    assert told(tmp_path / "run", "optimizer_steps") == [2.0] * 40


def test_weights_changed_between_steps_by_others_are_no_update(tmp_path):
    model = mlp()

    def meddle(step):
        if step == 3:
            with torch.no_grad():
                for each in model.parameters():
                    each.mul_(3.0)

    wanted = trained(model, tmp_path / "run", steps=6, between=meddle)

    frames, _ = read(tmp_path / "run")
    np.testing.assert_allclose(
        [f.layers[6] for f in frames], [exact[6] for exact in wanted], rtol=1e-5
    )


@pytest.mark.parametrize("to_none", [True, False])
def test_accumulated_gradients_are_read_once_when_they_are_used(tmp_path, to_none):
    model = mlp()
    wanted = trained(model, tmp_path / "run", steps=4, micro=3, to_none=to_none)

    frames, info = read(tmp_path / "run")
    np.testing.assert_allclose(
        [f.layers[:5] for f in frames], [exact[:5] for exact in wanted], rtol=1e-5
    )
    kept = info.scalars.index("grad_kept")
    assert [frame.scalars[kept] for frame in frames[1:]] == [0.0] * 3


def test_a_frozen_parameter_has_no_gradient_and_is_named(tmp_path):
    model = mlp()
    model[0].weight.requires_grad_(False)
    trained(model, tmp_path / "run", steps=2)

    frames, info = read(tmp_path / "run")
    from difflens.training.history.frame import is_missing

    assert is_missing(frames[0].layers[:5, 0]).all()
    assert not is_missing(frames[0].layers[:5, 1:]).any()
    assert frames[1].layers[5, 0] == pytest.approx(float(model[0].weight.norm()), rel=1e-5)
    assert info.facts["frozen"] == ["0.weight"]
    assert info.layers[0].trainable is False


def test_a_shared_parameter_is_one_layer(tmp_path):
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.inside, self.out = nn.Linear(20, 20), nn.Linear(20, 20)
            self.out.weight = self.inside.weight

        def forward(self, x):
            return self.out(torch.relu(self.inside(x)))

    trained(Tied(), tmp_path / "run", steps=2)

    _, info = read(tmp_path / "run")
    assert [layer.name for layer in info.layers] == ["inside.weight", "inside.bias", "out.bias"]
    assert info.layers[0].activation == "ReLU"


def test_a_layer_that_was_not_handed_to_the_optimizer_is_named(tmp_path):
    model = mlp()
    optimizer = torch.optim.SGD(model[2].parameters(), 0.1)
    trained(model, tmp_path / "run", steps=2, given=optimizer)

    frames, info = read(tmp_path / "run")
    assert info.facts["not_optimised"] == ["0.weight", "0.bias", "4.weight", "4.bias"]
    assert [layer.optimised for layer in info.layers] == [False, False, True, True, False, False]
    assert (frames[1].layers[0, 2:4] > 0).all()


def test_two_optimizers_make_one_frame(tmp_path):
    model = mlp()
    both = [torch.optim.SGD(model[:2].parameters(), 0.1), torch.optim.Adam(model[2:].parameters())]
    wanted = trained(model, tmp_path / "run", steps=3, given=both)

    frames, info = read(tmp_path / "run")
    for frame, exact in zip(frames, wanted, strict=True):
        np.testing.assert_allclose(frame.layers, exact, rtol=1e-5, atol=1e-30)
        assert frame.scalars[info.scalars.index("optimizer_steps")] == 2
    assert info.optimizer["name"] == "SGD"
    assert info.optimizer["others"] == ["Adam"]


def test_groups_with_rates_of_their_own_are_told(tmp_path):
    model = mlp()
    groups = [{"params": model[:2].parameters(), "lr": 0.01}, {"params": model[2:].parameters()}]
    for name, given in (("two", groups), ("one", model.parameters())):
        trained(model, tmp_path / name, steps=1, given=torch.optim.SGD(given, 0.1))

    assert read(tmp_path / "two")[1].optimizer["several_rates"] is True
    assert "several_rates" not in read(tmp_path / "one")[1].optimizer


def test_without_an_optimizer_gradients_are_read_as_they_come(tmp_path):
    """The only way where the optimizer runs inside backward."""
    model = mlp()
    wanted = trained(model, tmp_path / "run", steps=4, watch_optimizer=False)

    frames, _ = read(tmp_path / "run")
    for frame, exact in zip(frames, wanted, strict=True):
        np.testing.assert_allclose(frame.layers, exact, rtol=1e-5, atol=1e-30)


def test_a_step_that_is_never_called_shows_gradients_and_no_steps(tmp_path):
    model = mlp()
    trained(model, tmp_path / "run", steps=3, calls_step=False)

    frames, info = read(tmp_path / "run")
    assert [f.scalars[info.scalars.index("optimizer_steps")] for f in frames] == [0.0] * 3
    assert (frames[2].layers[0] > 0).all()
    np.testing.assert_allclose(
        frames[2].layers[5], [float(each.detach().norm()) for each in model.parameters()], rtol=1e-5
    )


@pytest.mark.parametrize(("clears", "kept"), [("never", 1.0), ("before", 0.0), ("after", 0.0)])
def test_gradients_that_nobody_clears_are_noticed(tmp_path, clears, kept):
    """Clearing between forward and backward, as tutorials do, is not forgetting it."""
    trained(mlp(), tmp_path / "run", steps=4, clears=clears)

    frames, info = read(tmp_path / "run")
    values = [frame.scalars[info.scalars.index("grad_kept")] for frame in frames[1:]]
    assert values == [kept] * 3


@pytest.mark.parametrize("handed_in", [True, False])
def test_under_a_scaler_gradients_are_unscaled(tmp_path, handed_in):
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    wanted = trained(mlp(), tmp_path / "run", steps=5, scaler=scaler, hands_scaler=handed_in)

    frames, info = read(tmp_path / "run")
    for frame, exact in zip(frames, wanted, strict=True):
        np.testing.assert_allclose(frame.layers[0], exact[0], rtol=1e-5)
    assert frames[-1].scalars[info.scalars.index("loss_scale")] == 1024.0


def test_a_step_that_a_scaler_skips_is_recorded_with_what_is_not_finite(tmp_path):
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**120)
    trained(mlp(), tmp_path / "run", steps=3, scaler=scaler, loss_factor=1e30)

    frames, info = read(tmp_path / "run")
    assert frames[0].scalars[info.scalars.index("optimizer_steps")] == 0
    assert frames[0].layers[3].sum() > 0
    assert not np.isfinite(frames[0].layers[0]).all()


def test_a_compiled_model_is_read_like_a_plain_one(tmp_path):
    wanted = trained(torch.compile(mlp(), backend="eager"), tmp_path / "run", steps=3)

    frames, info = read(tmp_path / "run")
    assert [layer.name for layer in info.layers][:2] == ["0.weight", "0.bias"]
    assert info.layers[-1].depth == 2
    for frame, exact in zip(frames, wanted, strict=True):
        np.testing.assert_allclose(frame.layers, exact, rtol=1e-5, atol=1e-30)


@pytest.mark.parametrize("scale", [1e-22, 1e12])
def test_neither_tiny_nor_huge_gradients_lose_their_norm(tmp_path, scale):
    wanted = trained(mlp(), tmp_path / "run", steps=2, loss_factor=scale, rate=0.0)

    frames, _ = read(tmp_path / "run")
    np.testing.assert_allclose(frames[1].layers[0], wanted[1][0], rtol=1e-5)


def test_sparse_gradients_count_their_missing_rows_as_zeros(tmp_path):
    model = nn.Sequential(nn.Embedding(50, 8, sparse=True), nn.Flatten(), nn.Linear(24, 5))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    tokens = torch.randint(0, 50, (16, 3))
    trained(model, tmp_path / "run", steps=1, given=optimizer, inputs=tokens)

    frames, _ = read(tmp_path / "run")
    assert frames[0].layers[4, 0] == 8 * (50 - len(tokens.unique()))
    assert frames[0].layers[0, 0] > 0


def test_nothing_of_a_step_waits_for_a_device(tmp_path):
    """`_local_scalar_dense` is what `.item()` and `if tensor:` come down to."""
    from torch.utils._python_dispatch import TorchDispatchMode

    class Listening(TorchDispatchMode):
        def __init__(self):
            super().__init__()
            self.heard = []

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            self.heard.append(str(func))
            return func(*args, **(kwargs or {}))

    with Listening() as listening:
        trained(mlp(), tmp_path / "run", steps=4, clip=0.1, activations=2, compute_reference=False)
        assert "aten._local_scalar_dense.default" not in listening.heard
        torch.ones(1).item()
        assert "aten._local_scalar_dense.default" in listening.heard  # this test can fail


def test_leaving_leaves_nothing_on_model_and_optimizer(tmp_path):
    model = mlp()
    optimizer = torch.optim.Adam(model.parameters())
    before = [_state(model, optimizer)]

    trained(model, tmp_path / "run", steps=3, given=optimizer, activations=1)

    before.append(_state(model, optimizer))
    assert before[0] == before[1]
    gone = weakref.ref(model)
    del model, optimizer
    gc.collect()
    assert gone() is None


def _state(model, optimizer):
    modules = {
        name: {key: len(value) if "hooks" in key and value is not None else type(value)
               for key, value in module.__dict__.items() if key != "training"}
        for name, module in model.named_modules()
    }  # fmt: skip
    parameters = [
        (
            each._backward_hooks,
            each._post_accumulate_grad_hooks and len(each._post_accumulate_grad_hooks),
        )
        for each in model.parameters()
    ]
    hooks = {key: len(value) for key, value in optimizer.__dict__.items() if "hooks" in key}
    return modules, [bool(count) for _, count in parameters], hooks, "zero_grad" in vars(optimizer)


def test_a_model_can_be_copied_and_saved_while_it_is_watched(tmp_path):
    """An average of the weights copies the model, hooks and all; ours must stay behind."""
    from difflens.training.story import monitor

    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with monitor(model, optimizer, tmp_path / "run", activations=1) as watch:
        for each in (copy.deepcopy(model), model):
            out = each(torch.randn(4, 20))
        torch.save(model, io.BytesIO())
        out.sum().backward()
        optimizer.step()
        watch.step()
        copied = copy.deepcopy(model)
        torch.save(model, io.BytesIO())
        copied(torch.randn(4, 20)).sum().backward()

    assert not watch.is_quiet
    assert read(tmp_path / "run")[0][0].layers[0].any()


def test_an_error_of_ours_never_reaches_the_loop(tmp_path, monkeypatch):
    from difflens.training.hooks.torch import readings as torch_readings

    def broken(*_):
        raise Wrong("planted")

    monkeypatch.setattr(torch_readings.ProcessorReader, "weights", broken)
    with pytest.warns(RuntimeWarning, match="went quiet, training goes on: Wrong: planted") as told:
        trained(mlp(), tmp_path / "run", steps=5)

    assert len(told) == 1
    from difflens.training.history import read_history

    notes = [note for note in read_history(tmp_path / "run").notes if note.what == "quiet"]
    assert [note.text for note in notes] == ["Wrong: planted"]


def test_an_error_of_the_loop_passes_through(tmp_path):
    model = mlp()

    def broken(step):
        if step == 2:
            raise Wrong("theirs")

    with pytest.raises(Wrong, match="theirs"):
        trained(model, tmp_path / "run", steps=5, between=broken)
    assert len(read(tmp_path / "run")[0]) == 2 or len(read(tmp_path / "run")[0]) == 3
    assert not model[0]._forward_hooks


def test_a_forward_that_raises_at_the_first_step_leaves_no_mode_behind(tmp_path):
    from torch.overrides import _get_current_function_mode_stack

    from difflens.training.story import monitor

    model = mlp()
    with monitor(model, torch.optim.SGD(model.parameters()), tmp_path / "run"):
        with pytest.raises(RuntimeError):
            model(torch.randn(4, 7))
        assert _get_current_function_mode_stack() == []


def test_the_references_of_these_tests_are_not_the_monitors_own():
    """The float64 reference of a known gradient is that gradient's."""
    weight = nn.Parameter(torch.tensor([3.0, -4.0]))
    weight.grad = torch.tensor([0.0, -2.0])

    assert reference([weight], [torch.tensor([3.0, -3.0])])[:, 0].tolist() == [
        2.0, 1.0, 2.0, 0.0, 1.0, 5.0, 1.0,
    ]  # fmt: skip
