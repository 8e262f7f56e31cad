"""Data that training cannot use: not scaled, in sorted order, or with labels that say nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from ..records import Policy, Threshold
from ..runs import Fix, RunFinding
from . import diagnosis
from .signs.harms import broke, crawls, rests, rose, stood, stuck
from .signs.held_back import held_back_loss, is_blind, is_flat
from .signs.inputs import TOO_SMALL, input_size, swell, target_size
from .signs.leaps import LEAP, leap, stays_out, update_before
from .signs.limits import Limits
from .signs.losses import Losses
from .signs.outputs import explains_nothing
from .signs.recurrence import is_recurrent
from .signs.sawtooth import sawtooth
from .signs.sight import Sight, sight
from .signs.wording import above, below, finding

if TYPE_CHECKING:
    from ..history.history import History

THRESHOLDS = {
    "scale": Threshold(10.0, "spread or mean of the inputs: one is what initial weights expect"),
    "least_scale": Threshold(TOO_SMALL, "the same of inputs that are too small to be seen"),
    "points": Threshold(100, "points without learning after which labels are doubted"),
    "examples": Threshold(3200, "examples that must have been seen by then: small batches teach "
                          "little in a step"),
    "recurrent_points": Threshold(400, "the same for recurrent networks, whose first plateau "
                                  "is often long"),
    "blind": Threshold(0.95, "held-back loss by that of guessing: never below it, nothing that "
                       "was learned holds for other data"),
    "blind_gap": Threshold(0.94, "training loss by held-back loss: below, it learns by heart"),
    "blind_values": Threshold(3, "held-back values that must say so"),
    "blind_points": Threshold(50, "points, where held-back values say so"),
    "blind_fall": Threshold(0.7, "share by which the training loss fell, where held-back values "
                            "say so: labels can be learned by heart"),
    "flat": Threshold(0.02, "share by which the held-back loss fell since its first value: less, "
                      "and the training loss need not prove that it stands"),
    "fall": Threshold(0.08, "share by which the loss fell: less is no learning"),
    "pace": Threshold(0.05, "fall in shares of the start per 100 steps that must be ruled out"),
    "explained": Threshold(0.12, "share of a regression's targets that its outputs explain: "
                           "healthy runs have 0.7 after twenty steps"),
    "slowest": Threshold(3e-4, "median update by weight: below, the steps are to blame"),
    "fastest": Threshold(0.1, "median update by weight: above, the steps are to blame"),
    "jumps": Threshold(3, "jumps of a sawtooth"),
    **LEAP,
    "stay": Threshold(12, "points for which a loss must stay out after a leap"),
    "level": Threshold(0.5, "the loss out there by its start"),
    "usual": Threshold(3.0, "largest update before the leap by the usual one: more, and the step "
                       "is to blame"),
    "skew": Threshold(0.85, "skewness of the steps of the loss: rare jumps up, many steps down; "
                      "half as much where the jumps come at a period"),
}  # fmt: skip


@diagnosis(needs=("loss",), window=20, thresholds=THRESHOLDS)
def data(history: History, policy: Policy) -> Iterator[RunFinding]:
    """Find inputs that are not scaled, an order that is sorted, labels that teach nothing."""
    limit = Limits("data", policy, THRESHOLDS)
    seen = sight(history)
    found = _unscaled(seen, limit) or _swelled(seen) or _sorted(seen, limit)
    yield from found or _changed(seen, limit) or _labels(seen, limit)


def _unscaled(seen: Sight, limit: Limits) -> list[RunFinding]:
    given: Any = seen.history.fact("input")
    spread = input_size(seen)
    told = broke(seen.loss) or rose(seen.loss, 1.5) or stuck(seen.loss, 30)
    told = told or stood(seen.loss, 30) or rests(seen.loss, 60) or crawls(seen.loss, 150)
    if told is None or spread is None or limit["least_scale"] < spread < limit["scale"]:
        return []
    targets = target_size(seen)
    large = targets is not None and targets >= limit["scale"]
    return [
        finding(
            "data",
            "critical" if told.kind in ("broken", "above") else "warning",
            f"the inputs have a spread or mean of {spread:.3g}"
            + (f", and the targets lie about {targets:.3g} off" if large else "")
            + f"; {told.said}",
            {"input_scale": spread, "scale_threshold": limit["scale"], "harm": told.said,
             "target_scale": targets if large else None,
             **{key: given[key] for key in ("mean", "std", "features_std_max") if key in given}},
            since=int(seen.steps[0]),
            cause="initial weights are made for inputs of about zero mean and unit spread",
            advice=["standardise the inputs", "scale regression targets likewise"],
            signs=[max(above(spread, limit["scale"]), below(spread, limit["least_scale"]))],
            fix=Fix("scale_inputs", {"targets": True} if large else {}),
        )
    ]  # fmt: skip


def _swelled(seen: Sight) -> list[RunFinding]:
    """Find inputs that are many times as large from some step on."""
    found = swell(seen)
    if found is None or not found.lasts:
        return []
    told = broke(seen.loss) or rose(seen.loss, 1.5)
    return [
        finding(
            "data",
            "critical" if told else "warning",
            f"since step {found.step} the inputs are {found.times:.3g} times as large as before"
            + (f"; {told.said}" if told else ""),
            {"times": found.times, **({"harm": told.said} if told else {})},
            since=found.step,
            cause="other data, or data that is scaled otherwise, comes in from that step on",
            advice=[f"compare a batch from before step {found.step} with one from after it",
                    "standardise all inputs by the same numbers"],
            signs=[above(found.times, 5.0)],
            fix=Fix("scale_inputs"),
        )
    ]  # fmt: skip


def _sorted(seen: Sight, limit: Limits) -> list[RunFinding]:
    found = sawtooth(seen.loss)
    if found is None or found.jumps < limit["jumps"]:
        return []
    if found.skewness < limit["skew"] / (2 if found.is_regular else 1):
        return []
    return [
        finding(
            "data",
            "critical",
            f"the loss is a sawtooth: it falls, and jumped up again {found.jumps} times, "
            f"about every {found.period:.3g} steps",
            {"jumps": found.jumps, "jumps_threshold": limit["jumps"], "skewness": found.skewness,
             "skew_threshold": limit["skew"], "memory": found.memory, "period": found.period},
            since=found.since,
            cause="the examples come in sorted order: each stretch of one class is learned by "
            "forgetting the one before",
            advice=["shuffle the examples (shuffle=True in the loader)"],
            signs=[above(found.skewness, limit["skew"] / 2)],
            fix=Fix("shuffle"),
        )
    ]  # fmt: skip


def _changed(seen: Sight, limit: Limits) -> list[RunFinding]:
    """Find a loss that leapt where no step was large, and stays out: what comes in is new to it.

    One bad batch leaves the loss as it was. What explodes goes on growing. Weights that a large
    step threw away had that step before the leap. Units that died let no gradient through.
    """
    loss = seen.loss
    found = leap(loss, limit) if loss.start > 0 else None
    if found is None or not stays_out(loss, found.at, int(limit["stay"]), limit["level"]):
        return []
    grows = float(np.median(loss.values[found.at :][-4:])) > 2 * float(loss.values[found.at])
    size, _, _ = update_before(seen, found.step)
    gradients = seen.layers.recent(seen.layers.gradient, 8)
    if grows or size is None or size > limit["usual"] or gradients is None:
        return []
    if not (gradients[seen.layers.trained] > 0).all():
        return []
    return [
        finding(
            "data",
            "warning",
            f"the loss leapt at step {found.step} to {found.height:.3g} times the highest before "
            f"and stays out, and no step before it was larger than usual",
            {"height_by_highest": found.height, "rise_threshold": limit["rise"],
             "deviations": found.deviations, "deviations_threshold": limit["deviations"],
             "update_by_usual": size, "usual_threshold": limit["usual"],
             "points_out": limit["stay"]},
            since=found.step,
            cause="what the model is given has changed at that step: other inputs, another "
            "scale, labels that no longer belong to them, or a loss that is made otherwise",
            advice=[f"compare a batch from before step {found.step} with one from after it",
                    "check what the loop or the loader changes there"],
            signs=[above(found.deviations, limit["deviations"])],
            fix=Fix("check_labels"),
        )
    ]  # fmt: skip


def _labels(seen: Sight, limit: Limits) -> list[RunFinding]:
    loss, held_back = seen.loss, held_back_loss(seen.history)
    blind, flat = is_blind(held_back, loss, limit), is_flat(held_back, limit)
    most = limit["blind_fall" if blind else "fall"]
    pace = _healthy_pace(seen, limit)
    if pace is None or seen.is_warming_up or seen.is_waking:
        return []
    told = stuck(loss, _least(seen, limit, blind or flat), most) if loss.fall < most else None
    fastest = _fastest_fall(loss)
    falls = not (blind or flat) and (fastest is None or fastest > limit["pace"])
    if falls or (held_back is not None and held_back.n >= 3 and held_back.fall > limit["fall"]):
        told = None
    told = told or explains_nothing(seen, _least(seen, limit, True), limit["explained"])
    if told is None:
        return []
    return [
        finding(
            "data",
            "warning",
            f"steps are of a usual size ({pace:.1g} of the weights) and gradients reach every "
            f"layer, yet nothing is learned: {told.said}",
            {"loss_fall": loss.fall, "fall_threshold": most, "update_by_weight": pace,
             "points": loss.n, "fastest_fall_a_100_steps": fastest, "pace_threshold": limit["pace"],
             "validation_fall": None if held_back is None else held_back.fall,
             "chance": loss.chance, "never_below_chance": blind},
            since=told.since,
            cause="the labels do not depend on the inputs: shuffled apart, joined by a wrong key, "
            "plain noise, or paired with every example by a loss that broadcasts",
            advice=["look at some examples with their labels, as the model gets them",
                    "check that outputs and targets have one shape: a column and a row broadcast",
                    "check that inputs and labels are shuffled together"],
            signs=[below(max(loss.fall, 0.0), most)],
            fix=Fix("check_labels"),
        )
    ]  # fmt: skip


def _least(seen: Sight, limit: Limits, blind: bool) -> int:
    """Say how many points must pass before labels are doubted."""
    if is_recurrent(seen.history):
        return int(limit["recurrent_points"])
    points = int(limit["blind_points" if blind else "points"])
    return max(points, limit["examples"] // seen.batch) if seen.batch else points


def _healthy_pace(seen: Sight, limit: Limits) -> float | None:
    """Give the usual update by weight where steps and gradients are sound in every layer."""
    typical, gradients = seen.layers.typical_update, seen.layers.recent(seen.layers.gradient)
    if typical is None or gradients is None or not np.isfinite(typical).any():
        return None
    pace = float(np.nanmedian(typical))
    pulls = gradients[np.isfinite(gradients) & seen.layers.trained]
    reached = len(pulls) and pulls.min() >= 1e-3 * pulls.max()
    return pace if reached and limit["slowest"] <= pace <= limit["fastest"] else None


def _fastest_fall(loss: Losses) -> float | None:
    """Give the fastest fall that the noise allows, in shares of the start per 100 steps."""
    from ..stats.trend import theil_sen

    half = loss.n // 2
    slope = theil_sen(loss.steps[half:].astype(float), loss.values[half:] / loss.size)
    return None if slope is None or slope.low is None else -100 * slope.low
