"""A loop that is wired wrongly: gradients never cleared, or modules left in eval mode."""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite
from typing import Any

import numpy as np

from difflens.core.policy import Policy, Threshold

from ..detectors.looping.weights import put_back, repeated
from ..detectors.signs.degrees import LONG, SOME, THRICE
from ..detectors.signs.harms import harm
from ..detectors.signs.held_back import has_soured, held_back_loss, left_behind
from ..detectors.signs.limits import Limits
from ..detectors.signs.losses import Losses, output_shape
from ..detectors.signs.nonfinite import is_overflow
from ..detectors.signs.sight import Sight, sight
from ..detectors.signs.wording import above, finding
from ..history.history import History
from ..records.runs import Fix, RunFinding
from . import diagnosis

THRESHOLDS = {
    "share": Threshold(0.8, "share of the steps at which old gradients were still there"),
    "points": Threshold(8, "points before a word is said"),
    "roughness": Threshold(
        0.1, "median change of ln of the gradient norm from point to point, about its trend: a sum "
        "over steps is smooth, the gradient of a batch is not; twice as much where the norm grew"),
    "late_roughness": Threshold(
        0.02, "the same over the latest 30 points, where the loss suffers: one more batch hardly "
        "moves a sum over many; gradients of batches stay at 0.1 and more"),
    "wandering": Threshold(
        0.6, "autocorrelation of ln of the gradient norm about its line over 40 points, in the "
        "middle of all, where the loss suffers: a sum goes on from where it is, a batch forgets"),
    "writes": Threshold(2, "times that weights changed by far more than their update"),
    "same_values": Threshold(4, "held-back losses that are exactly the same while weights move"),
    "moving": Threshold(1e-4, "update by weight of steps that a held-back loss must show"),
    "repeated": Threshold(2.5, "first step by what its gradient and the rate make"),
    "scaled": Threshold(10, "first gradient of the outputs' bias by the most that the loss "
                        "allows: healthy ones reach 1"),
    "far": Threshold(0.9, "lowest held-back loss by the first training loss (or guessing), behind "
                     "batch norms: what they learned to expect is not what they get"),
    "fall": Threshold(0.7, "share by which the training loss fell meanwhile"),
    "far_values": Threshold(4, "held-back values, all of them as far"),
    "growth": Threshold(
        1.25, "growth of the gradient norm over the first points: sums grow, gradients "
        "that are cleared after the forward pass, which is fine, do not"),
}  # fmt: skip


@diagnosis(needs=(), window=8, thresholds=THRESHOLDS)
def wiring(history: History, policy: Policy) -> Iterator[RunFinding]:
    """Find gradients that pile up over steps, and modules that train in eval mode."""
    limit = Limits("wiring", policy, THRESHOLDS)
    seen = sight(history)
    yield from [*_piled_up(seen, limit)] or scaled(seen, limit)
    yield from [*_in_eval_mode(seen)] or _other_statistics(seen, limit)
    yield from put_back(seen, limit) or repeated(seen, limit)


def _piled_up(seen: Sight, limit: Limits) -> Iterator[RunFinding]:
    """Find gradients that are never cleared between steps."""
    kept = seen.history.course.scalar("grad_kept")
    if kept is None:
        return
    known = ~np.isnan(kept)
    known[: 1 if len(known) else 0] = False  # at the first step there is nothing to keep
    begins = _begins(kept, known, limit["share"])
    known[:begins] = False
    n = int(known.sum())
    if n < limit["points"]:
        return
    share = float((kept[known] > 0.5).mean())
    growth, roughness = _growth(seen, begins)
    told = harm(seen.loss, least=20)
    if share < limit["share"] or not ((growth or 0.0) >= limit["growth"] or told):
        return
    smooth = limit["roughness"] * (2 if (growth or 0.0) >= limit["growth"] else 1)
    late = told and (
        _late_roughness(seen, begins) <= limit["late_roughness"]
        or _wanders(seen, begins) >= limit["wandering"]
    )
    if roughness is not None and roughness > smooth and not late:
        return
    yield from finding(
        "wiring",
        "critical",
        f"gradients of the last step were still there at {share:.0%} of the steps: they add up",
        {
            "kept_share": share,
            "share_threshold": limit["share"],
            "points": n,
            "early_growth": growth,
            "growth_threshold": limit["growth"],
            "roughness": roughness,
            "roughness_threshold": limit["roughness"],
            **({"harm": told.said} if told else {}),
        },
        since=int(seen.steps[begins]),
        cause="zero_grad() is not called between steps",
        advice=["call optimizer.zero_grad() before backward()"],
        signs=[above(share, limit["share"] / 2)],
        fix=Fix("call_zero_grad"),
    )


def _begins(kept: Any, known: Any, share: float) -> int:
    """Return the point from which on gradients are kept: the first, or the last change to it."""
    cleared = np.flatnonzero(known & (kept <= 0.5))
    if len(cleared) <= (1 - share) * int(known.sum()):
        return 0
    return int(cleared[-1])


def _growth(seen: Sight, begins: int) -> tuple[float | None, float | None]:
    """Return the gradient norm after some points by that of the first, and how rough it is."""
    norms = seen.history.course.global_norm()
    norms = None if norms is None else norms[begins:]
    if norms is None or len(norms) < 8 or not np.isfinite(norms[:8]).all() or norms[0] <= 0:
        return None, None
    moves = np.diff(np.log(np.maximum(norms[3:13], 1e-30)))
    # About their own trend: sums that grow fast are as smooth as those that grow slowly.
    rough = np.abs(moves - np.nanmedian(moves))
    return float(np.median(norms[5:10]) / norms[0]), float(np.nanmedian(rough))


def _late_roughness(seen: Sight, begins: int) -> float:
    """Return how rough the gradient norm is by now; without bound where that is not known.

    A sum of a few steps may turn as gradients do. One over many steps cannot.
    """
    norms = seen.history.course.global_norm()
    if norms is None or len(norms) - begins < 2 * LONG or not (norms[-LONG:] > 0).all():
        return float("inf")
    moves = np.diff(np.log(norms[-LONG:]))
    return float(np.median(np.abs(moves - np.median(moves))))


def _wanders(seen: Sight, begins: int) -> float:
    """Return how much a gradient norm is like the one before, about its line; 0 if not known.

    Gradients that turn with the weights, as those of Adam's steps to and fro, add up to a sum that
    neither grows nor is smooth. It still goes on from where it is, and a batch knows no other.
    """
    norms = seen.history.course.global_norm()
    norms = np.zeros(0) if norms is None else norms[begins:]
    if len(norms) < LONG or not (np.isfinite(norms) & (norms > 0)).all():
        return 0.0
    stops = range(len(norms), LONG - 1, -LONG // 2)
    return float(np.median([_memory(np.log(norms[stop - LONG : stop])) for stop in stops]))


def _memory(values: Any) -> float:
    along = np.arange(len(values))
    rest = values - np.polyval(np.polyfit(along, values, 1), along)
    return float((rest[1:] * rest[:-1]).sum() / max((rest**2).sum(), 1e-300))


def _in_eval_mode(seen: Sight) -> Iterator[RunFinding]:
    found: Any = seen.history.fact("eval_modules")
    names = [str(each) for each in found] if isinstance(found, (list, tuple)) else []
    if not names or seen.points < 3:
        return
    # Normalisation that is frozen on purpose has parameters that do not train.
    frozen = {
        layer.name.rpartition(".")[0] for layer in seen.history.info.layers if not layer.trainable
    }
    names = [name for name in names if name not in frozen]
    if not names:
        return
    told = harm(seen.loss, least=40)
    yield from finding(
        "wiring",
        "critical" if told else "warning",
        f"{len(names)} modules were in eval mode while steps were taken, {names[0]} among them",
        {"eval_modules": len(names), "steps": seen.points, **({"harm": told.said} if told else {})},
        since=int(seen.steps[0]),
        layers=_layers_of(seen, names),
        cause="model.eval() was called, by a validation loop for one, and model.train() was not",
        advice=[
            "call model.train() before the training steps",
            "where normalisation is frozen on purpose, freeze its parameters as well",
        ],
        signs=[above(len(names), 0.5)],
        fix=Fix("train_mode"),
    )


def _other_statistics(seen: Sight, limit: Limits) -> Iterator[RunFinding]:
    """Find a network with batch norms that is far worse than guessing wherever it is measured.

    It learns in training mode. In evaluation mode its norms take statistics they have kept; where
    these are wrong, outputs are far off, and far more so than of what is merely not learned.
    """
    norms = [layer.name for layer in seen.history.info.layers if "BatchNorm" in layer.kind]
    loss, held_back = seen.loss, held_back_loss(seen.history)
    if not norms or held_back is None or held_back.n < limit["far_values"] or loss.start <= 0:
        return
    lowest = float(held_back.values.min()) / max(abs(loss.reference), 1e-300)
    if lowest < limit["far"] or loss.fall < limit["fall"]:
        return
    if left_behind(loss, held_back, THRICE, 0.0) is None or _is_by_heart(loss, held_back):
        return
    yield from finding(
        "wiring",
        "warning",
        f"the training loss fell to {loss.now:.3g}, and the held-back loss was never below "
        f"{lowest:.3g} times where training began",
        {"held_back_by_start": lowest, "far_threshold": limit["far"], "values": held_back.n},
        since=int(held_back.steps[0]),
        layers=norms,
        cause="batch norms evaluate with statistics that they never learned: their momentum is "
        "next to zero, or they were in evaluation mode",
        advice=["take the default momentum of the norms", "compare both modes on one batch"],
        fix=Fix("norm_momentum", {"value": 0.1}),
        signs=[above(lowest, limit["far"] / 2)],
    )


def _is_by_heart(loss: Losses, held_back: Losses) -> bool:
    """Did it begin at guessing and rise by much as nothing was left of the training loss?

    Statistics that were never learned cost from the first look on, and as much when training has
    only begun. What few examples teach is sure and wrong the later, the more.
    """
    left = loss.mean_now
    return has_soured(loss, held_back) and left < SOME * abs(loss.reference)


def _layers_of(seen: Sight, modules: list[str]) -> list[str]:
    chosen = set(modules)
    return [
        layer.name for layer in seen.history.info.layers if layer.name.rpartition(".")[0] in chosen
    ]


def scaled(seen: Sight, limit: Limits) -> list[RunFinding]:
    """Find a first gradient of the outputs that is many times what their loss allows.

    What reaches the bias of the outputs is the mean of the loss's slope, and that is bounded by
    the loss itself: at most sqrt(2) of a cross entropy, 2 sqrt(L) of a squared error. Beyond it,
    backward was called on something else than was reported. Later points are not asked: steps may
    drive a likelihood to the edge of its domain, where its slope has no bound.
    """
    times, told = _times(seen), harm(seen.loss, least=20)
    if times is None or times < limit["scaled"] or told is None:
        return []
    return finding(
        "wiring",
        "critical",
        f"the first gradient of the outputs is {times:.3g} times the most that a loss of "
        f"{float(seen.loss.values[0]):.3g} can have; {told.said}",
        {"times": times, "scaled_threshold": limit["scaled"], "harm": told.said},
        since=int(seen.steps[0]),
        cause="the loss is multiplied (a scale for half precision) and gradients are not "
        "divided again, or are summed over many batches",
        advice=[
            "divide the gradients by the scale of the loss before step(): unscale_()",
            "call backward() on the loss that is reported",
        ],
        # Divided or not, a scale that the format of gradients cannot hold breaks the run.
        fix=Fix("scale_loss", {"factor": 1.0})
        if is_overflow(seen.history)
        else Fix("unscale_gradients"),
        signs=[above(times, limit["scaled"] / 2)],
    )


def _times(seen: Sight) -> float | None:
    """Return the first gradient of the outputs' bias by the most that it should be."""
    gradients, shape = seen.history.course.field("grad_l2"), output_shape(seen.history)
    if gradients is None or not len(gradients) or not shape or not seen.loss.n:
        return None
    if int(seen.loss.steps[0]) != int(seen.steps[0]):
        return None
    found = [
        float(gradients[0, i])
        for i, layer in enumerate(seen.history.info.layers)
        if layer.shape == (shape[-1],) and "norm" not in layer.kind.lower()
    ]
    if not found or not isfinite(found[-1]):
        return None
    return found[-1] / (2 * max(1.0, abs(float(seen.loss.values[0]))))
