"""A loss that leaps out of its course at one step, by a step that was too large or a bad batch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from ..records import Policy, Threshold
from ..runs import Fix, RunFinding, RunSeverity
from . import diagnosis
from .signs.limits import Limits
from .signs.sight import Sight, sight
from .signs.wording import above, finding

if TYPE_CHECKING:
    from ..history.history import History

THRESHOLDS = {
    "before": Threshold(20, "points before it, from which the usual course is known"),
    "deviations": Threshold(8.0, "height over the course before, in robust deviations"),
    "rise": Threshold(1.2, "height over the highest of the points before"),
    "lasting": Threshold(3, "points for which the loss must stay above all before"),
    "update": Threshold(
        30.0, "update at that step by the usual one; healthy runs of large learning rates leap by "
        "themselves after updates up to 20 times the usual, and come back"),
    "stay": Threshold(12, "points for which it must stay out, where no update explains it"),
    "level": Threshold(0.5, "the loss out there by its start, where no update explains it"),
}  # fmt: skip


@diagnosis(needs=("loss",), window=25, thresholds=THRESHOLDS)
def spike(history: History, policy: Policy) -> Iterator[RunFinding]:
    """Find the step at which the loss leapt out of its course and stayed out for some points."""
    limit = Limits("spike", policy, THRESHOLDS)
    seen = sight(history)
    loss = seen.loss
    if loss.n <= limit["before"] or loss.start <= 0:
        return
    at, height, deviations = _leap(loss.values, limit)
    if at is None:
        return
    step = int(loss.steps[at])
    size, where, names = _update(seen, step)
    caused = size is not None and size >= limit["update"]
    severity = _severity(seen, limit, at, caused)
    yield finding(
        "spike",
        severity,
        f"the loss leapt at step {step} to {height:.3g} times the highest of the "
        f"{limit['before']} points before"
        + (f"; the update of step {where} was {size:.3g} times the usual one" if caused else ""),
        {"height_by_highest": height, "rise_threshold": limit["rise"],
         "deviations": deviations, "deviations_threshold": limit["deviations"],
         "update_by_usual": size, "update_threshold": limit["update"], "loss": float(
             loss.values[at])},
        since=where if caused and where is not None else step,
        layers=names if caused else [],
        cause="one step was far larger than the others: the learning rate, or a gradient that was "
        "not clipped" if caused else "a batch unlike the others, or a step into a bad place",
        advice=["rewind to before the step and leave that batch out", "clip gradients",
                "check the schedule for a step with a wrong learning rate"],
        signs=[above(deviations, limit["deviations"]), above(height, 1.0)],
        fix=Fix("rewind_and_skip", {"step": where}) if caused else _clip(seen, step),
    )  # fmt: skip


def _clip(seen: Sight, step: int) -> Fix | None:
    """Offer the usual gradient norm as a bound, where it is known."""
    norms = seen.history.course.global_norm()
    before = None if norms is None else norms[seen.steps < step][-20:]
    if before is None or not np.isfinite(before).any():
        return None
    return Fix("clip_gradients", {"max_norm": float(np.nanmedian(before))})


def _severity(seen: Sight, limit: Limits, at: int, caused: bool) -> RunSeverity:
    """Warn of a leap with a cause, or one that does not come back; tell of others as info."""
    values, start = seen.loss.values, seen.loss.start
    if caused:
        return "warning"
    after = values[at : at + int(limit["stay"])]
    before = float(values[at - int(limit["before"]) : at].max())
    end = float(np.median(after[-4:]))
    away = len(after) >= limit["stay"] and end > max(before, limit["level"] * start)
    return "warning" if away else "info"


def _leap(values: Any, limit: Limits) -> tuple[int | None, float, float]:
    """Find the first point that leaves its course: above all before it, far and for long."""
    before, lasting = limit["before"], int(limit["lasting"])
    if len(values) < before + lasting:
        return None, 0.0, 0.0
    windows = np.lib.stride_tricks.sliding_window_view(values, before)[:-lasting]
    after = np.lib.stride_tricks.sliding_window_view(values, lasting)[before:].min(axis=1)
    count = min(len(windows), len(after))
    windows, after = windows[:count], after[:count]
    top, middle = windows.max(axis=1), np.median(windows, axis=1)
    spread = 1.4826 * np.median(np.abs(windows - middle[:, None]), axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        far = (after - middle) / np.maximum(spread, 1e-9 * np.abs(middle))
        height = np.where(top > 0, after / top, 0.0)
    found = np.flatnonzero((far > limit["deviations"]) & (height > limit["rise"]))
    if not len(found):
        return None, 0.0, 0.0
    at = int(found[0])
    peak = float(values[at + before : at + before + 5].max())
    return at + before, peak / float(top[at]), float(far[at])


def _update(seen: Sight, step: int) -> tuple[float | None, int | None, list[str]]:
    """Give the largest update of the points about the leap, by the usual one, and its layers."""
    ratios, typical = seen.layers.update, seen.layers.typical_update
    if ratios is None or typical is None:
        return None, None, []
    place = int(np.searchsorted(seen.steps, step))
    low = max(place - 4, 0)
    near, usual = typical[low : place + 1], typical[max(low - 20, 0) : low]
    if not np.isfinite(near).any() or not np.isfinite(usual).any():
        return None, None, []
    at = low + int(np.nanargmax(near))
    base = float(np.nanmedian(usual))
    columns = np.argsort(-np.nan_to_num(ratios[at]), kind="stable")[:10]
    size = float(typical[at]) / base if base > 0 else None
    return size, int(seen.steps[at]), seen.layers.named(columns)
