"""Is there something in the model, or in how it was trained, that should not be there?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from difflens.core.policy import Threshold
from difflens.core.records import Delta
from difflens.measure.extremes import Extremes
from difflens.measure.histogram import Histogram
from difflens.measure.norms import Norms
from difflens.models.anatomy.roles import is_parameter

from ..answer import Answer, Question
from ..diff import Diff
from ..evidence.records import Evidence
from ..methods.anomalies.anomaly import Anomaly, Detection, band, worst
from ..methods.anomalies.peers import moved_unlike_peers
from ..methods.anomalies.sizes import spectral_spike, weight_collapse, weight_explosion
from ..methods.anomalies.training import gradient_explosion, gradient_vanishing, spikes
from ..methods.anomalies.values import (
    distribution_shift,
    dtype_saturation,
    isolated_extreme_value,
    nan_inf,
)
from . import analysis

if TYPE_CHECKING:
    from numpy.typing import NDArray


def dead_units(asked: Question) -> Detection:
    """Rows or columns that are newly all zero; one with a bias that is not zero still speaks."""
    found: list[Anomaly] = []
    tested = 0
    for delta, norms in asked.diff.measured(Norms):
        if not _is_weight(delta):
            continue
        tested += 1
        if not (norms.newly_zero_rows or norms.newly_zero_columns):
            continue
        rows, columns = _dead(asked.diff, delta)
        share = max(rows / norms.rows, columns / norms.columns)
        severity = band(share, asked.answer["dead_steps"])
        if severity:
            text = f"{rows} of {norms.rows} rows and {columns} of {norms.columns} columns died"
            numbers = {"rows": float(rows), "columns": float(columns), "share": share}
            found.append(Anomaly("dead_units", delta.name, text, numbers, severity))
    return Detection("dead_units", tested, tuple(found))


def duplicated_rows(asked: Question) -> Detection:
    """Rows that are newly the same numbers as another one."""
    found: list[Anomaly] = []
    tested = 0
    for delta, norms in asked.diff.measured(Norms):
        if not _is_weight(delta) or norms.columns < asked.answer["least_columns"]:
            continue
        tested += 1
        if norms.newly_duplicate_rows:
            text = f"{norms.newly_duplicate_rows} of {norms.rows} rows became copies of others"
            numbers = {"newly_duplicate_rows": float(norms.newly_duplicate_rows)}
            found.append(Anomaly("duplicated_rows", delta.name, text, numbers, "low"))
    return Detection("duplicated_rows", tested, tuple(found))


def _is_weight(delta: Delta) -> bool:
    left, right = delta.pair.left, delta.pair.right
    return bool(left and right and is_parameter(delta.name, left.dtype, right.dtype))


def _dead(diff: Diff, delta: Delta) -> tuple[int, int]:
    """Count rows and columns that became zero and whose bias, where there is one, is zero too."""
    if delta.pair.left is None or delta.pair.right is None:
        return 0, 0
    before = _zeros(diff.values("left", delta.pair.left.name, delta.pair))
    after = _zeros(diff.values("right", delta.pair.right.name, delta.pair))
    dead = [now & ~was for was, now in zip(before, after, strict=True)]
    silent = _silent(diff, delta.pair.right.name)
    for at, units in enumerate(dead):
        if silent is not None and silent.shape == units.shape:
            dead[at] = units & silent
            break  # a square matrix gives its bias to the rows
    return int(dead[0].sum()), int(dead[1].sum())


def _zeros(values: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    import numpy as np

    rows, columns = values.matrix_shape
    row_zero, column_zero = np.ones(rows, bool), np.ones(columns, bool)
    start = 0
    for block in values.rows():
        used = block != 0
        row_zero[start : start + len(block)] = ~used.any(axis=1)
        column_zero &= ~used.any(axis=0)
        start += len(block)
    return row_zero, column_zero


def _silent(diff: Diff, weight: str) -> NDArray[Any] | None:
    """Say where the bias beside a weight is zero; None if there is none."""
    import numpy as np

    stem, dot, last = weight.rpartition(".")
    bias = f"{stem}{dot}bias"
    there = any(pair.right and pair.right.name == bias for pair in diff.pairs)
    if last != "weight" or not there:
        return None
    return np.asarray(diff.values("right", bias).array() == 0).ravel()


_NAME = "loss_spike"


def loss_spike(asked: Question) -> Detection:
    """A logged loss that is not finite, or far above the median of its neighbours."""
    log = asked.evidence.log or asked.evidence.right.log
    names = sorted(log.columns.keys() | log.nonfinite.keys()) if log else []
    losses = [name for name in names if "loss" in name.lower()]
    if log is None or not losses:
        why = "no loss was logged"
        return Detection(_NAME, needs="--log with a column called loss", why=why)
    found = []
    for name in losses:
        broken = log.nonfinite.get(name, ())
        if broken:
            text = f"{len(broken)} values are not finite, the first at step {broken[0]:g}"
            numbers: dict[str, float | None] = {"steps": float(len(broken)), "first": broken[0]}
            found.append(Anomaly(_NAME, name, text, numbers, "high"))
        points = log.columns.get(name, ())
        high = spikes(points, asked.answer["loss_z"], asked.answer["loss_rise"])
        if high:
            top = max(high, key=lambda each: each.ratio)
            text = f"{len(high)} spikes, the largest {top.ratio:.3g} times its neighbours"
            numbers = {
                "spikes": float(len(high)),
                "ratio": top.ratio,
                "robust_z": top.z,
                "step": top.step,
            }
            found.append(Anomaly(_NAME, name, f"{text} at step {top.step:g}", numbers, "high"))
    return Detection(_NAME, len(losses), tuple(found))


_OF_WEIGHTS = (
    nan_inf,
    dtype_saturation,
    isolated_extreme_value,
    weight_explosion,
    weight_collapse,
    dead_units,
    duplicated_rows,
    distribution_shift,
    spectral_spike,
    moved_unlike_peers,
)
_OF_TRAINING = (gradient_explosion, gradient_vanishing, loss_spike)
_SHOWN = 50  # names of what is affected that are listed


@analysis(
    measures=(Extremes, Histogram, Norms),
    thresholds={
        "extreme_p": Threshold(
            0.01, "chance that the largest of all values of a tensor is so large"
        ),
        "extreme_ratio": Threshold(
            1e3, "times the 99.99 % quantile that an extreme value is at least"
        ),
        "extreme_count": Threshold(8, "extreme values up to which they are isolated; at most 8"),
        "ratio_steps": Threshold(
            [2.0, 5.0, 10.0, 100.0], "growth of the rms that is low, medium, high, critical"
        ),
        "robust_z": Threshold(3.5, "robust z within the role above which a growth stands out"),
        "least_group": Threshold(8, "tensors of a role below which the growth alone decides"),
        "dead_steps": Threshold([0.01, 0.1, 0.5], "part of dead units that is low, medium, high"),
        "least_columns": Threshold(8, "columns below which equal rows may be chance"),
        "shift": Threshold(0.1, "W1 over the deviation of left above which a distribution shifted"),
        "shift_medium": Threshold(0.5, "the same for a severity of medium instead of low"),
        "shift_values": Threshold(1024, "values below which the shift of a distribution is chance"),
        "spike_ratio": Threshold(3.0, "growth of the largest singular value of a spike"),
        "spike_alpha": Threshold(0.05, "chance that noise has a singular value above the edge"),
        "spike_bulk": Threshold(0.1, "distance from Marchenko-Pastur up to which there is a bulk"),
        "lost_cosine": Threshold(0.5, "cosine with its left values below which a matrix lost them"),
        "peer_ratio": Threshold(
            5.0, "times the change of its peers that a lost or shifted matrix moved"
        ),
        "gradient_z": Threshold(6.0, "robust z of a jump in the logarithm of a gradient norm"),
        "gradient_steps": Threshold(
            [10.0, 100.0, 1000.0], "lasting growth of a gradient norm: medium, high, critical"
        ),
        "gradient_window": Threshold(100, "points before a jump whose median it is held against"),
        "vanishing_ratio": Threshold(
            1e-3, "part of its role's median below which ‖g‖/‖w‖ vanished"
        ),
        "vanishing_share": Threshold(0.8, "part of the steps in which it must be so small"),
        "vanishing_zeros": Threshold(0.99, "part of exact zeros above which a gradient vanished"),
        "loss_z": Threshold(6.0, "robust z above its neighbours of a spike of the loss"),
        "loss_rise": Threshold(0.05, "rise above its neighbours, relative, of a spike of the loss"),
    },
    fields={
        "type": "",
        "severity": "the policy's steps",
        "affected": "tensors, layers or columns with a finding",
        "detectors": "how much each looked at",
    },
)
def anomaly_detection(diff: Diff, evidence: Evidence, answer: Answer) -> None:
    """What should not be there: NaN, saturation, flipped bits, dead units, spikes, explosions."""
    asked = Question(diff, evidence, answer)
    ran = [*_weights(asked), *(detect(asked) for detect in _OF_TRAINING)]
    if not any(each.has_run for each in ran):
        answer.lack_rest(
            needs="tensor values, --log or --gradients",
            why="nothing was read",
            status="not_enough_information" if diff.pairs else "not_applicable",
        )
        return
    _say(answer, diff, ran)
    answer.seeded(0)


def _weights(asked: Question) -> list[Detection]:
    """Run what looks at weights, or say why it does not."""
    if asked.diff.has_values and asked.diff.deltas:
        return [detect(asked) for detect in _OF_WEIGHTS]
    why = "only headers were read" if asked.diff.pairs else "neither model holds a tensor"
    return [Detection(each.__name__, needs="tensor values", why=why) for each in _OF_WEIGHTS]


def _say(answer: Answer, diff: Diff, ran: list[Detection]) -> None:
    found = worst(anomaly for each in ran for anomaly in each.found)
    names = list(dict.fromkeys(each.where for each in found))
    run = [each for each in ran if each.has_run]
    looked = f"{len(run)} of {len(ran)} detectors ran"
    answer.say("type", found[0].kind if found else "none", basis=f"the most severe; {looked}")
    answer.say("severity", found[0].severity if found else "none")
    answer.say("affected", {"count": len(names), "names": names[:_SHOWN]}, uncertainty="exact")
    answer.say("detectors", [each.to_dict() for each in ran])
    answer.assume("tensors with the same bytes on both sides are not looked at")
    subjects = {delta.name for delta in diff.deltas}
    for each in found:
        subject = each.where if each.where in subjects else ""
        text = f"{each.kind}: {each.text}" if subject else f"{each.kind}: {each.where}: {each.text}"
        answer.find(subject, text, each.numbers, each.severity)
