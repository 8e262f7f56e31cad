"""Two calibrated levels: the error rate is kept, and few readings are enough."""

import random
from statistics import median

import pytest

from difflens.stats.levels import calibrate, decide, evidence


def decisions(separation: float, error: float, number: int = 400) -> tuple[int, int, float]:
    """Decide readings of the low level; count wrong and open ones, and the readings taken."""
    chance, wrong, unsure, lengths = random.Random(1), 0, 0, []
    for _ in range(number):
        sides = ([chance.gauss(m, 1) for _ in range(6)] for m in (separation, 0.0))
        levels = calibrate(*sides)
        values: list[float] = []
        answer = None
        while answer is None and len(values) < 24:
            values.append(chance.gauss(0, 1))
            answer = decide(levels, values, error)
        wrong += answer is True
        unsure += answer is None
        lengths.append(len(values))
    return wrong, unsure, median(lengths)


@pytest.mark.parametrize("separation", [2.0, 3.0, 4.0])
def test_decisions_are_wrong_as_seldom_as_they_say(separation):
    wrong, unsure, taken = decisions(separation, 0.05)

    assert wrong <= 0.05 * 400
    assert unsure <= 0.1 * 400
    assert taken <= 5


def test_evidence_grows_with_readings_and_changes_sides_halfway():
    levels = calibrate([10, 11, 9, 10], [6, 7, 5, 6])

    assert evidence(levels, []) == 0
    assert evidence(levels, [8.0]) == pytest.approx(0)
    assert evidence(levels, [10.0]) < evidence(levels, [10.0] * 3)
    assert evidence(levels, [5.0]) < 0


def test_a_threshold_moves_both_levels_to_the_distance_of_the_nearer():
    levels = calibrate([10, 10, 10], [6, 6, 6]).around(7)

    assert (levels.high, levels.low) == (8, 6)


def test_shares_are_judged_as_shares():
    levels = calibrate([1, 1, 1, 0, 1, 1], [0, 0, 0, 0, 1, 0])

    assert levels.is_share
    assert decide(levels, [1], 0.05) is None
    assert decide(levels, [1, 1, 1], 0.05) is True
    assert decide(levels, [0, 1, 0, 0, 0], 0.05) is False


def test_levels_without_noise_decide_at_once():
    levels = calibrate([2.0, 2.0], [5.0, 5.0])

    assert levels.separation == float("inf")
    assert decide(levels, [2.5], 0.05) is True
    assert decide(levels, [4.5], 0.05) is False
