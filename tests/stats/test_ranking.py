"""Many models are ranked, with ties said to be ties."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lanes import examples
from scipy.optimize import minimize

from difflens.stats import ranking
from difflens.stats.ranking import bradley_terry, standing

# 1987 American League East: rows beat columns.
BASEBALL = [
    [0, 7, 9, 7, 7, 9, 11],
    [6, 0, 7, 5, 11, 9, 9],
    [4, 6, 0, 7, 7, 8, 12],
    [6, 8, 6, 0, 6, 7, 10],
    [6, 2, 6, 7, 0, 7, 12],
    [4, 4, 5, 6, 6, 0, 6],
    [2, 4, 1, 3, 1, 7, 0],
]


def test_the_baseball_table_gives_the_published_abilities():
    found = bradley_terry(BASEBALL)
    published = [1.5814, 1.4364, 1.2945, 1.2476, 1.1077, 0.6839, 0]

    assert found.abilities == pytest.approx(published, abs=5e-5)
    assert (found.tie, found.note) == (0.0, "")


def test_an_iteration_that_was_cut_short_says_so(monkeypatch):
    monkeypatch.setattr(ranking, "_ROUNDS", 2)

    assert bradley_terry(BASEBALL).note.startswith("not settled")


def likelihood(won: np.ndarray, drawn: np.ndarray, at: np.ndarray) -> float:
    ability, tie = np.append(np.exp(at[:-1]), 1), np.exp(at[-1])
    root = tie * np.sqrt(np.outer(ability, ability))
    total = ability[:, None] + ability[None, :] + root
    chances = won * np.log(ability[:, None] / total) + drawn / 2 * np.log(root / total)
    return -float(chances.sum())


@examples(10)
@given(st.integers(0, 999))
def test_ties_give_the_likeliest_abilities_of_davidsons_model(seed):
    random = np.random.default_rng(seed)
    won = random.integers(1, 9, (4, 4)) * (1 - np.eye(4, dtype=int))
    drawn = np.triu(random.integers(1, 6, (4, 4)), 1)
    drawn = drawn + drawn.T
    found = bradley_terry(won, drawn)
    best = minimize(lambda at: likelihood(won, drawn, at), np.zeros(4), method="BFGS")

    assert found.abilities[:-1] == pytest.approx(best.x[:-1], abs=1e-4)
    assert found.tie == pytest.approx(np.exp(best.x[-1]), rel=1e-4)


def test_players_of_separate_leagues_cannot_be_ranked():
    found = bradley_terry([[0, 1, 0], [1, 0, 0], [2, 2, 0]])

    assert found.abilities is None
    assert found.note.startswith("not connected")


@pytest.mark.parametrize(
    ("wins", "ties"),
    [
        ([[0, 1]], None),
        ([], None),
        ([[0]], None),
        ([[1, 1], [1, 0]], None),
        ([[0, -1], [1, 0]], None),
        ([[0, 1], [1, 0]], [[0, 1], [2, 0]]),
        ([[0, 1], [1, 0]], [[0]]),
    ],
)
def test_a_table_that_is_none_is_refused(wins, ties):
    with pytest.raises(ValueError, match=r"players by players|not negative|plays itself"):
        bradley_terry(wins, ties)


def verdicts(strengths: list[float], prompts: int = 60, seed: int = 0) -> list[tuple[Any, ...]]:
    random = np.random.default_rng(seed)
    pairs = [(i, j) for i in range(len(strengths)) for j in range(i)]
    made = []
    for prompt in range(prompts):
        for i, j in pairs:
            chance = 1 / (1 + np.exp(strengths[j] - strengths[i]))
            score = random.choice([1.0, 0.0, 0.5], p=[0.8 * chance, 0.8 * (1 - chance), 0.2])
            made.append((prompt, i, j, float(score)))
    return made


def test_only_players_who_are_apart_are_said_to_be():
    found = standing(verdicts([0.0, 0.0, 2.0]), 3, resamples=99)

    assert set(found.apart) == {(2, 0), (2, 1)}
    assert sum(found.abilities) == pytest.approx(0)
    assert all(low < high for low, high in zip(found.low, found.high, strict=True))
    assert found.note == ""


def test_equal_players_are_rarely_set_apart():
    found = [standing(verdicts([0.0] * 3, 40, seed), 3, resamples=39) for seed in range(16)]

    assert np.mean([bool(each.apart) for each in found]) <= 0.25


def test_resamples_that_fall_apart_are_counted_and_many_are_refused():
    chain = [(0, 0, 1, 1.0), (1, 1, 0, 1.0)]
    thin = [*chain, *[(prompt, 0, 1, 1.0) for prompt in range(2, 5)]]
    some = [*[(prompt, 1, 0, 1.0) for prompt in range(4)], *[(p, 0, 1, 1.0) for p in range(4, 11)]]

    assert standing(chain, 2, resamples=49) is None
    assert standing(thin, 2, resamples=49) is None
    assert standing([(0, 0, 1, 1.0)], 2) is None
    assert standing([], 2) is None
    assert standing(some, 2, resamples=299).note.endswith("resamples not connected")


@pytest.mark.parametrize("verdict", [(0, 1, 1, 1.0), (0, 0, 1, 0.7)])
def test_a_verdict_is_of_two_players_and_won_lost_or_tied(verdict):
    with pytest.raises(ValueError, match="two players"):
        standing([verdict], 2)
