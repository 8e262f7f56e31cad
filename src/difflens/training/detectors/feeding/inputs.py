"""Inputs that are all alike, not scaled, or of another size since a step."""

from __future__ import annotations

from typing import Any

from ...records.runs import Fix, RunFinding
from ..signs.adaptive import is_replaced_by_rate
from ..signs.degrees import NEARLY
from ..signs.harms import broke, crawls, rests, rose, stood, stuck
from ..signs.inputs import are_alike, input_size, swell, target_size
from ..signs.limits import Limits
from ..signs.nonfinite import broke_in_the_loss
from ..signs.sight import Sight
from ..signs.wording import above, below, finding

_HUGE = 1e3  # spread of inputs that may overflow by themselves


def alike(seen: Sight, limit: Limits) -> list[RunFinding]:
    """Find a batch all of whose examples are one and the same: nothing tells them apart."""
    told = stuck(seen.loss, int(limit["alike_points"])) if are_alike(seen) else None
    if told is None:
        return []
    return finding(
        "data",
        "critical",
        f"all examples of the first batch are alike; {told.said}",
        {"features_std_max": 0.0, "examples": seen.batch, "harm": told.said},
        since=int(seen.steps[0]),
        cause="every example has the same inputs: a column of constants, an image that was "
        "not read, or one example that is repeated",
        advice=["look at a batch as the model gets it", "check how inputs are read and scaled"],
        signs=[above(seen.loss.n, limit["alike_points"] / 2)],
        fix=Fix("check_labels"),
    )


def unscaled(seen: Sight, limit: Limits) -> list[RunFinding]:
    """Find inputs far larger or smaller than initial weights expect, where the loss suffers."""
    given: Any = seen.history.fact("input")
    spread = input_size(seen)
    told = broke(seen.loss) or rose(seen.loss, 1.5) or stuck(seen.loss, 30)
    told = told or stood(seen.loss, 30) or rests(seen.loss, 60)
    told = told or crawls(seen.loss, 150)
    if told is None or spread is None or limit["least_scale"] < spread < limit["scale"]:
        return []
    if told.kind == "broken" and broke_in_the_loss(seen.history):
        return []
    if told.kind == "crawls" and told.figure > NEARLY:
        return []
    if not seen.loss.n and spread < _HUGE:
        return []  # before any step, sound weights make no infinities of such inputs
    if is_replaced_by_rate(seen):
        return []  # one step makes weights anew, whatever the inputs are
    targets = target_size(seen)
    large = targets is not None and targets >= limit["scale"]
    return finding(
        "data",
        "critical" if told.kind in ("broken", "above") else "warning",
        f"the inputs have a spread or mean of {spread:.3g}"
        + (f", and the targets lie about {targets:.3g} off" if large else "")
        + f"; {told.said}",
        {
            "input_scale": spread,
            "scale_threshold": limit["scale"],
            "harm": told.said,
            "target_scale": targets if large else None,
            **{key: given[key] for key in ("mean", "std", "features_std_max") if key in given},
        },
        since=int(seen.steps[0]),
        cause="initial weights are made for inputs of about zero mean and unit spread",
        advice=["standardise the inputs", "scale regression targets likewise"],
        signs=[max(above(spread, limit["scale"]), below(spread, limit["least_scale"]))],
        fix=Fix("scale_inputs", {"targets": True} if large else {}),
    )


def far_targets(seen: Sight, limit: Limits) -> list[RunFinding]:
    """Find targets far larger than first outputs are, where the loss rests with the most of them.

    Outputs begin at about one, and weights that are made for that go a long way to hundreds.
    """
    targets = target_size(seen)
    told = stuck(seen.loss, 60) or rests(seen.loss, 100)
    if targets is None or told is None or targets < limit["scale"]:
        return []
    return finding(
        "data",
        "warning",
        f"the targets lie about {targets:.3g} off the first outputs; {told.said}",
        {"target_scale": targets, "scale_threshold": limit["scale"], "harm": told.said},
        since=int(seen.steps[0]),
        cause="targets in units of their own: outputs begin at about one, and have far to go",
        advice=["standardise the targets, and turn the answers back afterwards"],
        signs=[above(targets, limit["scale"] / 2)],
        fix=Fix("scale_targets"),
    )


def swelled(seen: Sight) -> list[RunFinding]:
    """Find inputs that are many times as large from some step on."""
    found = swell(seen)
    if found is None or not found.lasts:
        return []
    told = broke(seen.loss) or rose(seen.loss, 1.5)
    return finding(
        "data",
        "critical" if told else "warning",
        f"since step {found.step} the inputs are {found.times:.3g} times as large as before"
        + (f"; {told.said}" if told else ""),
        {"times": found.times, **({"harm": told.said} if told else {})},
        since=found.step,
        cause="other data, or data that is scaled otherwise, comes in from that step on",
        advice=[
            f"compare a batch from before step {found.step} with one from after it",
            "standardise all inputs by the same numbers",
        ],
        signs=[above(found.times, 5.0)],
        fix=Fix("scale_inputs"),
    )
