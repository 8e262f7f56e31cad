"""Data that training cannot use: not scaled, in sorted order, or with labels that say nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from ..records import Policy, Threshold
from ..runs import VALIDATION_LOSSES, Fix, RunFinding
from . import diagnosis
from .signs.leaps import LEAP, leap, stays_out, update_before
from .signs.limits import Limits
from .signs.losses import Losses, broke, rose, stuck
from .signs.recurrence import RECURRENT
from .signs.sawtooth import sawtooth
from .signs.sight import Sight, sight
from .signs.wording import above, below, finding

if TYPE_CHECKING:
    from ..history.history import History

THRESHOLDS = {
    "scale": Threshold(20.0, "spread or mean of the inputs: one is what initial weights expect"),
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
    "fall": Threshold(0.08, "share by which the loss fell: less is no learning"),
    "pace": Threshold(0.05, "fall in shares of the start per 100 steps that must be ruled out"),
    "slowest": Threshold(3e-4, "median update by weight: below, the steps are to blame"),
    "fastest": Threshold(0.1, "median update by weight: above, the steps are to blame"),
    "jumps": Threshold(3, "jumps of a sawtooth"),
    **LEAP,
    "stay": Threshold(12, "points for which a loss must stay out after a leap"),
    "level": Threshold(0.5, "the loss out there by its start"),
    "usual": Threshold(3.0, "largest update before the leap by the usual one: more, and the step "
                       "is to blame"),
    "skew": Threshold(0.85, "skewness of the steps of the loss: rare jumps up, many steps down"),
}  # fmt: skip


@diagnosis(needs=("loss",), window=20, thresholds=THRESHOLDS)
def data(history: History, policy: Policy) -> Iterator[RunFinding]:
    """Find inputs that are not scaled, an order that is sorted, labels that teach nothing."""
    limit = Limits("data", policy, THRESHOLDS)
    seen = sight(history)
    found = _unscaled(seen, limit) or _sorted(seen, limit)
    yield from found or _changed(seen, limit) or _labels(seen, limit)


def _unscaled(seen: Sight, limit: Limits) -> list[RunFinding]:
    given: Any = seen.history.fact("input")
    if not isinstance(given, dict) or "float" not in str(given.get("dtype", "float")):
        return []
    spread = max(abs(float(given.get(key) or 0.0)) for key in ("features_std_max", "std", "mean"))
    told = broke(seen.loss) or rose(seen.loss, 1.5) or stuck(seen.loss, 30)
    if told is None or spread < limit["scale"]:
        return []
    targets = _target_size(seen)
    large = targets is not None and targets >= limit["scale"]
    return [
        finding(
            "data",
            "critical" if told.kind != "stuck" else "warning",
            f"the inputs have a spread or mean of {spread:.3g}"
            + (f", and the targets lie about {targets:.3g} off" if large else "")
            + f"; {told.said}",
            {"input_scale": spread, "scale_threshold": limit["scale"], "harm": told.said,
             "target_scale": targets if large else None,
             **{key: given[key] for key in ("mean", "std", "features_std_max") if key in given}},
            since=int(seen.steps[0]),
            cause="initial weights are made for inputs of about zero mean and unit spread",
            advice=["standardise the inputs", "scale regression targets likewise"],
            signs=[above(spread, limit["scale"])],
            fix=Fix("scale_inputs", {"targets": True} if large else {}),
        )
    ]  # fmt: skip


def _target_size(seen: Sight) -> float | None:
    """Give the size of the targets, where a squared error shows it; None where the outputs hide it.

    The first loss of a regression is the mean square of target less output. Where its root is far
    beyond the largest output, it is about that of the targets.
    """
    output: Any = seen.history.fact("output")
    if seen.loss.chance is not None or not isinstance(output, dict) or not seen.loss.n:
        return None
    ends = [
        abs(each) for key in ("min", "max") if isinstance(each := output.get(key), (int, float))
    ]
    size = max(float(seen.loss.values[0]), 0.0) ** 0.5
    return size if ends and size > 3 * max(ends) else None


def _sorted(seen: Sight, limit: Limits) -> list[RunFinding]:
    found = sawtooth(seen.loss)
    if found is None or found.jumps < limit["jumps"] or found.skewness < limit["skew"]:
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
    loss, held_back = seen.loss, _validation(seen)
    blind = _is_blind(held_back, loss, limit)
    most = limit["blind_fall" if blind else "fall"]
    told = stuck(loss, _least(seen, limit, blind), most)
    pace = _healthy_pace(seen, limit)
    if told is None or pace is None or loss.fall >= most or seen.is_warming_up or seen.is_waking:
        return []
    fastest = _fastest_fall(loss)
    falls = not blind and (fastest is None or fastest > limit["pace"])
    if falls or (held_back is not None and held_back.n >= 3 and held_back.fall > limit["fall"]):
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
            "or plain noise",
            advice=["look at some examples with their labels, as the model gets them",
                    "check that inputs and labels are shuffled together"],
            signs=[below(max(loss.fall, 0.0), most)],
            fix=Fix("check_labels"),
        )
    ]  # fmt: skip


def _least(seen: Sight, limit: Limits, blind: bool) -> int:
    """Say how many points must pass before labels are doubted."""
    if any(layer.kind in RECURRENT for layer in seen.history.info.layers):
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


def _is_blind(held_back: Losses | None, loss: Losses, limit: Limits) -> bool:
    """Was held-back data never told better than by guessing, and does it not get better?

    A slow start looks the same for a while: there held-back and training loss fall together. So
    the best held-back value must lie back, or the training loss must have left it behind.
    """
    if held_back is None or held_back.n < limit["blind_values"] or loss.chance is None:
        return False
    if not 0.9 * loss.chance <= loss.start <= 10 * loss.chance:
        return False
    values = held_back.values
    if values.min() <= limit["blind"] * loss.chance:
        return False
    rests = int(np.argmin(values)) <= len(values) - 3
    # Of the same time: between two held-back values a run that learns gets far.
    then = loss.values[loss.steps <= held_back.steps[-1]][-10:]
    return rests or float(np.median(then)) < limit["blind_gap"] * float(values[-1])


def _fastest_fall(loss: Losses) -> float | None:
    """Give the fastest fall that the noise allows, in shares of the start per 100 steps."""
    from ..stats.trend import theil_sen

    half = loss.n // 2
    slope = theil_sen(loss.steps[half:].astype(float), loss.values[half:] / loss.size)
    return None if slope is None or slope.low is None else -100 * slope.low


def _validation(seen: Sight) -> Losses | None:
    found = seen.history.course.first_scalar(VALIDATION_LOSSES)
    return None if found is None else Losses.of(seen.history, found[0])
