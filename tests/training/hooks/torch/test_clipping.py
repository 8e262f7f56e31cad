"""Gradients that a loop clips are shown as they were, or said to be as clipped."""

import numpy as np
import pytest
from training.hooks.loops import mlp, read, trained, with_layers

from difflens.training.history import read_history
from difflens.training.history.frame import is_missing
from difflens.training.hooks.torch.clipping import Between, Clipping
from difflens.training.hooks.torch.layers import Watched
from difflens.training.hooks.torch.probe import Probe
from difflens.training.story import monitor

torch = pytest.importorskip("torch")
nn = torch.nn


def clips(frames, info):
    """Return the clip factor of every frame; None if it is not known."""
    place = info.scalars.index("clip_factor")
    values = [frame.scalars[place] for frame in frames]
    return [None if np.isnan(each) else float(each) for each in values]


def shows_all_as_before(frames, info, wanted, limit, rtol=1e-5):
    """Hold frames to the exact gradients in front of `clip_grad_norm_(…, limit)`."""
    for frame, clip in zip(frames, clips(frames, info), strict=True):
        exact = wanted[frame.step]
        total = np.sqrt(np.square(exact[0]).sum())
        assert clip == pytest.approx(min(1.0, limit / (total + 1e-6)), rel=rtol)
        np.testing.assert_allclose(frame.layers[:5], exact[:5], rtol=rtol)


@pytest.mark.parametrize(
    ("dtype", "rtol"),
    [(torch.float32, 1e-5), (torch.float64, 1e-5), (torch.bfloat16, 2e-2), (torch.float16, 5e-3)],
)
def test_a_clipped_gradient_is_shown_as_it_was_from_the_first_step_on(tmp_path, dtype, rtol):
    """What 16 bits lost in clipping is lost; the factor is exact to a few thousandths."""
    wanted = trained(mlp().to(dtype), tmp_path / "run", steps=6, clip=0.05)

    frames, info = read(tmp_path / "run")
    assert len(frames) == 6
    shows_all_as_before(frames, info, wanted, 0.05, rtol)
    assert info.gradient == "unscaled, before clipping"


@pytest.mark.parametrize("most", [4, 1024])
def test_numbers_that_are_not_read_as_bytes_tell_the_same(tmp_path, monkeypatch, most):
    """As those of a device are not, nor complex ones: they are copied where they lie."""
    from difflens.training.hooks.torch import probe as torch_probe

    monkeypatch.setattr(torch_probe, "_USUAL", frozenset())
    monkeypatch.setattr(torch_probe, "_MOST", most)
    wanted = trained(mlp(), tmp_path / "run", steps=4, clip=0.05)

    frames, info = read(tmp_path / "run")
    shows_all_as_before(frames, info, wanted, 0.05)


def test_complex_parameters_are_followed_too(tmp_path):
    weight = nn.Parameter(torch.tensor([3 + 4j] * 20))
    model = nn.ParameterList([weight])
    optimizer = torch.optim.SGD([weight], 0.1)
    with monitor(model, optimizer, tmp_path / "run", every=1, diagnose_every=None) as watch:
        for _ in range(2):
            weight.abs().square().sum().backward()
            total = float(nn.utils.clip_grad_norm_([weight], 0.05))
            optimizer.step()
            optimizer.zero_grad()
            watch.step()

    frames, info = read(tmp_path / "run")
    assert not watch.is_quiet
    assert frames[1].layers[0, 0] == pytest.approx(total, rel=1e-5)
    assert clips(frames, info)[1] == pytest.approx(0.05 / total, rel=1e-4)


def test_a_loop_that_clips_for_the_first_time_late_shows_that_step_too(tmp_path):
    """As loops do that multiply only where the norm is over their limit."""
    steps = []

    def sometimes(parameters):
        steps.append(len(steps))
        if steps[-1] in {3, 5}:
            nn.utils.clip_grad_norm_(parameters, 0.05)

    wanted = trained(mlp(), tmp_path / "run", steps=7, clip=sometimes)

    frames, info = read(tmp_path / "run")
    assert [clip == 1.0 for clip in clips(frames, info)] == [True] * 3 + [False, True, False, True]
    shows_all_as_before(frames[3:4] + frames[5:6], info, wanted, 0.05)


def test_frames_that_are_made_together_have_each_its_own_factor(tmp_path):
    """The recorder makes those of small models by the hundred."""
    wanted = trained(mlp(), tmp_path / "run", steps=120, clip=0.05, rate=0.5)

    frames, info = read(tmp_path / "run")
    assert len(set(clips(frames, info))) > 20
    shows_all_as_before(frames, info, wanted, 0.05)


def test_a_limit_that_is_never_met_clips_nothing(tmp_path):
    wanted = trained(mlp(), tmp_path / "run", steps=3, clip=1e6)

    frames, info = read(tmp_path / "run")
    assert clips(frames, info) == [1.0] * 3
    shows_all_as_before(frames, info, wanted, 1e6)


def test_sampled_steps_are_shown_before_clipping(tmp_path):
    wanted = trained(mlp(), tmp_path / "run", steps=14, clip=0.05, every=6)

    frames, info = read(tmp_path / "run")
    frames = with_layers(frames[:-1])  # the last step is read as the optimizer left it
    assert [frame.step for frame in frames] == [0, 6, 12]
    shows_all_as_before(frames, info, wanted, 0.05)


def test_under_a_scaler_the_first_clipped_step_is_shown_unscaled_and_unclipped(tmp_path):
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    wanted = trained(mlp(), tmp_path / "run", steps=4, clip=0.05, scaler=scaler)

    frames, info = read(tmp_path / "run")
    shows_all_as_before(frames, info, wanted, 0.05)


@pytest.mark.parametrize("divide", [4.0, 3.0])
def test_dividing_by_the_steps_accumulated_is_not_taken_for_clipping(tmp_path, divide):
    wanted = trained(mlp(), tmp_path / "run", steps=6, divide=divide)

    frames, info = read(tmp_path / "run")
    assert clips(frames, info) == [1.0] * 6
    np.testing.assert_allclose(frames[0].layers[0], wanted[0][0], rtol=1e-5)


def test_a_layer_without_gradients_does_not_hide_the_clipping(tmp_path):
    """The smallest tensor is followed; where it has nothing but zeros, another one is."""
    model = mlp()
    with torch.no_grad():
        model[2].bias.fill_(-100.0)  # 17 numbers, the smallest; the next ReLU lets nothing through
    model[3] = nn.ReLU()
    model.add_module("last", nn.Linear(5, 40))
    optimizer = torch.optim.SGD(model.parameters(), 0.0)
    totals = []
    with monitor(model, optimizer, tmp_path / "run", every=1, diagnose_every=None) as watch:
        for _ in range(4):
            torch.manual_seed(1)
            model(torch.randn(16, 20)).square().mean().backward()
            totals.append(float(nn.utils.clip_grad_norm_(model.parameters(), 0.05)))
            optimizer.step()
            optimizer.zero_grad()
            watch.step()
            assert watch.flush()  # the zeros are found on the recorder's thread

    frames, info = read(tmp_path / "run")
    assert frames[0].layers[0, 3] == 0.0
    assert clips(frames, info)[:2] == [None, None]
    norms = [float(np.sqrt(np.square(frame.layers[0]).sum())) for frame in frames]
    np.testing.assert_allclose(norms[2:], totals[2:], rtol=1e-5)


def test_zeros_of_a_shard_do_not_tell_that_nothing_was_clipped():
    """Shards do not count their versions; clipped zeros are zeros as before."""
    weight = nn.Parameter(torch.zeros(9))
    part = Watched("weight", weight, "", nn.Module(), "weight")
    clipping = Clipping(lambda: None)
    probe = Probe([part], clipping, waits=False)
    probe._is_shard = True  # a DTensor needs a process group
    (weight * 0.0).sum().backward()
    assert probe.factor()() is None
    assert clipping.is_blind
    weight.grad = None
    (weight * 2.0).sum().backward()
    assert probe.factor()() == Between(1.0, 0.0)
    probe.close()


def test_clipping_by_value_is_said_and_not_undone(tmp_path):
    """No factor undoes it; the gradients are as the optimizer got them, and the run says so."""
    trained(mlp(), tmp_path / "run", steps=4, clip=lambda p: nn.utils.clip_grad_value_(p, 1e-3))

    frames, info = read(tmp_path / "run")
    assert clips(frames, info) == [None] * 4
    assert is_missing(frames[0].layers).sum() == 0
    np.testing.assert_allclose(frames[0].layers[2], 1e-3, rtol=1e-6)
    history = read_history(tmp_path / "run")
    assert "not by one factor" in history.fact("gradient")
    assert sum("gradient" in note.data for note in history.notes) == 1


def test_values_cut_in_other_layers_than_the_followed_one_are_not_called_whole(tmp_path):
    """The followed gradient is small, and as it was; two others end at the same height."""
    model = mlp()
    with torch.no_grad():
        model[4].weight.mul_(1e-3)  # what is in front of it has small gradients

    def clip(parameters):
        largest = sorted(float(each.grad.abs().max()) for each in parameters)
        nn.utils.clip_grad_value_(parameters, largest[-2] / 2)

    trained(model, tmp_path / "run", steps=2, clip=clip, rate=0.0)

    frames, info = read(tmp_path / "run")
    assert clips(frames, info) == [None] * 2
    assert len(set(np.sort(frames[0].layers[2])[-2:])) == 1


def test_a_hard_clip_is_not_taken_for_a_division_by_a_whole_number():
    """With a few digits only, one over ten thousand and a bit looks whole."""
    clipping, largest = Clipping(lambda: None), np.array([1.0, 2.0])
    assert clipping.clip_of(Between(1 / 10000.05, 3e-7, 1.0), largest) == 1 / 10000.05
    assert clipping.clip_of(Between(1 / 7, 3e-7, 1.0), largest) == 1.0


def test_a_factor_that_stays_while_gradients_change_is_no_clipping():
    clipping, largest = Clipping(lambda: None), np.array([1.0, 2.0])
    told = [clipping.clip_of(Between(0.3, 3e-7, 1.0 + i), largest) for i in range(3)]
    assert told == [0.3, 1.0, 1.0]


def test_a_clip_of_gradients_that_stand_still_stays_a_clip():
    clipping, largest = Clipping(lambda: None), np.array([1.0, 2.0])
    told = [clipping.clip_of(Between(0.3, 3e-7, 1.0), largest) for _ in range(3)]
    assert told == [0.3] * 3
