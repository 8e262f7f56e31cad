"""Learning rates over the steps, each shape by what it is called for."""

from __future__ import annotations

import pytest

from zoo.configs import Config
from zoo.schedules import SHAPES, rate_at


def test_schedules_do_what_they_are_called():
    ramp = Config(lr=1.0, schedule="ramp")
    kicked = Config(lr=1.0, kick_step=3, kick_factor=60.0)

    assert rate_at(ramp, 100) == pytest.approx(1.02**100)
    assert [rate_at(kicked, step) for step in (2, 3, 4)] == [1.0, 60.0, 1.0]
    assert rate_at(Config(lr=1.0, schedule="cosine", steps=100), 99) < 0.001


def test_a_warm_up_comes_before_every_shape_that_counts_from_its_end():
    config = Config(lr=1.0, schedule="exponential", gamma=0.5, warmup=4)

    assert [rate_at(config, step) for step in (0, 3, 4, 5)] == [0.25, 1.0, 1.0, 0.5]


def test_stages_multiply_and_restarts_come_back():
    staged = Config(lr=1.0, schedule="steps", gamma=0.1, period=50)
    again = Config(lr=1.0, schedule="restarts", period=50)

    assert [rate_at(staged, step) for step in (49, 50, 149)] == pytest.approx([1, 0.1, 0.01])
    assert rate_at(again, 49) < 0.05
    assert rate_at(again, 50) == rate_at(again, 0) == 1.0


def test_one_cycle_rises_and_falls():
    config = Config(lr=1.0, schedule="one-cycle", steps=300)

    assert rate_at(config, 0) < rate_at(config, 60) < rate_at(config, 100)
    assert rate_at(config, 100) == pytest.approx(1.0)
    assert rate_at(config, 299) < 0.01


@pytest.mark.parametrize("shape", sorted(SHAPES))
def test_no_shape_gives_a_negative_rate_but_the_one_that_is_a_fault(shape):
    config = Config(schedule=shape, warmup=10, gamma=0.9, period=30, steps=120)

    lowest = min(rate_at(config, step) for step in range(120))
    assert (lowest < 0) == (shape == "overrun")
