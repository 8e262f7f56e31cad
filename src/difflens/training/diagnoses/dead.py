"""Units that answer zero to everything: nothing passes, and no gradient comes back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from difflens.core.policy import Policy, Threshold

from ..detectors.signs.degrees import HALF, LONG, MOST, RECENT, SHORT, SOME, TENFOLD
from ..detectors.signs.gates import bias_of
from ..detectors.signs.harms import Harm, harm
from ..detectors.signs.layers import SWAMPED, median, place
from ..detectors.signs.limits import Limits
from ..detectors.signs.norms import small_gains
from ..detectors.signs.rates import lower, untorn
from ..detectors.signs.recurrence import GATED
from ..detectors.signs.sight import Sight, sight
from ..detectors.signs.silence import is_barred, starved
from ..detectors.signs.wording import above, finding
from ..history.history import History
from ..records.runs import Fix, RunFinding
from . import diagnosis

THRESHOLDS = {
    "share": Threshold(
        0.8,
        "share of a layer's units that answered zero to a whole batch; healthy ReLU layers "
        "have up to a third of such units",
    ),
    "points": Threshold(12, "points over which the loss must suffer"),
    "silent_points": Threshold(
        10, "points with a gradient of exactly zero, where activations were not recorded"
    ),
}
_FAR = 1.0  # size of a bias that bars units by itself


class _Dead(NamedTuple):
    names: list[str]
    share: float
    since: int
    by: str


@diagnosis(needs=("loss",), window=12, thresholds=THRESHOLDS)
def dead(history: History, policy: Policy) -> Iterator[RunFinding]:
    """Find layers whose units have died, where the loss suffers."""
    limit = Limits("dead", policy, THRESHOLDS)
    seen = sight(history)
    told = harm(seen.loss, least=limit["points"])
    cut = _starved(seen)
    if cut is not None and told is None and is_barred(seen, starved(seen)):
        told = Harm("starved", cut.since, 1.0, "no layer behind them learns but by its bias")
    found = _by_activity(seen, limit) or cut or _by_gradient(seen, limit)
    if found is None or told is None or told.kind == "broken":
        return
    if small_gains(seen):
        return  # nothing reached the units before they died: told as vanishing
    if seen.points < RECENT and _are_swamped(seen):
        return  # steps as large as the weights do all sorts of harm: a few more tell which
    moved = _moved_before(seen, found.since)
    from_start = moved < HALF and found.since <= int(seen.steps[min(10, len(seen.steps) - 1)])
    names = [*([] if from_start else _thrown_by(seen)), *found.names]
    yield from finding(
        "dead",
        "critical" if seen.loss.n >= LONG else "warning",
        f"{found.share:.0%} of the units behind {found.names[0]} are dead"
        f"{_others(found.names)}; {told.said}",
        {
            "dead_share": found.share,
            "share_threshold": limit["share"],
            "seen_by": found.by,
            "dead_layers": len(found.names),
            "harm": told.said,
        },
        since=found.since,
        layers=list(dict.fromkeys(names)),
        cause="the units were never active: their biases or weights start far below zero"
        if from_start
        else "too large steps pushed the units where no input makes them active again",
        advice=["use LeakyReLU or GELU", "initialise with kaiming and zero biases"]
        if from_start
        else [
            "lower the learning rate, and start anew: dead units do not come back",
            "use LeakyReLU or GELU",
        ],
        signs=[above(found.share, limit["share"] / 2)],
        fix=_start_alive(seen, found) if from_start else lower(seen, untorn(seen, 0.1)),
    )


def _start_alive(seen: Sight, found: _Dead) -> Fix:
    """Ask for other weights; for no ReLU behind the outputs, where it alone bars all of them.

    Outputs begin on either side of zero by chance, unless their biases start far from it.
    """
    output: Any = seen.history.fact("output")
    barred = isinstance(output, dict) and output.get("min") == output.get("max") == 0
    last = len(seen.layers.matrices) - 1
    module = seen.layers.of(last).name.rpartition(".")[0]
    alone = all(name.rpartition(".")[0] == module for name in found.names)
    relu = seen.history.fact("final_module") == "ReLU"
    if barred and alone and relu and bias_of(seen, [last]) < _FAR:
        return Fix("remove_softmax")
    return Fix("reinitialise", {"scheme": "kaiming", "layers": []})


def _are_swamped(seen: Sight) -> bool:
    """Did one of the very first steps replace half of the weights of a middling layer?"""
    updates = seen.layers.typical_update
    return updates is not None and bool(np.nan_to_num(updates[:3]).max(initial=0.0) > SWAMPED)


def _moved_before(seen: Sight, since: int) -> float:
    """Return how far the steps before units died took the layer that moved most."""
    updates = seen.layers.update
    if updates is None or not seen.layers.trained.any():
        return 0.0
    early = updates[seen.steps < since][:, seen.layers.trained].astype(np.float64)
    early = np.nan_to_num(early, posinf=1e300)  # of which several have a sum
    return float(early.sum(axis=0).max())


def _thrown_by(seen: Sight) -> list[str]:
    """Name the one layer whose first step was far larger than those of the others.

    The first step is asked: what one layer is thrown to makes the gradients of all others large.
    """
    updates = seen.layers.update
    if updates is None or not len(updates):
        return []
    first = np.where(seen.layers.trained, np.nan_to_num(updates[0]), 0.0)
    if not len(first) or first.max() < max(TENFOLD * float(np.median(first)), SOME):
        return []
    return seen.layers.named([int(np.argmax(first))])


def _starved(seen: Sight) -> _Dead | None:
    """Take for dead what stands before a layer whose inputs are all exactly zero."""
    columns = starved(seen)
    if columns and seen.history.info.layers[columns[0]].kind in GATED:
        return None  # states of gated cells are zero where gates are shut: told as vanishing
    norms = seen.history.course.field("grad_l2")
    if not columns or norms is None:
        return None
    since = min(_zero_since(seen, norms[:, i]) for i in columns)
    names = [seen.history.info.layers[i].name for i in columns]
    return _Dead(names, 1.0, since, "inputs of exactly zero behind them")


def _others(names: list[str]) -> str:
    return f", and those of {len(names) - 1} more layers" if len(names) > 1 else ""


def _by_activity(seen: Sight, limit: Limits) -> _Dead | None:
    shares = seen.layers.dead
    if shares is None:
        return None
    known = np.flatnonzero(~np.isnan(shares).all(axis=0))
    if not len(known):
        return None
    late = median(shares[-20:][:, known], axis=0)
    hit = [int(known[i]) for i in np.flatnonzero(late >= limit["share"])]
    if not hit:
        return None
    layers = seen.history.info.layers
    shares_now = dict(zip(known.tolist(), late.tolist(), strict=True))
    size = {i: float(shares_now[i]) for i in hit}
    hit.sort(key=lambda i: (-size[i], layers[i].role == "bias", place(layers, i)))
    since = min(_onset(seen, shares[:, i], limit["share"]) for i in hit)
    return _Dead([layers[i].name for i in hit], size[hit[0]], since, "activations")


def _onset(seen: Sight, values: Any, share: float) -> int:
    """Return the step since which the share was not left again."""
    known = ~np.isnan(values)
    return _since(seen.steps[known], values[known] >= share)


def _since(steps: Any, silent: Any) -> int:
    """Return the step since which a layer was silent and not heard again.

    One that was so before the first update, and hardly ever was not, never was alive: a rare batch
    that wakes a unit for one step does not make it a layer that steps killed.
    """
    if silent[0] and silent[:SHORT].mean() >= MOST <= silent.mean():
        return int(steps[0])
    heard = np.flatnonzero(~silent)
    return int(steps[min(heard[-1] + 1, len(steps) - 1)] if len(heard) else steps[0])


def _by_gradient(seen: Sight, limit: Limits) -> _Dead | None:
    """Take gradients of exactly zero behind a ReLU for a sign, where activations are not known."""
    norms = seen.layers.field("grad_l2")
    if norms is None or seen.layers.dead is not None or len(norms) < limit["silent_points"]:
        return None
    late = norms[-limit["silent_points"] :]
    silent = (late == 0).all(axis=0) & seen.layers.trained
    columns = [i for i in np.flatnonzero(silent) if "ReLU" in seen.layers.of(int(i)).activation]
    if not columns:
        return None
    columns.sort(reverse=True)
    since = min(_zero_since(seen, norms[:, i]) for i in columns)
    return _Dead(seen.layers.named(columns), 1.0, since, "gradients of exactly zero")


def _zero_since(seen: Sight, values: Any) -> int:
    return _since(seen.steps, values == 0)
