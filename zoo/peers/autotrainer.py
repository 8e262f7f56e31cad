"""AutoTrainer's five checks with the defaults of its code (Zhang et al., ICSE 2021).

It judges at the end of an epoch and asks about gradients only where the accuracy is bad. An epoch
longer than a twelfth of the run counts as a twelfth: else runs with tiny batches were never judged.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from ..verdicts import Alarm
from .seen import Seen

_BAD = 0.6
_FIRST_EPOCH = 3  # before it, nothing is judged


def alarms(run: Seen) -> list[Alarm]:
    """Return the first alarm of every check."""
    found: dict[str, Alarm] = {}
    ends = _epochs(run)
    means = [_accuracy(run, start, end) for start, end in ends]
    for number, (_, end) in enumerate(ends):
        if number < _FIRST_EPOCH:
            continue
        for alarm in _checks(run, means[: number + 1], end - 1):
            found.setdefault(min(alarm.names), alarm)
    return list(found.values())


def _epochs(run: Seen) -> list[tuple[int, int]]:
    steps = len(run.loss)
    size = max(1, min(run.epoch, max(steps // 12, 1)))
    return [(start, start + size) for start in range(0, steps - size + 1, size)]


def _accuracy(run: Seen, start: int, end: int) -> float:
    part = run.accuracy[start:end]
    return float(part.mean()) if len(part) else float("nan")


def _checks(run: Seen, means: list[float], step: int) -> Iterator[Alarm]:
    loss = run.loss[step]
    if not np.isfinite(loss) or loss >= 1e3 or (run.grad_nonfinite[step] > 0).any():
        yield Alarm(frozenset({"exploding", "nan"}), step)
    known = np.isfinite(means[-1])
    if known and means[-1] <= _BAD:
        yield from _gradients(run, step)
        gains = np.diff(means)
        if len(gains) and gains.max() < 0.01:
            yield Alarm(frozenset({"slow"}), step)
    if known and _swings(means) >= 0.2 * len(means):
        yield Alarm(frozenset({"oscillating"}), step)


def _gradients(run: Seen, step: int) -> Iterator[Alarm]:
    norms = run.grad_l2[step, run.weights]
    first, last = norms[0], norms[-1]
    if last > 0 and first / last < 1e-3 and first < 1e-4:
        yield Alarm(frozenset({"vanishing"}), step, layers=(run.layers[run.weights[0]].name,))
    if last > 0 and first / last > 70:
        yield Alarm(frozenset({"exploding"}), step, layers=(run.layers[run.weights[0]].name,))
    counts = np.array([layer.count for layer in run.layers], float)
    known = np.isfinite(run.grad_zeros[step])
    if known.any() and run.grad_zeros[step, known].sum() >= 0.7 * counts[known].sum():
        share = np.where(known, run.grad_zeros[step] / counts, 0.0)
        order = np.argsort(-share)
        yield Alarm(frozenset({"dead"}), step, layers=tuple(run.layers[i].name for i in order[:3]))


def _swings(means: list[float]) -> int:
    """Count the turns of the accuracy that go at least 0.03 both ways."""
    steps = np.diff(means)
    return sum(
        1
        for before, after in pairwise(steps)
        if before * after < 0 and min(abs(before), abs(after)) >= 0.03
    )
