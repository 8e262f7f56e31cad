"""Gradients that fade on their way to the first layers, or back through time.

Layers are compared by r = rms(g)/rms(w), never by raw norms. That gradients are small is no fault
by itself: a trained network has small ones everywhere, so the loss must be stuck as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from ..records import Policy, Threshold
from ..runs import Fix, RunFinding
from . import diagnosis
from .signs.limits import Limits
from .signs.losses import Harm, Losses, standstill, stuck
from .signs.recurrence import wrong_memory
from .signs.sight import Sight, sight
from .signs.wording import below, finding

if TYPE_CHECKING:
    from ..history.history import History

THRESHOLDS = {
    "ratio": Threshold(
        1e-3, "r of the faintest layers by that of the strongest layer: healthy nets stay within 30"
    ),
    "faint": Threshold(
        1e-5,
        "r of the middle layer by the size of the loss: below, nothing "
        "of the loss reaches the weights, whatever the depth",
    ),
    "stood_points": Threshold(30, "points for which a loss that fell later must have stood still"),
    "stood_share": Threshold(0.1, "share of the run for which it must have"),
    "points": Threshold(12, "points over which the loss must be stuck before a word is said"),
    "recurrent_gain": Threshold(
        0.55,
        "|W_hh|/sqrt(n) of a plain recurrent layer: 0.55^10 is a four-hundredth; frameworks start "
        "at 0.577 and more, which learns what is near",
    ),
    "recurrent_points": Threshold(40, "the same for fading in time, which shows later"),
}
_LASTING = 60
_BOUNDED = ("Sigmoid", "Tanh", "Softsign", "Hardsigmoid", "LogSigmoid")


@diagnosis(needs=("grad_l2", "weight_l2", "loss"), window=12, thresholds=THRESHOLDS)
def vanishing(history: History, policy: Policy) -> Iterator[RunFinding]:
    """Find gradients that fade towards the input, or in time, while the loss is stuck."""
    limit = Limits("vanishing", policy, THRESHOLDS)
    seen = sight(history)
    told = stuck(seen.loss, limit["points"]) or _stood(seen.loss, limit)
    if told is None or seen.is_warming_up:
        return
    yield from _with_depth(seen, limit, told) or _in_time(seen, limit, told)


def _stood(loss: Losses, limit: Limits) -> Harm | None:
    """Did the loss stand still for a good part of the run before it began to fall?"""
    still = standstill(loss)
    if loss.start <= 0 or still < max(limit["stood_points"], limit["stood_share"] * loss.n):
        return None
    said = f"the loss did not leave {loss.reference:.4g} for {still} of {loss.n} points"
    return Harm("stood", int(loss.steps[0]), still / loss.n, said)


def _with_depth(seen: Sight, limit: Limits, told: Harm) -> list[RunFinding]:
    layers, columns = seen.layers, np.flatnonzero(seen.layers.trained)
    sizes = _sizes(seen, told, columns)
    if sizes is None:
        return []
    strongest, least = int(np.argmax(sizes)), limit["faint"] * seen.loss.size
    ratios, middle = sizes / sizes[strongest], float(np.median(sizes))
    faint = [i for i in range(strongest) if ratios[i] < limit["ratio"]]
    if middle < least:
        faint = np.flatnonzero(sizes < least).tolist()
    if not faint or _are_dead(seen, columns, sizes):
        return []
    faintest = float(ratios[faint].min())
    order = sorted(faint, key=lambda i: (ratios[i], i))
    bounded = layers.of(int(columns[0])).activation in _BOUNDED
    return [
        finding(
            "vanishing",
            "critical" if seen.loss.n >= _LASTING and told.kind == "stuck" else "warning",
            f"gradients fade to {faintest:.1g} of their size from "
            f"{layers.named([columns[strongest]])[0]} to "
            f"{layers.named([columns[order[0]]])[0]} ({len(faint)} of {len(columns)} layers); "
            f"{told.said}",
            {"faintest_by_strongest": faintest, "ratio_threshold": limit["ratio"],
             "faint_layers": len(faint), "layers": len(columns),
             "factor_a_layer": _slope(sizes, strongest), "loss_fall": told.figure},
            since=told.since,
            layers=layers.named(columns[order]),
            cause="each layer passes on a part of the gradient only: "
            + ("its non-linearity saturates" if bounded else "its weights are small")
            + ", and a deep stack multiplies the parts",
            advice=_advice(bounded),
            signs=[max(below(faintest, limit["ratio"]), below(middle, least))],
            fix=_fix(seen, bounded),
        )
    ]  # fmt: skip


def _sizes(seen: Sight, told: Harm, columns: Any) -> Any:
    """Give r of each trained matrix while the loss stood still; None where it cannot be told."""
    gradient, points = seen.layers.gradient, 30
    if told.kind == "stood" and gradient is not None:
        gradient, points = gradient[: max(standstill(seen.loss) // 2, 5)], seen.points
    recent = seen.layers.recent(gradient, points)
    if recent is None or len(columns) < 3:
        return None
    sizes = recent[columns]
    return sizes if np.isfinite(sizes).all() and sizes.max() > 0 else None


def _are_dead(seen: Sight, columns: Any, sizes: Any) -> bool:
    """Are the silent layers cut off by dead units behind them, not by fading?"""
    return bool((sizes == 0).any()) and not any(
        seen.layers.of(int(column)).activation in _BOUNDED for column in columns
    ) and bool((np.sort(sizes[sizes > 0])[:1] > 1e-4 * sizes.max()).all())  # fmt: skip


def _slope(sizes: Any, strongest: int) -> float | None:
    """Give the factor from one layer to the one before it: exp of the slope of ln r by depth."""
    upto = sizes[: strongest + 1]
    kept = upto > 0
    if kept.sum() < 3:
        return None
    return float(np.exp(np.polyfit(np.arange(len(upto))[kept], np.log(upto[kept]), 1)[0]))


def _advice(bounded: bool) -> list[str]:
    said = ["initialise with xavier (tanh) or kaiming (ReLU)", "add residual connections",
            "put normalisation between the layers"]  # fmt: skip
    return ["replace sigmoid or tanh by ReLU or GELU", *said] if bounded else said


def _fix(seen: Sight, bounded: bool) -> Fix:
    sigmoid = any("igmoid" in layer.activation for layer in seen.history.info.layers)
    if sigmoid:
        return Fix("change_activation", {"to": "relu"})
    scheme = "xavier" if bounded else "kaiming"
    return Fix("reinitialise", {"scheme": scheme, "layers": []})


def _in_time(seen: Sight, limit: Limits, told: Harm) -> list[RunFinding]:
    memory = wrong_memory(seen.history, lambda gain: gain < limit["recurrent_gain"])
    if memory is None or seen.loss.n < limit["recurrent_points"]:
        return []
    gain = memory.gain
    return [
        finding(
            "vanishing",
            "critical" if seen.loss.n >= 2 * _LASTING else "warning",
            f"{memory.layers[0]} keeps {gain:.2g} of what it remembers at every step of a sequence "
            f"({gain**10:.1g} after ten); {told.said}",
            {"recurrent_gain": gain, "recurrent_gain_threshold": limit["recurrent_gain"],
             "loss_fall": told.figure},
            since=told.since,
            layers=memory.layers,
            cause="the recurrent matrix is small: what came early is forgotten, and no gradient "
            "comes back from it",
            advice=["initialise the recurrent matrix orthogonally", "use a GRU or an LSTM",
                    "shorten the sequences"],
            signs=[below(gain, limit["recurrent_gain"])],
            fix=memory.fix,
        )
    ]  # fmt: skip
