"""Examples that come in an order from some step on: a loader that was made anew without shuffling.

Up to there batches say nothing of their neighbours. Then a stretch of one class is learned at once,
far below all that a mixed batch ever cost, and the next class, forgotten meanwhile, costs far more
than any did, though no step was larger than usual. What a step throws was not so good just before.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...records.runs import Fix, RunFinding
from ..signs.degrees import (
    CLEARLY,
    FAR,
    FEW,
    HALF,
    LONG,
    PART,
    RECENT,
    SEVERAL,
    SHORT,
    THRICE,
    TWICE,
)
from ..signs.leaps import SOON, update_before
from ..signs.limits import Limits
from ..signs.losses import Losses
from ..signs.outliers import outlier
from ..signs.sight import Sight
from ..signs.succession import lasting_turns
from ..signs.wording import above, finding
from ..signs.writes import writes

_STRETCH = (4, 30)  # points of one class, at least and at most


class Onset(NamedTuple):
    """The step at which an order begins, that of its largest leap, and what is told of it."""

    step: int
    leapt: int
    said: str
    evidence: dict[str, Any]


def begun(seen: Sight, limit: Limits) -> list[RunFinding]:
    """Find an order that begins midway."""
    loss = seen.loss
    if loss.start <= 0 or not loss.n or loss.values.min() <= 0 or _is_thrown(loss):
        return []
    found = _learned_and_lost(loss) or _neighbours(loss)
    if found is None or not _is_given(seen, found, limit):
        return []
    return finding(
        "data",
        "warning",
        f"since about step {found.step} {found.said}, and no step before was larger than usual",
        {**found.evidence, "usual_threshold": limit["usual"]},
        since=found.step,
        cause="from there on the examples come in an order (by label, target or time): what "
        "one stretch teaches is forgotten in the next",
        advice=[
            "shuffle the examples (shuffle=True in the loader), also after resuming",
            f"compare a batch from before step {found.step} with one from after it",
        ],
        signs=[above(float(found.evidence["figure"]), 1.0)],
        fix=Fix("shuffle"),
    )


def _is_thrown(loss: Losses) -> bool:
    return float(loss.values.max()) > FAR * max(loss.size, loss.chance or 0.0)


def _is_given(seen: Sight, found: Onset, limit: Limits) -> bool:
    """Is it what comes in that has changed, and neither the rate, nor a step, nor the weights?"""
    size, _, _ = update_before(seen, found.leapt)
    place = int(np.searchsorted(seen.steps, found.step))
    if size is None or max(size, _struck(seen, place)) > limit["usual"]:
        return False
    rates = None if seen.lr is None else seen.lr[max(place - RECENT, 0) :]
    if rates is not None and (np.diff(rates) > 1e-3 * np.abs(rates[:-1])).any():
        return False
    struck = outlier(seen)
    if struck is not None and abs(found.leapt - struck.step) <= SOON:
        return False
    return not writes(seen)


def _struck(seen: Sight, place: int) -> float:
    """Return the largest update since a point by the largest of those just before itself.

    What is forgotten makes steps larger one by one; a step that throws the weights comes at once.
    """
    typical = seen.layers.typical_update
    begins = max(place - RECENT, 0)
    sizes = np.zeros(0) if typical is None else np.nan_to_num(typical[begins:])
    if len(sizes) <= RECENT:
        return 0.0
    windows = np.lib.stride_tricks.sliding_window_view(sizes, RECENT)[:-1].max(axis=1)
    return float((sizes[RECENT:] / np.maximum(windows, 1e-30)).max())


def _learned_and_lost(loss: Losses) -> Onset | None:
    """Find the first stretch that cost far less than all before, and what follows far more."""
    values, (least, most) = loss.values, _STRETCH
    jumps = np.flatnonzero(values[1:] > 2 * CLEARLY * values[:-1]) + 1
    for at in jumps[(jumps >= RECENT + least) & (jumps <= loss.n - FEW)].tolist():
        lengths = range(least, min(most, at - RECENT) + 1)
        found = next((each for k in lengths if (each := _tooth(loss, at - k, at))), None)
        if found is not None:
            return found
    return None


def _tooth(loss: Losses, begins: int, ends: int) -> Onset | None:
    before = loss.values[begins - RECENT : begins]
    stretch, after = loss.values[begins:ends], loss.values[ends : ends + FEW]
    low, usual = float(np.median(stretch)), float(np.median(before))
    halves = [float(np.median(each)) for each in np.split(before, 2)]
    cheap, dear = usual / low, float(after.min() / before.max())
    if cheap < THRICE or low > before.min() or dear < CLEARLY:
        return None
    # What climbs before it leaps is being thrown, and what falls by itself was on its way.
    if float(stretch[-2:].max()) > usual or max(halves) > CLEARLY * min(halves):
        return None
    if _memory(_rest(np.log(before))) > HALF:
        return None  # what follows its own course breaks through by itself
    said = (
        f"a stretch of {ends - begins} batches cost {1 / cheap:.2g} of what they did before, "
        f"and those behind it {dear:.2g} times the most they ever did"
    )
    step, leapt = int(loss.steps[begins]), int(loss.steps[ends])
    return Onset(step, leapt, said, {"cheap": cheap, "figure": dear, "stretch": ends - begins})


def _neighbours(loss: Losses) -> Onset | None:
    """Find the point since which a batch's loss tells the next one's, swings far, and is higher."""
    logs = np.log(loss.values)
    early, untaught = loss.n // 5, np.log(abs(loss.reference))
    for at in range(loss.n - LONG, early + LONG, -SHORT):
        rose = float(np.median(logs[at:]) - np.median(logs[at - RECENT : at]))
        if rose < HALF or lasting_turns(logs[at:]) < SEVERAL:
            continue
        if int((logs[at:] > untaught).sum()) < FEW:
            continue  # a class that is forgotten is guessed again; steps that swing undo less
        before, since = _rest(logs[max(early, at - 2 * LONG) : at]), _rest(logs[at:])
        wider = float(since.std() / max(float(before.std()), 1e-12))
        knew, knows = _memory(before), _memory(since)
        if wider > TWICE and knew < PART and knows > THRICE / len(since) ** 0.5:
            said = "batches cost like their neighbours, up and down by more than twofold"
            jump = at + int(np.argmax(np.diff(logs[at - 1 :])))
            step, leapt = int(loss.steps[at]), int(loss.steps[jump])
            told = {"memory": knows, "memory_before": knew, "figure": wider}
            return Onset(step, leapt, said, told)
    return None


def _rest(values: Any) -> Any:
    """Return what is left of values about their line."""
    along = np.arange(len(values))
    return values - np.polyval(np.polyfit(along, values, 1), along)


def _memory(rest: Any) -> float:
    """Return the autocorrelation of neighbours."""
    return float((rest[1:] * rest[:-1]).sum() / max(float((rest**2).sum()), 1e-300))
