"""Whether the loss is flat by now, since when, and what the flat stretch suggests.

It is asked of the loss, never of gradient norms: gradients may be steady all along a long descent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..network_results import PlateauDetection, PlateauSeverity
from ..records import Interval
from ..stats.plateau import SMALLEST, Plateau, plateau
from .reasons import because, blank
from .slopes import PER

if TYPE_CHECKING:
    from .totals import Series

FLAT = 0.001  # share of the loss that it may move per 100 steps and still be flat
MODERATE, SEVERE = 0.1, 0.3  # share of the run from which a plateau is so called


def plateau_of(loss: Series) -> PlateauDetection:
    """Judge the loss; the margin is 0.1 % of it as it is now, per 100 steps."""
    n = len(loss.steps)
    if n < 2 * SMALLEST:
        why = f"{n} finite losses, {2 * SMALLEST} are needed"
        return blank(PlateauDetection, "the loss of more steps", why)
    now = abs(float(np.median(loss.values[-SMALLEST:])))
    margin = FLAT * now / PER
    if margin <= 0:
        return blank(PlateauDetection, "a loss that is not zero", "the loss is zero")
    found = plateau(loss.steps, loss.values, margin)
    told: dict[str, Any] = {
        "outcome": found.outcome,
        "margin": margin * PER,
        "slope": None if found.slope is None else found.slope * PER,
        "interval": _interval(found),
        "points_needed": found.needed,
    }
    if found.outcome == "plateau":
        return _flat(found, loss, told)
    if found.outcome == "moving":
        why = "the loss moves"
        return blank(PlateauDetection, "a loss that does not move", why, is_plateau=False, **told)
    why = (
        f"the slope is not known to better than the margin; "
        f"a window of about {found.needed} points would tell"
    )
    reasons = because(f"{found.needed} points", why, "is_plateau")
    return blank(PlateauDetection, "a plateau", "none was shown", missing=reasons, **told)


def _interval(found: Plateau) -> Interval | None:
    if found.low is None or found.high is None:
        return None
    return Interval(PER * found.low, PER * found.high, found.level,
                    "Theil-Sen, widened for autocorrelation", found.points)  # fmt: skip


def _flat(found: Plateau, loss: Series, told: dict[str, Any]) -> PlateauDetection:
    start, last = found.start or 0.0, float(loss.steps[-1])
    duration = int(last - start)
    share = duration / max(last - float(loss.steps[0]), 1.0)
    severity = PlateauSeverity.MILD
    if share >= MODERATE:
        severity = PlateauSeverity.SEVERE if share >= SEVERE else PlateauSeverity.MODERATE
    since = f"the loss has moved by less than {100 * FLAT:g} % per 100 steps since step {start:.0f}"
    actions = (
        f"change the learning rate, and see whether the loss answers: {since}",
        f"stop here if the loss is where it should be: {since}",
    )
    return blank(
        PlateauDetection, "a window that did not tell", "one did", is_plateau=True,
        plateau_duration=duration, plateau_severity=severity, suggested_actions=actions,
        since_step=int(start), **told,
    )  # fmt: skip
