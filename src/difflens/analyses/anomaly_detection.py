"""Is there something in the model, or in how it was trained, that should not be there?"""

from __future__ import annotations

from ..answers import Answer
from ..diffs import Diff
from ..evidences import Evidence
from ..measure.extremes import Extremes
from ..measure.histogram import Histogram
from ..measure.norms import Norms
from ..measure.scan import Scan
from ..records import Envelope, Policy, Threshold
from . import analysis
from .anomalies.anomaly import Case, Detection, worst
from .anomalies.distributions import distribution_shift
from .anomalies.gradients import gradient_explosion, gradient_vanishing
from .anomalies.losses import loss_spike
from .anomalies.sizes import weight_collapse, weight_explosion
from .anomalies.spectra import spectral_spike
from .anomalies.units import dead_units, duplicated_rows
from .anomalies.values import dtype_saturation, isolated_extreme_value, nan_inf

NAME = "anomaly_detection"
THRESHOLDS = {
    "extreme_p": Threshold(0.01, "chance that the largest of all values of a tensor is so large"),
    "extreme_ratio": Threshold(1e3, "times the 99.99 % quantile that an extreme value is at least"),
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
    "gradient_z": Threshold(6.0, "robust z of a jump in the logarithm of a gradient norm"),
    "gradient_steps": Threshold(
        [10.0, 100.0, 1000.0], "lasting growth of a gradient norm: medium, high, critical"
    ),
    "gradient_window": Threshold(100, "points before a jump whose median it is held against"),
    "vanishing_ratio": Threshold(1e-3, "part of its role's median below which ‖g‖/‖w‖ vanished"),
    "vanishing_share": Threshold(0.8, "part of the steps in which it must be so small"),
    "vanishing_zeros": Threshold(0.99, "part of exact zeros above which a gradient vanished"),
    "loss_z": Threshold(6.0, "robust z above its neighbours of a spike of the loss"),
    "loss_rise": Threshold(0.05, "rise above its neighbours, relative, of a spike of the loss"),
}
_OF_WEIGHTS = (
    nan_inf, dtype_saturation, isolated_extreme_value, weight_explosion, weight_collapse,
    dead_units, duplicated_rows, distribution_shift, spectral_spike,
)  # fmt: skip
_OF_TRAINING = (gradient_explosion, gradient_vanishing, loss_spike)
_SHOWN = 50  # names of what is affected that are listed


@analysis(needs=[Scan, Histogram, Norms, Extremes], thresholds=THRESHOLDS)
def anomaly_detection(diff: Diff, evidence: Evidence, policy: Policy) -> Envelope:
    """What should not be there: NaN, saturation, flipped bits, dead units, spikes, explosions."""
    answer = Answer(NAME, policy, THRESHOLDS)
    case = Case(diff, evidence, {name: answer[name] for name in THRESHOLDS})
    ran = [*_weights(case), *(detect(case) for detect in _OF_TRAINING)]
    if not any(each.has_run for each in ran):
        for field in ("type", "severity", "affected", "detectors"):
            answer.lack(field, needs="tensor values, --log or --gradients", why="nothing was read")
        return answer.envelope("not_enough_information" if diff.pairs else "not_applicable")
    _say(answer, diff, ran)
    answer.seeded(0)
    return answer.envelope()


def _weights(case: Case) -> list[Detection]:
    """Run what looks at weights, or say why it does not."""
    if case.diff.has_values and case.diff.deltas:
        return [detect(case) for detect in _OF_WEIGHTS]
    why = "only headers were read" if case.diff.pairs else "neither model holds a tensor"
    return [Detection(each.__name__, needs="tensor values", why=why) for each in _OF_WEIGHTS]


def _say(answer: Answer, diff: Diff, ran: list[Detection]) -> None:
    found = worst(anomaly for each in ran for anomaly in each.found)
    names = list(dict.fromkeys(each.where for each in found))
    run = [each for each in ran if each.has_run]
    looked = f"{len(run)} of {len(ran)} detectors ran"
    answer.say("type", found[0].kind if found else "none", basis=f"the most severe; {looked}")
    answer.say("severity", found[0].severity if found else "none", basis="the policy's steps")
    answer.say(
        "affected",
        {"count": len(names), "names": names[:_SHOWN]},
        basis="tensors, layers or columns with a finding",
        uncertainty="exact",
    )
    answer.say("detectors", [each.told() for each in ran], basis="how much each looked at")
    answer.assume("tensors with the same bytes on both sides are not looked at")
    subjects = {delta.name for delta in diff.deltas}
    for each in found:
        subject = each.where if each.where in subjects else ""
        text = f"{each.kind}: {each.text}" if subject else f"{each.kind}: {each.where}: {each.text}"
        answer.find(subject, text, each.numbers, each.severity)
