"""Restarts of a rate that go higher each time, told before one of them goes too high."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...runs import Fix, RunFinding
from ..signs.sight import Sight
from ..signs.wording import above, finding

_TIMES = 1.5  # times all rates before it: restarts come back to where they were, or below
_FELL = 0.5  # of the highest before: a warm-up in stages does not fall in between
_TWICE = 2  # restarts of that kind: one may begin another part of a run
_STAYS = 3  # points: a rate that is high for fewer slipped
_AROUND, _THROWN = 10, 3.0  # points on either side of a restart, and times the loss before it
_KEPT = 0.5  # of it: a schedule falls slowly behind a restart


def restarts(seen: Sight) -> list[RunFinding]:
    """Find a rate that fell and came back at once to more than ever, twice at least.

    Warm restarts go back to the first rate (Loshchilov & Hutter 2017, SGDR). What grows with each
    of them ends above what any run can follow, however well it goes until then.
    """
    rates = np.zeros(0) if seen.lr is None else np.nan_to_num(seen.lr)
    found = [at for at in range(1, len(rates)) if _is_higher(rates, at)]
    if len(found) < _TWICE:
        return []
    first = float(rates[: found[0]].max())
    times = float(rates[found[-1]]) / first
    return [
        finding(
            # What is thrown up by each of them, and came back so far, swings; else it is foretold.
            "oscillating" if _throw(seen, found) else "diverging",
            "warning",
            f"the learning rate fell and came back higher than ever {len(found)} times: it is "
            f"{times:.3g} times what it was before, and no run can follow that for long",
            {"lr": float(rates[-1]), "first_highest": first, "restarts": len(found),
             "times": times},
            since=int(seen.steps[found[0]]),
            cause="each restart of the schedule multiplies the rate",
            advice=["restart at the first rate, or below it", "leave the restarts out"],
            signs=[above(times, _TIMES)],
            fix=Fix("fix_schedule", {"hold": first}),
        )
    ]  # fmt: skip


def _is_higher(rates: Any, at: int) -> bool:
    """Did the rate come back at that point, from far below, to more than ever, and to stay?"""
    highest, after = float(rates[:at].max()), rates[at : at + _STAYS]
    fell = 0 < rates[at - 1] < _FELL * highest
    stays = len(after) == _STAYS and float(after.min()) > _KEPT * rates[at]
    return bool(fell and stays and rates[at] > _TIMES * highest)


def _throw(seen: Sight, found: list[int]) -> bool:
    """Did the loss rise to far more than before at each of these restarts?"""
    loss = seen.loss
    for at in found:
        place = int(np.searchsorted(loss.steps, seen.steps[at]))
        before, after = loss.values[max(place - _AROUND, 0) : place], loss.values[place:][:_AROUND]
        if not len(before) or float(after.max(initial=0.0)) < _THROWN * float(np.median(before)):
            return False
    return True
