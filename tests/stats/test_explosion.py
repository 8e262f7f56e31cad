"""Exploding and vanishing, defined once: steps that stand out, and layers far below their peers."""

import numpy as np
import pytest

from difflens.stats.explosion import parts_of_peers, rises, share_below


def scores(values):
    changes = np.diff(np.log(values))
    away = changes - np.median(changes)
    return away / (np.median(np.abs(away)) / 0.6745)


def noisy(level, count=60):
    return level * np.exp(0.05 * np.random.default_rng(1).standard_normal(count))


def test_a_step_up_is_found_with_the_levels_on_both_sides():
    values = np.concatenate([noisy(1.0), noisy(50.0)])

    (found,) = rises(values, scores(values), z=6.0, window=100, hold=5)

    assert found.place == 60
    assert found.after / found.before == pytest.approx(50, rel=0.1)
    assert (found.count_before, found.count_after) == (60, 5)


def test_one_value_alone_up_there_has_no_level_above():
    values = noisy(1.0, 100)
    values[70] = 80.0

    (found,) = rises(values, scores(values), z=6.0, window=100, hold=5)

    assert found.place == 70
    assert found.after / found.before < 2


def test_norms_and_their_logarithms_show_the_same_steps():
    values = np.concatenate([noisy(1.0), noisy(50.0)])

    (one,) = rises(values, scores(values), z=6.0, window=99, hold=5)
    (other,) = rises(np.log(values), scores(values), z=6.0, window=99, hold=5)

    assert one.place == other.place
    assert np.log(one.after) == pytest.approx(other.after)


def test_a_layer_far_below_its_peers_is_below_in_every_step():
    ratios = np.array([noisy(1e-2), noisy(1.1e-2), noisy(1e-6), noisy(0.9e-2)])

    assert share_below(parts_of_peers(ratios), 1e-3).tolist() == [0.0, 0.0, 1.0, 0.0]


def test_steps_without_a_level_are_not_counted():
    ratios = np.array([[0.0, 1e-5, 1e-5], [0.0, 1.0, 1.0], [0.0, 1.0, 1.0]])

    assert share_below(parts_of_peers(ratios), 1e-3).tolist() == [1.0, 0.0, 0.0]
    assert share_below(np.full((2, 3), np.nan), 1.0).tolist() == [0.0, 0.0]
