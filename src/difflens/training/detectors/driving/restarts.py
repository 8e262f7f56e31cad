"""Restarts of a rate that go higher each time, told before one of them goes too high."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...records.runs import Fix, RunFinding
from ..signs.degrees import CLEARLY, FEW, HALF, SHORT, THRICE
from ..signs.sight import Sight
from ..signs.wording import above, finding

_TWICE = 2  # restarts of that kind: one may begin another part of a run


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
    return finding(
        # What is thrown up by each of them, and came back so far, swings; else it is foretold.
        "oscillating" if _throw(seen, found) else "diverging",
        "warning",
        f"the learning rate fell and came back higher than ever {len(found)} times: it is "
        f"{times:.3g} times what it was before, and no run can follow that for long",
        {"lr": float(rates[-1]), "first_highest": first, "restarts": len(found), "times": times},
        since=int(seen.steps[found[0]]),
        cause="each restart of the schedule multiplies the rate",
        advice=["restart at the first rate, or below it", "leave the restarts out"],
        signs=[above(times, CLEARLY)],  # restarts come back to where they were, or below
        fix=Fix("fix_schedule", {"hold": first}),
    )


def _is_higher(rates: Any, at: int) -> bool:
    """Did the rate come back at that point, from far below, to more than ever, and to stay?"""
    highest, after = float(rates[:at].max()), rates[at : at + FEW]
    fell = 0 < rates[at - 1] < HALF * highest  # a warm-up in stages does not fall in between
    stays = len(after) == FEW and float(after.min()) > HALF * rates[at]
    return bool(fell and stays and rates[at] > CLEARLY * highest)


def _throw(seen: Sight, found: list[int]) -> bool:
    """Did the loss rise to far more than before at each of these restarts?"""
    loss = seen.loss
    for at in found:
        place = int(np.searchsorted(loss.steps, seen.steps[at]))
        before, after = loss.values[max(place - SHORT, 0) : place], loss.values[place:][:SHORT]
        if not len(before) or float(after.max(initial=0.0)) < THRICE * float(np.median(before)):
            return False
    return True
