"""Several answers to one question: averaged first, so that questions stay the units."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NamedTuple

from .clusters import cluster_sums
from .samples import sample


class Averaged(NamedTuple):
    """The mean score of each question, in order of appearance.

    `within` is the mean variance of repeated answers to one question (None where no question
    has two), `repeats` how many answers a question has.
    """

    questions: tuple[Hashable, ...]
    means: tuple[float, ...]
    within: float | None
    repeats: tuple[int, ...]


def average_repeats(questions: Sequence[Hashable], scores: Sequence[float]) -> Averaged:
    """Average the answers to each question (Miller 2024: variance = between + within / K).

    >>> average_repeats(["a", "b", "a"], [0.0, 1.0, 1.0]).means
    (0.5, 1.0)
    """
    array = sample(scores, "scores")
    sums, sizes = cluster_sums(array, questions)
    means = sums / sizes
    names = tuple(dict.fromkeys(questions))
    place = {name: index for index, name in enumerate(names)}
    centred = array - means[[place[each] for each in questions]]
    squares = cluster_sums(centred**2, questions)[0]
    several = sizes > 1
    within = float((squares[several] / (sizes[several] - 1)).mean()) if several.any() else None
    return Averaged(
        names, tuple(float(each) for each in means), within, tuple(int(each) for each in sizes)
    )
