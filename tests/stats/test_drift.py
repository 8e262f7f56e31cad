"""Drift goes, swings stay."""

import numpy as np
import pytest

from difflens.stats.oscillation import SWINGS, drift_basis, faded, without_drift


@pytest.mark.parametrize("n", [1, 3, 10, 50, 300])
def test_a_line_leaves_nothing(n):
    line = np.linspace(3.0, -5.0, n)[:, None]

    assert np.abs(without_drift(line)).max() < 1e-9
    assert np.abs(faded(line)).max() < 1e-9


@pytest.mark.parametrize("n", [5, 50, 1000])
def test_columns_of_drift_are_orthonormal_and_at_most_a_tenth(n):
    basis = drift_basis(n)

    assert np.allclose(basis.T @ basis, np.eye(basis.shape[1]))
    assert basis.shape[1] <= max(2, n // 10)


def test_one_spike_moves_nothing_but_itself_once_it_is_cut():
    noise = np.random.default_rng(1).standard_normal((200, 1))
    spiked = noise.copy()
    spiked[100] = 1000.0
    others = np.arange(200) != 100

    assert np.abs(without_drift(spiked) - without_drift(noise))[others].max() > 10
    assert np.abs(without_drift(spiked, cut=4) - without_drift(noise, cut=4))[others].max() < 1


def test_a_swing_of_more_than_five_cycles_stays():
    time = np.arange(400)[:, None]
    swing = np.sin(2 * np.pi * 3 * SWINGS * time / 400)

    assert (without_drift(swing) ** 2).sum() > 0.95 * (swing**2).sum()


def test_a_steep_start_does_not_ring_over_the_rest_once_faded():
    curve = -np.log1p(np.arange(1000.0))[:, None]
    middle = slice(300, 700)

    assert np.abs(faded(curve)[middle]).max() < 0.2 * np.abs(without_drift(curve)[middle]).max()
