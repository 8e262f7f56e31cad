"""The built-in rules of Amazon SageMaker Debugger, with their documented defaults.

Rules that need what a run does not hold (class imbalance, percentiles of gradients, pre-activations
by unit, wall-clock stalls) are left out; saturation is taken from the share the recorder saw.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from ..verdicts import Alarm
from .seen import Seen

_BACK = 10  # steps over which the loss must have fallen


def alarms(run: Seen) -> list[Alarm]:
    """Return the first alarm of every rule."""
    return [*alarms_but_loss(run), *_loss_not_decreasing(run), *_over_fit(run)]


def alarms_but_loss(run: Seen) -> list[Alarm]:
    """Leave out the two rules about the loss, which fire on every run that has noise in it."""
    rules: tuple[Callable[[Seen], Iterator[Alarm]], ...] = (
        _vanishing, _exploding, _dead, _saturated, _updates, _initialised, _unchanged,
        _all_zero, _inputs,
    )  # fmt: skip
    return [alarm for rule in rules for alarm in rule(run)]


def _first(run: Seen, flags: NDArray[np.bool_], *names: str) -> Iterator[Alarm]:
    """Yield an alarm at the first step at which some layer is flagged."""
    hit = flags.any(axis=1)
    if hit.any():
        step = int(hit.argmax())
        yield Alarm(frozenset(names), step, layers=run.names(flags[step]))


def _vanishing(run: Seen) -> Iterator[Alarm]:
    yield from _first(run, run.grad_mean_abs < 1e-7, "vanishing")


def _exploding(run: Seen) -> Iterator[Alarm]:
    broken = (run.grad_nonfinite > 0) | (~np.isfinite(run.loss))[:, None]
    yield from _first(run, broken, "exploding", "nan")


def _dead(run: Seen) -> Iterator[Alarm]:
    yield from _first(run, run.act_dead > 0.5, "dead")


def _saturated(run: Seen) -> Iterator[Alarm]:
    yield from _first(run, run.act_saturated > 0.5, "vanishing")


def _updates(run: Seen) -> Iterator[Alarm]:
    """Hold every tensor's update against itself, zero-initialised biases at step 0 too."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = run.update_l2 / run.weight_l2
    yield from _first(run, ratio > 10, "lr-high")
    yield from _first(run, ratio < 1e-8, "slow", "lr-low")


def _loss_not_decreasing(run: Seen) -> Iterator[Alarm]:
    for step in range(_BACK, len(run.loss), _BACK):
        if not run.loss[step] < run.loss[step - _BACK]:
            yield Alarm(frozenset({"plateau", "slow"}), step)
            return


def _over_fit(run: Seen) -> Iterator[Alarm]:
    for step in np.flatnonzero(~np.isnan(run.val_loss)):
        train = float(np.nanmean(run.loss[max(0, step - 19) : step + 1]))
        if train > 0 and (run.val_loss[step] - train) / train > 0.1:
            yield Alarm(frozenset({"over-fit"}), int(step))
            return


def _initialised(run: Seen) -> Iterator[Alarm]:
    """Compare the variances of the weights of the first ten steps."""
    seen = [i for i in run.weights if np.isfinite(run.weight_l2[:10, i]).all()]
    counts = np.array([run.layers[i].count for i in seen], float)
    variance = run.weight_l2[:10, seen] ** 2 / counts
    if variance.size and (variance.min(axis=1) > 0).all():
        ratio = variance.max(axis=1) / variance.min(axis=1)
        if (ratio > 10).all():
            yield Alarm(frozenset({"vanishing", "exploding", "symmetry"}), len(variance) - 1)


def _unchanged(run: Seen) -> Iterator[Alarm]:
    still = (run.update_l2 == 0) | (run.update_l2 <= 1e-5 * run.weight_l2)
    if len(still) > 2:
        thrice = still[:-2] & still[1:-1] & still[2:]
        for alarm in _first(run, thrice, "not-training", "slow", "lr-low"):
            yield Alarm(alarm.names, alarm.step + 2, layers=alarm.layers)


def _all_zero(run: Seen) -> Iterator[Alarm]:
    yield from _first(run, run.grad_max_abs == 0, "dead", "not-training")


def _inputs(run: Seen) -> Iterator[Alarm]:
    if abs(run.input_mean) > 0.2:
        yield Alarm(frozenset({"data"}), 0)
