"""Losses that are right, and in what way the others are wrong."""

from __future__ import annotations

import math

import pytest
import torch

from zoo.configs import Config
from zoo.losses import LOSSES, loss_of
from zoo.odd_losses import ODD_LOSSES

LABELS = torch.tensor([0, 2, 1])


def scores():
    return torch.tensor([[1.0, 0.5, -2.0], [0.0, 0.3, 0.9], [2.0, -1.0, 0.1]])


def of(loss, given, wanted, classes=3):
    return float(loss_of(Config(loss=loss), classes, given, wanted))


def test_a_handmade_softmax_is_cross_entropy_until_it_overflows():
    assert of("naive-softmax", scores(), LABELS) == pytest.approx(of("auto", scores(), LABELS))
    assert not math.isfinite(of("naive-softmax", 200 * scores(), LABELS))
    assert math.isfinite(of("auto", 200 * scores(), LABELS))


def test_a_sum_is_the_mean_times_the_examples():
    assert of("sum", scores(), LABELS) == pytest.approx(3 * of("auto", scores(), LABELS))


def test_a_column_against_a_row_is_no_squared_error():
    column = torch.tensor([[1.0], [2.0], [3.0]])

    assert of("auto", column, column, 0) == 0
    assert of("broadcast", column, column, 0) == pytest.approx(2 * 2 / 3)


def test_brier_is_nought_for_a_sure_and_right_answer():
    sure = 100.0 * torch.nn.functional.one_hot(LABELS, 3)

    assert of("brier", sure, LABELS) == pytest.approx(0, abs=1e-6)
    assert of("brier", sure, LABELS.roll(1)) == pytest.approx(2, abs=1e-6)


def test_label_smoothing_never_lets_a_loss_be_nought():
    sure = 100.0 * torch.nn.functional.one_hot(LABELS, 3)

    assert float(loss_of(Config(label_smoothing=0.1), 3, sure, LABELS)) > 1


def pairs():
    return torch.stack([scores(), scores().roll(1, 0) + 0.1], 1)


REAL = torch.tensor([[0.5], [1.0], [2.0]])
# What a loss is given, where that is not scores and labels.
GIVEN = {
    "huber": (scores()[:, :1], REAL),
    "broadcast": (scores()[:, :1], REAL),
    "pinball": (scores()[:, :1], REAL),
    "poisson": (scores()[:, :1], REAL),
    "poisson-rate": (scores()[:, :1].exp(), REAL),
    "poisson-clamped": (scores()[:, :1].exp(), REAL),
    "gaussian": (scores()[:, :2], REAL),
    "gaussian-short": (scores()[:, :2], REAL),
    "gaussian-raw": (scores()[:, :2].exp(), REAL),
    "mean-twice": (scores()[:, :1], REAL),
    "bce": (scores(), (scores() > 0).float()),
    "naive-bce": (scores(), (scores() > 0).float()),
    "one-of-many": (scores(), (scores() > 0).float()),
    "contrast": (pairs(), LABELS),
    "contrast-flat": (pairs(), LABELS),
    "attract": (pairs(), LABELS),
    "variational": (scores().repeat(1, 3), scores() + 0.2),
    "rebuilt": (scores(), scores() + 0.2),
}


@pytest.mark.parametrize("name", sorted(LOSSES | ODD_LOSSES))
def test_every_loss_has_a_gradient(name):
    given, wanted = GIVEN.get(name, (scores(), LABELS))
    given = given.clone().requires_grad_()
    loss_of(Config(loss=name), 0 if name in GIVEN else 3, given, wanted).backward()

    assert given.grad.isfinite().all()
    assert given.grad.abs().sum() > 0


def test_entropy_written_out_by_hand_is_that_of_the_library_until_it_saturates():
    wanted = (scores() > 0).float()

    assert of("naive-bce", scores(), wanted, 0) == pytest.approx(of("bce", scores(), wanted, 0))
    assert not math.isfinite(of("naive-bce", 200 * scores(), wanted, 0))
    assert math.isfinite(of("bce", 200 * scores(), wanted, 0))


def test_rates_and_variances_below_zero_have_no_logarithm():
    below = torch.full((3, 2), -2.0)

    assert math.isnan(of("poisson-rate", below[:, :1], REAL, 0))
    assert math.isnan(of("gaussian-raw", below, REAL, 0))
    assert math.isfinite(of("poisson", below[:, :1], REAL, 0))
    assert math.isfinite(of("gaussian", below, REAL, 0))


def test_views_are_told_apart_by_the_right_contrast_alone():
    sure = 10 * torch.eye(3)[:, None].expand(3, 2, 3)

    assert of("contrast", sure, LABELS, 0) == pytest.approx(0, abs=1e-6)
    assert of("contrast-flat", sure, LABELS, 0) > 100
    assert of("attract", sure, LABELS, 0) == 0
    assert of("attract", 0 * sure, LABELS, 0) == 0
