"""Networks of the blind set are built and learn, and mishaps do what they are named after."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from zoo.configs import Config
from zoo.configs.faults import ALL_PARENTS
from zoo.loop import Loop

SMALL = Config(data="blobs", depth=2, width=8, steps=4)


class Nobody:
    """Hears of the steps and keeps the losses."""

    def __init__(self):
        self.losses = []

    def step(self, loss=None, **_scalars):
        self.losses.append(float(loss))


def trained(**knobs):
    loop, heard = Loop(replace(SMALL, **knobs), 0), Nobody()
    first = [each.detach().clone() for each in loop.model.parameters()]
    loop.run(heard)
    return loop, first, heard.losses


def weights(loop):
    return [each.detach().clone() for each in loop.model.parameters()]


@pytest.mark.parametrize("name", sorted(ALL_PARENTS))
def test_a_parent_is_built_and_every_layer_gets_a_gradient(name):
    config = ALL_PARENTS[name].config
    loop, heard = Loop(replace(config, steps=2, stop_step=None, pretrained=0), 20), Nobody()
    loop.run(heard)

    assert len(heard.losses) == 2
    assert all(torch.isfinite(torch.tensor(heard.losses)))
    assert all(each.grad is not None for each in loop.model.parameters() if each.requires_grad)


def test_weights_of_the_start_come_back():
    loop, first, _ = trained(restored=4)

    assert all(torch.equal(*pair) for pair in zip(weights(loop), first, strict=True))
    assert not all(map(torch.equal, weights(trained(restored=3)[0]), first))


def test_an_average_that_is_written_back_holds_the_weights():
    def way(**knobs):
        loop, first, _ = trained(**knobs)
        return sum(float((a - b).norm()) for a, b in zip(weights(loop), first, strict=True))

    assert way(averaged=0.99) < 0.1 * way()


def test_a_lost_bit_is_in_one_weight():
    flip = {"flip_step": 0, "flip_name": "hidden.0.linear.weight"}
    whole, hit = (weights(trained(steps=1, **how)[0])[0].flatten() for how in ({}, flip))

    assert int((whole != hit).sum()) == 1
    assert float((hit / whole).max()) == 4096


def test_a_scale_that_is_divided_out_again_changes_nothing():
    once = {"optimiser": "sgd", "steps": 1}
    plain = weights(trained(**once)[0])
    scaled, left = (
        weights(trained(loss_scale=1024.0, unscaled=each, **once)[0]) for each in (True, False)
    )

    assert all(map(torch.allclose, scaled, plain))
    assert not all(map(torch.allclose, left, plain))


def test_parameters_that_are_handed_over_twice_are_stepped_twice():
    def way(times):
        loop, first, _ = trained(doubled=times, optimiser="sgd", lr=0.01, steps=1)
        return [float((a - b).norm()) for a, b in zip(weights(loop), first, strict=True)]

    assert way(2) == pytest.approx([2 * each for each in way(1)], rel=1e-4)


@pytest.mark.parametrize("kind", ["shift", "turn", "shuffle-time", "mirror"])
def test_augmentation_moves_numbers_and_makes_none(kind):
    from zoo.mishaps import augmented

    torch.manual_seed(0)
    given = torch.arange(1.0, 129.0).reshape(2, 64)
    if kind == "shuffle-time":
        given = given.reshape(2, 16, 4)
    found = augmented(kind, given)

    assert found.shape == given.shape
    for before, after in zip(given.flatten(1), found.flatten(1), strict=True):
        assert torch.equal(before.sort().values, after.abs().sort().values)


def test_units_that_start_alike_are_alike():
    loop = Loop(replace(SMALL, alike="hidden.*"), 0)

    assert float(loop.model.hidden[0].linear.weight.detach().std()) == 0
    assert float(loop.model.output.weight.detach().std()) > 0
