"""Made-up language for the zoo: tokens to turn round, sum up, tag, fill in or go on with."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import NDArray

    Tokens = NDArray[np.int64]
    Made = tuple[Tokens, Tokens, int]  # inputs, targets, classes

_COUNT = 1500
_IGNORED = -100  # a target that cross-entropy passes over
_STOP = 12  # the full stop of the grammar


def _reverse() -> Made:
    """Draw eight tokens; what is to be told at each place is the one as far from the end."""
    inputs = np.random.default_rng(21).integers(0, 8, (_COUNT, 8))
    return inputs, np.ascontiguousarray(inputs[:, ::-1]), 8


def _grammar() -> Made:
    """Cut windows from sentences in which nouns and verbs agree; told is the next word."""
    random = np.random.default_rng(22)
    words: list[int] = []
    while len(words) < _COUNT * 12 + 1:
        words.extend(_sentence(random))
    stream = np.array(words[: _COUNT * 12 + 1], np.int64)
    return stream[:-1].reshape(_COUNT, 12), stream[1:].reshape(_COUNT, 12), _STOP + 1


def _sentence(random: Generator) -> list[int]:
    """Return article, perhaps an adjective, noun, verb, perhaps an object, and a full stop."""
    number = int(random.integers(2))
    sentence = _phrase(random, number)
    sentence.append(8 + 2 * number + int(random.random() < 0.2))
    if sentence[-1] % 2 == 0:  # such a verb takes an object
        sentence.extend(_phrase(random, int(random.integers(2))))
    return [*sentence, _STOP]


def _phrase(random: Generator, number: int) -> list[int]:
    adjective = [int(random.integers(2, 4))] if random.random() < 0.3 else []
    return [number, *adjective, 4 + 2 * number + int(random.random() < 0.2)]


def _masked() -> Made:
    """Hide a fifth of the tokens of a chain that mostly goes one way; told are the hidden ones."""
    random = np.random.default_rng(23)
    follows = random.permutation(9)
    tokens = random.integers(0, 9, (_COUNT, 12))
    for place in range(1, 12):
        keeps = random.random(_COUNT) < 0.9
        tokens[:, place] = np.where(keeps, follows[tokens[:, place - 1]], tokens[:, place])
    hidden = random.random(tokens.shape) < 0.2
    return np.where(hidden, 9, tokens), np.where(hidden, tokens, _IGNORED), 9


def _brackets() -> Made:
    """Open and close brackets of two kinds; told at each place is how deep they are nested."""
    random = np.random.default_rng(24)
    inputs, depths = np.zeros((_COUNT, 16), np.int64), np.zeros((_COUNT, 16), np.int64)
    for row in range(_COUNT):
        kinds: list[int] = []
        for place in range(16):
            opens = not kinds or (len(kinds) < 4 and random.random() < 0.5)
            if opens:
                kinds.append(int(random.integers(2)))
            inputs[row, place] = kinds[-1] if opens else 2 + kinds.pop()
            depths[row, place] = len(kinds)
    return inputs, depths, 5


def _recall() -> Made:
    """Begin with one of four letters and go on with others; told at the end is the first one."""
    random = np.random.default_rng(25)
    inputs = random.integers(4, 8, (_COUNT, 20))
    inputs[:, 0] = random.integers(0, 4, _COUNT)
    return inputs, inputs[:, 0].copy(), 4


def _topics() -> Made:
    """Draw words by a topic each of which has a liking of its own; told is the topic."""
    random = np.random.default_rng(26)
    likings = random.dirichlet(np.full(24, 0.4), 5)
    labels = random.integers(0, 5, _COUNT)
    inputs = np.stack([random.choice(24, 12, p=likings[each]) for each in labels])
    return inputs, labels, 5


def _sums() -> Made:
    """Draw six digits; told is in which of five ranges their sum lies."""
    inputs = np.random.default_rng(27).integers(0, 5, (_COUNT, 6))
    return inputs, np.digitize(inputs.sum(axis=1), [9, 11, 13, 15]), 5


def _tags() -> Made:
    """Draw words whose tag depends on the word itself and on the kind of the one before."""
    random = np.random.default_rng(28)
    table = random.integers(0, 6, (16, 5))
    inputs = random.integers(0, 16, (_COUNT, 14))
    before = np.concatenate([np.full((_COUNT, 1), 4), inputs[:, :-1] // 4], axis=1)
    return inputs, table[inputs, before], 6


SETS: dict[str, Callable[[], Made]] = {
    "token-reverse": _reverse,
    "token-grammar": _grammar,
    "token-masked": _masked,
    "token-brackets": _brackets,
    "token-recall": _recall,
    "token-topics": _topics,
    "token-sums": _sums,
    "token-tags": _tags,
}
