"""One metric over past versions: its level, its jumps, its drift, and where the next should lie.

Only the present level counts as noise: what came before the last jump was another regime.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from difflens.core.findings import Interval
from difflens.diffs.evidence.records import Past
from difflens.stats.change_points import BASELINE, baseline, change_points, cusum
from difflens.stats.comparison import quantile
from difflens.stats.decision import Direction
from difflens.stats.forecast import LEAST, against_history
from difflens.stats.trend import mann_kendall, theil_sen

from .metrics import LARGEST
from .records.regressions import ChangePoint, MetricHistory, MetricPoint

LONGEST = 100  # versions looked at: the newest
_JUMPS = 8  # versions below which a jump cannot be told from noise
_TREND = 5  # versions below which a drift cannot


class Course(NamedTuple):
    """A metric's history, and those of its values that belong to the present level."""

    history: MetricHistory
    present: tuple[Past, ...]


def course(
    model: str,
    metric: str,
    past: Iterable[Past],
    direction: Direction | None = None,
    *,
    alpha: float = 0.05,
    seed: int = 0,
) -> Course:
    """Look at the newest versions of one metric, oldest first."""
    every = [each for each in past if abs(each.value) <= LARGEST]
    points = every[-LONGEST:]
    values = [each.value for each in points]
    jumps = change_points(values, alpha=alpha, seed=seed) if len(values) >= _JUMPS else ()
    since = jumps[-1].index if jumps else 0
    present = points[since:]
    drift = _drift(values, alpha, seed)
    alarms, length = _alarms(points)
    found = MetricHistory(
        model=model,
        metric=metric,
        direction=direction,
        points=tuple(_point(each, 1 - alpha) for each in points),
        change_points=tuple(
            ChangePoint(
                version=points[jump.index].version, before=jump.before, after=jump.after, p=jump.p
            )
            for jump in jumps
        ),
        slope=drift.slope,
        slope_interval=drift.interval,
        trend_p=drift.p,
        left_out=len(every) - len(points),
        limits=_limits([each.value for each in present], alpha),
        alarms=alarms,
        in_control_run_length=length,
        note=_note(points, since, len(present)),
    )
    return Course(found, tuple(present))


def _point(past: Past, level: float) -> MetricPoint:
    """Return a value with its interval, mean ± t·standard error, where it is a mean of samples."""
    reach = None
    if past.standard_error is not None and past.n:
        reach = quantile((1 + level) / 2, past.n - 1) * past.standard_error
    return MetricPoint(
        version=past.version,
        timestamp=past.time or "",
        value=past.value,
        low=None if reach is None else past.value - reach,
        high=None if reach is None else past.value + reach,
    )


class _Drift(NamedTuple):
    slope: float | None = None
    interval: Interval | None = None
    p: float | None = None


def _drift(values: Sequence[float], alpha: float, seed: int) -> _Drift:
    times = list(range(len(values)))
    slope = theil_sen(times, values, 1 - alpha) if len(values) >= _TREND else None
    if slope is None:
        return _Drift()
    ends = None
    if slope.low is not None and slope.high is not None:
        ends = Interval(slope.low, slope.high, 1 - alpha, "Sen", len(values))
    return _Drift(slope.value, ends, mann_kendall(values, seed=seed).p)


def _limits(present: Sequence[float], alpha: float) -> Interval | None:
    """Return the prediction interval of the next value; its middle stands for what to expect."""
    found = against_history(present, present[-1], 1 - alpha) if present else None
    if found is None:
        return None
    return Interval(found.low, found.high, 1 - alpha, "prediction interval", found.n)


def _alarms(points: Sequence[Past]) -> tuple[tuple[str, ...], float | None]:
    """Learn from the first versions what is quiet, and watch the later ones by cumulative sums."""
    quiet = baseline([each.value for each in points[:BASELINE]])
    later = points[BASELINE:]
    if quiet is None or not later:
        return (), None
    found = cusum([each.value for each in later], quiet.mean, quiet.deviation, phi=quiet.phi)
    return tuple(later[at].version for at in found.alarms), found.in_control_run_length


def _note(points: Sequence[Past], since: int, present: int) -> str:
    if len(points) < LEAST:
        return f"{len(points)} versions, {LEAST} are needed"
    if since and present < LEAST:
        return f"a new level since {points[since].version}: {present} of {LEAST} versions"
    return f"the level since {points[since].version}" if since else ""
