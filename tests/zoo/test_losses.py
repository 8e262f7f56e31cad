"""Losses that are right, and in what way the others are wrong."""

from __future__ import annotations

import math

import pytest
import torch

from zoo.configs import Config
from zoo.losses import LOSSES, loss_of

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


@pytest.mark.parametrize("name", sorted(set(LOSSES) - {"huber", "broadcast"}))
def test_every_loss_of_classes_has_a_gradient(name):
    given = scores().requires_grad_()
    loss_of(Config(loss=name), 3, given, LABELS).backward()

    assert given.grad.isfinite().all()
    assert given.grad.abs().sum() > 0
