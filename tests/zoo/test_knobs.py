"""Knobs of the loop, the data and the networks: each does what it says, and when."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from zoo.configs import Config
from zoo.data import load
from zoo.loop import Loop
from zoo.optimisers import optimiser_of
from zoo.sets import SETS

SMALL = Config(data="blobs", depth=2, width=8, steps=6, batch=32)


class Noting:
    """Keeps the losses that it is told."""

    def __init__(self):
        self.losses = []

    def step(self, loss=None, **_scalars):
        self.losses.append(float(loss))


def losses(**changes):
    watch = Noting()
    Loop(replace(SMALL, **changes), 0).run(watch)
    return watch.losses


def moved(**changes):
    loop = Loop(replace(SMALL, **changes), 0)
    before = {name: each.detach().clone() for name, each in loop.model.named_parameters()}
    loop.run(Noting())
    return {name for name, each in loop.model.named_parameters() if (each != before[name]).any()}


@pytest.mark.parametrize("name", sorted(SETS))
def test_a_set_is_the_same_every_time_and_fits_its_classes(name):
    inputs, targets, classes = SETS[name]()
    again, _, _ = SETS[name]()

    assert np.array_equal(inputs, again)
    assert len(inputs) == len(targets)
    assert np.isfinite(inputs).all()
    if classes:
        assert set(np.unique(targets)) == set(range(classes))
    else:
        assert targets.dtype == np.float32


def test_a_switch_changes_the_run_from_its_step_on_and_nothing_before():
    plain = losses()
    late = losses(switch_step=3, switched=(("input_scale", 50.0),))

    assert late[:3] == plain[:3]
    assert late[3] > 5 * plain[3]


def test_a_switch_leaves_what_is_held_back_as_it_was():
    loop = Loop(replace(SMALL, switch_step=3, switched=(("input_scale", 50.0),)), 0)
    held = loop.data.held_inputs.copy()
    loop.run(Noting())

    assert np.array_equal(loop.data.held_inputs, held)
    assert np.abs(loop.data.inputs).max() > 50


def test_a_switch_to_evaluation_mode_outlasts_the_next_validation():
    loop = Loop(replace(SMALL, steps=45, switch_step=20, switched=(("train_mode", False),)), 0)
    loop.run(Noting())

    assert not loop.model.training


@pytest.mark.parametrize(
    ("kind", "data", "broken"),
    [("nan", "blobs", True), ("infinite", "blobs", True), ("target", "friedman", True),
     ("outlier", "blobs", False)],
)  # fmt: skip
def test_a_bad_batch_strikes_at_its_step(kind, data, broken):
    plain = losses(data=data)
    struck = losses(data=data, bad_step=4, bad_kind=kind)

    assert struck[:4] == plain[:4]
    assert math.isfinite(struck[4]) is not broken
    assert broken or struck[4] > 20 * plain[4]


def test_labels_off_by_one_are_the_same_labels_at_the_wrong_place():
    right, wrong = load(SMALL, 0), load(replace(SMALL, labels="shifted"), 0)

    assert np.array_equal(wrong.targets[1:], right.targets[:-1])
    assert np.array_equal(wrong.held_targets, right.held_targets)


def test_jitter_makes_the_same_examples_differ():
    still, shaken = (
        losses(lr=0.0, batch=2000, steps=3, jitter=noise) for noise in (0.0, 0.5)
    )  # fmt: skip

    assert still == pytest.approx([still[0]] * 3, rel=1e-5)
    assert len({round(each, 4) for each in shaken}) == 3


def test_losses_that_are_not_averaged_pile_up():
    averaged, piled = (losses(accumulate=4, averages=each)[0] for each in (True, False))

    assert piled == pytest.approx(4 * averaged, rel=1e-5)


def test_a_network_that_was_trained_before_starts_lower():
    fresh, tuned, headless = (
        losses(width=32, steps=1, **changes)[0]
        for changes in ({}, {"pretrained": 60}, {"pretrained": 60, "new_head": True})
    )

    assert tuned < 0.6 * fresh
    assert headless > tuned


def test_what_was_learnt_before_can_be_frozen():
    assert moved(pretrained=5, frozen=2) == {"output.weight", "output.bias"}


def test_zeroing_before_the_step_and_holding_a_copy_both_move_nothing():
    assert moved(zero_grad="before-step", optimiser="sgd") == set()
    assert moved(optimised="copy") == set()
    assert all(name.endswith("bias") for name in moved(optimised="biases"))


@pytest.mark.parametrize("name", ["sgd", "adam", "adamw", "nadam", "rmsprop", "adagrad"])
def test_every_optimiser_lowers_a_loss(name):
    found = losses(optimiser=name, lr=0.02, steps=30)

    assert np.mean(found[-5:]) < 0.8 * found[0]


def test_an_optimiser_nobody_knows_is_refused():
    with pytest.raises(ValueError, match="no optimiser 'magic'"):
        optimiser_of(torch.nn.Linear(1, 1), Config(optimiser="magic"))


def test_a_shut_forget_gate_forgets():
    states = {}
    for bias in (-8.0, 8.0):
        config = Config(model="lstm", data="sequences", length=10, width=4, memory_bias=bias)
        memory = Loop(config, 0).model.memory
        first = torch.zeros(1, 10, 1)
        first[0, 0] = 50.0
        with torch.no_grad():
            apart = memory(first)[0] - memory(torch.zeros(1, 10, 1))[0]
        states[bias] = float(apart[0, -1].norm())

    assert states[8.0] > 20 * states[-8.0]


def test_a_constant_start_makes_all_units_of_a_layer_one():
    loop = Loop(replace(SMALL, init="constant"), 0)
    loop.run(Noting())
    rows = loop.model.hidden[0].linear.weight

    assert torch.allclose(rows, rows[:1].expand_as(rows), atol=1e-6)


@pytest.mark.parametrize(("ending", "low", "high"), [("sigmoid", 0, 1), ("relu", 0, math.inf)])
def test_an_ending_squashes_the_scores(ending, low, high):
    loop = Loop(replace(SMALL, ending=ending), 0)
    with torch.no_grad():
        scores = loop.model(torch.from_numpy(loop.data.inputs))

    assert low <= float(scores.min())
    assert float(scores.max()) <= high


@pytest.mark.parametrize(
    "changes",
    [{"norm": "group", "width": 8}, {"residual": True, "norm": "batch"}, {"dropout": 0.2}],
)
def test_a_convolution_learns_with_every_norm_and_shortcut(changes):
    changes = {"model": "cnn", "data": "digits", "depth": 2, "width": 8, **changes}
    found = losses(**changes, steps=40, lr=5e-3)

    assert found[-1] < found[0]
