"""Means and cosines of gradients, against arithmetic in 64 bits."""

import gc
import weakref

import numpy as np
import pytest
from training.hooks.loops import mlp, read, trained, with_layers

from difflens.training.history.frame import is_missing
from difflens.training.records.runs import LAYER_FIELDS

torch = pytest.importorskip("torch")
nn = torch.nn


def watched(model, folder, steps, **how):
    """Train, clipped, and give the gradients as they were before it, step by step."""
    kept = []

    def clip(parameters):
        kept.append([each.grad.detach().double().flatten().numpy().copy() for each in parameters])
        nn.utils.clip_grad_norm_(parameters, 0.05)

    trained(model, folder, steps=steps, clip=clip, directions=True, **how)
    return kept


@pytest.mark.parametrize(("dtype", "slack"), [(torch.float32, 1e-5), (torch.float64, 1e-5)])
def test_mean_and_cosine_equal_64_bits(tmp_path, dtype, slack):
    gradients = watched(mlp().to(dtype), tmp_path / "run", 5)

    frames, info = read(tmp_path / "run")
    assert info.fields == (*LAYER_FIELDS, "grad_mean", "grad_cosine")
    assert is_missing(frames[0].layers[8]).all()
    for frame, last, now in zip(frames[1:], gradients, gradients[1:], strict=False):
        means = [each.mean() for each in now]
        sizes = [np.abs(each).mean() for each in now]
        assert (np.abs(frame.layers[7] - means) <= slack * np.array(sizes)).all()
        cosines = [
            left @ right / np.linalg.norm(left) / np.linalg.norm(right)
            for left, right in zip(last, now, strict=True)
        ]
        np.testing.assert_allclose(frame.layers[8], cosines, atol=1e-6)


def test_steps_that_are_passed_over_are_no_reading(tmp_path):
    gradients = watched(mlp(), tmp_path / "run", 9, every=4)

    frames = with_layers(read(tmp_path / "run")[0])
    assert [frame.step for frame in frames] == [0, 4, 8]
    left, right = gradients[4][0], gradients[8][0]
    wanted = left @ right / np.linalg.norm(left) / np.linalg.norm(right)
    assert frames[2].layers[8, 0] == pytest.approx(wanted, abs=1e-6)


def test_what_has_no_gradient_or_no_direction_is_missing(tmp_path):
    model = mlp()
    model[0].weight.requires_grad_(False)
    with torch.no_grad():
        model[4].weight.zero_()  # so that what is in front of it gets zeros, at rate 0 for good
    trained(model, tmp_path / "run", steps=3, directions=True, rate=0.0)

    layers = read(tmp_path / "run")[0][2].layers
    assert is_missing(layers[7:, 0]).all()
    assert layers[7, 2] == 0.0
    assert is_missing(layers[8, 1:4]).all()
    np.testing.assert_allclose(layers[8, 4:], 1.0, atol=1e-6)


def test_they_stand_in_front_of_the_activations(tmp_path):
    trained(mlp(), tmp_path / "run", steps=3, directions=True, activations=1)

    frames, info = read(tmp_path / "run")
    assert info.fields[7:11] == ("grad_mean", "grad_cosine", "act_mean", "act_std")
    assert (np.abs(frames[2].layers[8]) <= 1.0 + 1e-6).all()
    assert frames[2].layers[10, 0] > 0


def test_gradients_that_are_not_finite_have_no_cosine(tmp_path):
    trained(mlp(), tmp_path / "run", steps=2, directions=True, loss_factor=float("nan"))

    layers = read(tmp_path / "run")[0][1].layers
    assert np.isnan(layers[7]).all()
    assert not is_missing(layers[7]).any()
    assert is_missing(layers[8]).all()


def test_leaving_lets_go_of_the_gradients(tmp_path):
    model = mlp()
    trained(model, tmp_path / "run", steps=3, directions=True)

    gone = weakref.ref(model)
    del model
    gc.collect()
    assert gone() is None
