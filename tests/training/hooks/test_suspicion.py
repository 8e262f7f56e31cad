"""What makes a run suspicious: a loss that is no number, leaps or climbs, gradients out of line."""

from math import nan

import numpy as np
import pytest

from difflens.training.hooks.torch.pace import Suspicion


def raised_at(losses) -> int | None:
    suspicion = Suspicion()
    for step, loss in enumerate(losses):
        suspicion.see_loss(float(loss))
        if suspicion.is_raised:
            return step
    return None


def noise(count: int) -> np.ndarray:
    return 1 + 0.1 * np.random.default_rng(0).standard_normal(count)


def test_plain_noise_about_a_falling_loss_is_not_suspicious():
    assert raised_at(noise(2000) + np.exp(-np.arange(2000) / 300)) is None


@pytest.mark.parametrize("value", [nan, float("inf"), 3.0])
def test_a_loss_that_is_no_number_or_leaps_is_suspicious_at_its_own_step(value):
    losses = noise(200)
    losses[150] = value

    assert raised_at(losses) == 150


def test_a_loss_that_climbs_is_suspicious_within_some_steps():
    losses = noise(400) + np.maximum(np.arange(400) - 300, 0) * 0.05

    assert 300 < (raised_at(losses) or 0) < 320


def test_a_loss_that_stays_no_number_is_news_once():
    suspicion = Suspicion()
    suspicion.see_loss(nan)
    suspicion.is_raised = False
    suspicion.see_loss(nan)

    assert not suspicion.is_raised


@pytest.mark.parametrize("factor", [50.0, 0.02])
def test_gradients_that_grow_or_shrink_by_a_large_factor_are_suspicious(factor):
    suspicion = Suspicion()
    for norm in noise(100):
        suspicion.see_norm(norm)
    assert not suspicion.is_raised
    suspicion.see_norm(factor)

    assert suspicion.is_raised
