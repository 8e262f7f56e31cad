"""Two training recipes: the difference of their means over seeds and questions.

Questions alone tell how two checkpoints differ. What differs between two recipes varies from
seed to seed, so seeds are resampled too; with one seed a side nothing is known of that.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .bootstrap import Bootstrapped
from .samples import probability, sample

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_AT_ONCE = 1_000_000  # values held in memory at a time
_FEW = 5  # seeds a side below which their spread is too little known


def two_level_bootstrap(
    left: Sequence[Sequence[float]],
    right: Sequence[Sequence[float]],
    *,
    level: float = 0.95,
    resamples: int = 9999,
    seed: int = 0,
) -> Bootstrapped:
    """Compare recipes by scores[seed][question], both on the same questions in one order.

    Seeds are resampled on each side, questions on both at once; the interval is the percentile
    one. With one seed a side only questions are, and the note limits the statement.
    """
    import numpy as np

    probability(level, "level")
    before, after = _table(left, "left"), _table(right, "right")
    if before.shape[1] != after.shape[1]:
        raise ValueError(f"left has {before.shape[1]} questions, right {after.shape[1]}")
    value = float(after.mean() - before.mean())
    note = _limits(len(before), len(after))
    if before.shape[1] < 2:
        note = "one question, so nothing can be resampled"
        return Bootstrapped(value, None, None, level, "two-level", resamples, seed, None, note)
    drawn = _drawn(before, after, resamples, seed)
    low, high = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2])
    error = float(drawn.std(ddof=1))
    return Bootstrapped(
        value, float(low), float(high), level, "two-level", resamples, seed, error, note
    )


def _drawn(
    before: NDArray[np.float64], after: NDArray[np.float64], resamples: int, seed: int
) -> NDArray[np.float64]:
    """Resample by how often each seed and each question is drawn."""
    import numpy as np

    generator = np.random.default_rng(seed)
    questions, found = before.shape[1], []
    step = max(1, _AT_ONCE // questions)
    for start in range(0, resamples, step):
        count = min(step, resamples - start)
        asked = generator.multinomial(questions, [1 / questions] * questions, count) / questions
        sides = [
            generator.multinomial(len(table), [1 / len(table)] * len(table), count)
            / len(table)
            @ table
            for table in (before, after)
        ]
        found.append(((sides[1] - sides[0]) * asked).sum(axis=1))
    return np.concatenate(found)


def _limits(left: int, right: int) -> str:
    if min(left, right) == 1:
        return "one seed on a side: this speaks of these checkpoints, not of the recipes"
    if min(left, right) < _FEW:
        return f"fewer than {_FEW} seeds on a side: the interval is too short"
    return ""


def _table(scores: Sequence[Sequence[float]], name: str) -> NDArray[np.float64]:
    import numpy as np

    rows = [sample(each, f"{name}, seed {place}") for place, each in enumerate(scores)]
    if not rows:
        raise ValueError(f"{name} holds no seeds")
    if len({row.size for row in rows}) > 1:
        raise ValueError(f"the seeds of {name} answered different numbers of questions")
    return np.stack(rows)
