"""Examples in sorted order, and examples that are others since a step."""

from __future__ import annotations

import numpy as np

from ...runs import Fix, RunFinding
from ..signs.leaps import leap, stays_out, update_before
from ..signs.limits import Limits
from ..signs.sawtooth import sawtooth
from ..signs.sight import Sight
from ..signs.wording import above, finding


def in_order(seen: Sight, limit: Limits) -> list[RunFinding]:
    """Find a loss that is a sawtooth, as sorted examples make it."""
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


def changed(seen: Sight, limit: Limits) -> list[RunFinding]:
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
