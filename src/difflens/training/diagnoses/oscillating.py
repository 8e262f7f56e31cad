"""A loss that swings to and fro without getting anywhere.

It does not count how often the series turns: independent noise turns at two of three points, so
every healthy run would be called oscillating. Here swings must be wide beside the level of the
loss, and the level must not have come down.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from difflens.core.policy import Policy, Threshold

from ..detectors.signs.degrees import FEW, NEARLY, SLIGHTLY, SOME, THRICE
from ..detectors.signs.held_back import held_back_loss
from ..detectors.signs.limits import Limits
from ..detectors.signs.rates import HEAVY, larger, lower, momentum
from ..detectors.signs.sight import Sight, sight
from ..detectors.signs.wording import above, finding
from ..history.history import History
from ..records.runs import RunFinding
from . import diagnosis

_CAUSE = "steps overshoot: the learning rate or the momentum is high, or the batch is small"
THRESHOLDS = {
    "swing": Threshold(0.5, "quartile range of the late loss by its median"),
    "level": Threshold(0.5, "median of the late loss by the start: below, it has come down"),
    "noise": Threshold(
        3.0,
        "the same range of the losses of single examples, by the root of the "
        "batch: a squared error of one has 2.7",
    ),
    "passes": Threshold(4, "passes from one quartile to the other: one fall and one leap are two"),
    "points": Threshold(40, "points before a word is said"),
    "leap": Threshold(1.3, "held-back loss by the look before: steps that overshoot make more"),
    "leaps": Threshold(3, "leaps up, and as many down, of a held-back loss that swings"),
    "looks": Threshold(8, "held-back values before such swings are told"),
    "held_level": Threshold(
        0.4, "median of its latter half by where training began: healthy runs that leap are at 0.2"
    ),
}


@diagnosis(needs=("loss",), window=40, thresholds=THRESHOLDS)
def oscillating(history: History, policy: Policy) -> Iterator[RunFinding]:
    """Find a loss that swings widely about a level that does not come down."""
    limit = Limits("oscillating", policy, THRESHOLDS)
    seen = sight(history)
    loss = seen.loss
    if loss.n < limit["points"] or loss.start <= 0 or loss.is_learned or (loss.values < 0).any():
        return  # low losses swing by nature, and what may be negative has no level to swing about
    yield from _swings(seen, limit) or _throws(seen, limit)


def _swings(seen: Sight, limit: Limits) -> list[RunFinding]:
    """Find a training loss that swings about a level that did not come down."""
    loss = seen.loss
    late = loss.values[-max(loss.n // 2, 30) :]
    low, middle, high = (float(each) for each in np.percentile(late, [25, 50, 75]))
    if middle <= 0:
        return []
    swing, level = (high - low) / middle, middle / loss.start
    halves = _falls(late)
    least = max(limit["swing"], limit["noise"] / seen.batch**0.5 if seen.batch else 0.0)
    if swing < least or level < limit["level"] or halves > 0.2:
        return []
    passes = _passes(late, low, high)
    if passes < limit["passes"]:
        return []  # it came down and was thrown back once
    if _held_back_does_not(seen, len(late)):
        return []  # the batches differ, the weights do not swing
    return finding(
        "oscillating",
        "critical" if loss.n >= 2 * limit["points"] else "warning",
        f"the loss swings between {low:.3g} and {high:.3g} and does not come down "
        f"(it started at {loss.start:.3g})",
        {
            "swing": swing,
            "swing_threshold": least,
            "level_by_start": level,
            "level_threshold": limit["level"],
            "late_fall": halves,
            "passes": passes,
            "points": len(late),
        },
        since=int(loss.steps[0]),
        cause=_CAUSE,
        advice=["lower the learning rate", "lower the momentum", "take larger batches"],
        signs=[above(swing, least), above(level, limit["level"])],
        fix=larger(seen) or lower(seen, 0.1),
    )


def _throws(seen: Sight, limit: Limits) -> list[RunFinding]:
    """Find a held-back loss that is thrown up and down, look by look, and stays high.

    The losses of small batches say little of a step; what weights cost on held-back data differs
    by the weights alone.
    """
    held_back, loss = held_back_loss(seen.history), seen.loss
    if held_back is None or held_back.n < limit["looks"] or (held_back.values <= 0).any():
        return []
    changes, half = held_back.values[1:] / held_back.values[:-1], held_back.n // 2
    up, down = changes > limit["leap"], changes < 1 / limit["leap"]
    leaps = int(min(up.sum(), down.sum()))
    if leaps < limit["leaps"] or not up[half:].any():
        return []
    middle = float(np.median(held_back.values[half:]))
    late = float(np.mean(loss.values[loss.n // 2 :]))
    level, beside = middle / loss.reference, middle / max(late, 1e-300)
    least = limit["held_level"] if not _goes_on(seen, held_back.values) else SOME
    if level < least or beside > THRICE:
        return []
    return finding(
        "oscillating",
        "warning",
        f"the held-back loss leapt up and down {leaps} times and is at {middle:.3g} "
        f"(training began at {loss.reference:.3g})",
        {
            "leaps": leaps,
            "leaps_threshold": limit["leaps"],
            "level_by_start": level,
            "level_threshold": least,
            "looks": held_back.n,
        },
        since=int(held_back.steps[int(np.argmax(up)) + 1]),
        cause=_CAUSE,
        advice=["lower the learning rate", "lower the momentum", "take larger batches"],
        signs=[above(leaps, limit["leaps"] / 2), above(level, least)],
        fix=larger(seen) or lower(seen, 0.1),
    )


def _goes_on(seen: Sight, values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> bool:
    """Does a heavy momentum keep such swings up, so that half of the looks won nothing?

    A usual one forgets a step within ten, and what leaps low down comes to rest.
    """
    half = len(values) // 2
    won = float(np.median(values[half:])) < NEARLY * float(np.median(values[:half]))
    return HEAVY < momentum(seen) < 1 and not won


def _falls(late: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float:
    """Return the share by which the late loss fell over its own course."""
    half = len(late) // 2
    early = float(np.median(late[:half]))
    return (early - float(np.median(late[half:]))) / early if early > 0 else 0.0


def _passes(late: np.ndarray[tuple[int], np.dtype[np.float64]], low: float, high: float) -> int:
    """Count how often it went from beyond one quartile to beyond the other."""
    beyond = (late >= high).astype(int) - (late <= low)
    sides = beyond[beyond != 0]
    return int((np.diff(sides) != 0).sum())


def _held_back_does_not(seen: Sight, points: int) -> bool:
    """Is the held-back loss below the start, or guessing, and did it not rise over these points?

    Weights that swing take it along; batches that cost differently by nature do not. Weights that
    were trained before begin below guessing.
    """
    held_back = held_back_loss(seen.history)
    if held_back is None or held_back.n < FEW:
        return False
    since = seen.loss.steps[-points]
    looks = held_back.values[-max(int((held_back.steps >= since).sum()), FEW) :]
    calm = bool((looks[1:] <= SLIGHTLY * looks[:-1]).all())
    return calm and float(looks[-1]) < NEARLY * max(seen.loss.reference, seen.loss.chance or 0.0)
