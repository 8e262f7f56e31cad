"""What is known of the gradients: recorded, logged, or left in the optimiser's moments."""

from __future__ import annotations

from math import fsum, isfinite, log, sqrt
from statistics import median
from typing import NamedTuple

from difflens.core.findings import Interval
from difflens.core.policy import Threshold
from difflens.stats.trend import mann_kendall, theil_sen

from ..answer import Answer, Status
from ..diff import Diff
from ..evidence.records import Evidence
from ..methods.changes.energy import pooled, weights
from ..methods.training.gradients import (
    Burst,
    Layer,
    Moments,
    adam_moments,
    bursts,
    depth_slope,
    global_norms,
    judged_layers,
    moment_layers,
    noise_to_signal,
    recorded_layers,
    vanishing,
)
from ..methods.training.logs import NORMS, Points, column
from ..methods.training.optimiser import by_order
from . import analysis

_OPTIONS = ("--gradients", "--optimizer-left/--optimizer-right", "--log with grad_norm")
_WHY = "weights alone do not tell gradients"


class _Known(NamedTuple):
    """What the evidence holds, the strongest first: recording, moments, log."""

    recorded: Points
    layers: list[Layer]
    left: list[Moments]
    right: list[Moments]
    logged: Points
    nonfinite: int
    how: str

    @property
    def series(self) -> Points:
        """Global norms over steps, recorded or logged."""
        return self.recorded or self.logged

    @property
    def sources(self) -> list[str]:
        """Name the evidence there is."""
        found = {
            "gradients": self.recorded,
            "optimizer": self.left or self.right,
            "log": self.logged,
        }
        return [name for name, each in found.items() if each]


@analysis(
    needs="tensors",
    thresholds={
        "explosion_z": Threshold(
            6.0, "robust z of a one-step rise of ln‖g‖ from which it is a burst"
        ),
        "explosion_ratio": Threshold(10.0, "times the trailing median a burst must hold"),
        "window": Threshold(100, "points of the trailing median"),
        "hold": Threshold(5, "points over which a burst must hold"),
        "vanishing_share": Threshold(
            1e-3, "part of its role's median ‖g‖/‖w‖ below which a layer is"
        ),
        "vanishing_steps": Threshold(0.8, "part of the steps in which it must be"),
        "least_layers": Threshold(3, "layers a role needs for its median to mean something"),
        "batch_size": Threshold(None, "examples behind one optimiser step, for the noise scale"),
        "sgd_lr": Threshold(None, "asserts plain SGD with this constant learning rate"),
        "sgd_steps": Threshold(None, "asserts so many steps of plain SGD between the models"),
    },
    fields={
        "flow_health": "",
        "norm": "",
        "ratio": "",
        "update_norm": "",
        "noise_scale": "",
        "noise_to_signal": "",
        "log_norm_slope": "",
        "depth_slope": "Theil-Sen slope of ln(‖g‖/‖w‖) against the number of the block",
        "mean_gradient_norm": "‖right - left‖ / (sgd_lr sgd_steps)",
        "basis": "the evidence there is",
        "per_layer": "",
    },
)
def gradient_analysis(diff: Diff, evidence: Evidence, answer: Answer) -> None:
    """Norms, bursts and vanishing of gradients, from a recording, a log or optimiser moments."""
    known = _gathered(answer, diff, evidence)
    if not known.sources:
        needs = evidence.lacking(*_OPTIONS, instead="gradient norms, or moments of Adam")
        asserted = _updates(answer, diff)
        status: Status = "partial" if asserted else "not_enough_information"
        answer.lack_rest(needs=needs, why=_WHY, status=status)
        return
    _health(answer, diff, known, evidence)
    _norms(answer, known)
    _layers(answer, known, evidence)
    _noise(answer, known, evidence)
    _slopes(answer, known, evidence)
    answer.say("basis", "+".join(known.sources))
    _updates(answer, diff)


def _gathered(answer: Answer, diff: Diff, evidence: Evidence) -> _Known:
    recording = evidence.gradients
    found = weights(diff) if diff.has_values else []
    left, right = (adam_moments(side.optimizer) for side in (evidence.left, evidence.right))
    logged = column(evidence.log, NORMS)
    layers: list[Layer] = []
    how = "no layer is known by name"
    if recording is not None:
        layers = recorded_layers(recording, found)
        how = f"median of {recording.source or 'the recording'}"
    elif evidence.right.optimizer is not None and right:
        names = by_order(diff, "right", evidence.right.optimizer)
        layers, how = moment_layers(right, names.names, found), f"sqrt(Σv) by name: {names.how}"
        answer.assume("moments are averages over about 1/(1 - β2) steps, taken for stationary")
    odd = sum(map(len, recording.nonfinite.values())) if recording else 0
    if evidence.log is not None and logged:
        odd += len(evidence.log.nonfinite.get(logged[0], ()))
    recorded = global_norms(recording) if recording else ()
    return _Known(recorded, layers, left, right, logged[1] if logged else (), odd, how)


def _health(answer: Answer, diff: Diff, known: _Known, evidence: Evidence) -> None:
    """Say the first fault found, and which were looked for."""
    looked, faults = ["non-finite norms"] if known.series else [], []
    limits = {
        "z": answer["explosion_z"],
        "ratio": answer["explosion_ratio"],
        "window": answer["window"],
        "hold": answer["hold"],
    }
    jumps = bursts(known.series, limits)
    if known.nonfinite:
        faults.append("non_finite")
        text = f"{known.nonfinite} recorded norms are NaN or infinite"
        answer.find("", text, {"points": float(known.nonfinite)}, "critical")
    if known.series:
        looked.append("explosion")
    if jumps:
        faults.append("exploding")
        _tell_burst(answer, max(jumps, key=lambda each: each.ratio))
    judged = judged_layers(known.layers, answer["least_layers"])
    if judged:
        looked.append(f"vanishing in {judged} layers")
    faded = vanishing(
        known.layers, answer["vanishing_share"], answer["vanishing_steps"], answer["least_layers"]
    )
    if faded:
        faults.append("vanishing")
        _tell_faded(answer, diff, faded)
    answer.either(
        "flow_health",
        (faults or ["no_fault_found"])[0] if looked else None,
        basis=f"looked for: {', '.join(looked)}" if looked else "",
        needs=evidence.lacking(
            "--gradients", "--log with grad_norm", instead="norms of layers by name"
        ),
        why="no series and no layer by name",
    )


def _tell_burst(answer: Answer, worst: Burst) -> None:
    numbers = {"ratio": worst.ratio, "z": worst.z if isfinite(worst.z) else None}
    text = f"the gradient norm rose {worst.ratio:.3g}-fold at step {worst.step:g} and stayed there"
    answer.find("", text, {**numbers, "step": worst.step}, "high")


def _tell_faded(answer: Answer, diff: Diff, faded: dict[str, float]) -> None:
    known = {delta.name for delta in diff.deltas}
    for name, part in sorted(faded.items(), key=lambda each: each[1]):
        text = f"‖g‖/‖w‖ of {name} is {part:.2g} of what layers of its role have"
        answer.find(name if name in known else "", text, {"part": part}, "medium")
    answer.assume("Adam rescales gradients: a small one is not by itself harmful under it")


def _norms(answer: Answer, known: _Known) -> None:
    """Return the norm now, and over the one before."""
    needs, why = "--optimizer-left", "there is no earlier norm to compare with"
    if known.series:
        norms = [norm for _, norm in known.series]
        quarter = max(1, len(norms) // 4)
        now, before = median(norms[-quarter:]), median(norms[:quarter])
        formula = f"median of the last {quarter} of {len(norms)} global norms"
        over = f"{formula}, over that of the first"
    else:
        side = known.right or known.left
        now = sqrt(fsum(each.first for each in side))
        before = sqrt(fsum(each.first for each in known.left)) if known.right else 0.0
        formula = "‖m‖, bias-corrected first moments of all parameters (smoothed gradient)"
        over = f"{formula}: right over left"
    sure = "none_available: one run"
    answer.say("norm", now, basis=formula, uncertainty=sure)
    answer.either(
        "ratio",
        now / before if before else None,
        basis=over,
        uncertainty=sure,
        needs=needs,
        why=why,
    )


def _layers(answer: Answer, known: _Known, evidence: Evidence) -> None:
    table = [each.to_dict() for each in known.layers]
    sure = "none_available: one run"
    answer.either(
        "per_layer",
        table or None,
        basis=known.how,
        uncertainty=sure,
        needs=evidence.lacking(
            "--gradients", "--optimizer-right", instead="parameters in a known order"
        ),
        why=known.how,
    )


def _noise(answer: Answer, known: _Known, evidence: Evidence) -> None:
    side = known.right or known.left
    ratio = noise_to_signal(side) if side else None
    size = answer["batch_size"]
    why = "noise dominates; not resolvable" if side else "it takes the moments of Adam"
    needs = evidence.lacking("--optimizer-right", instead="a larger batch, or moments of Adam")
    formula = "tr S / |G|² from ‖m‖² and Σv of Adam's moments"
    sure = "none_available: one snapshot; stationary over 1/(1 - β2) steps is assumed"
    answer.either("noise_to_signal", ratio, basis=formula, uncertainty=sure, needs=needs, why=why)
    if ratio is not None and size is None:
        needs, why = "batch_size in [gradient_analysis] of --policy", "the batch size is not known"
    answer.either(
        "noise_scale",
        None if ratio is None or size is None else ratio * size,
        basis=f"batch size x {formula} (McCandlish et al. 2018)",
        uncertainty=sure,
        needs=needs,
        why=why,
    )


def _slopes(answer: Answer, known: _Known, evidence: Evidence) -> None:
    points = [(step, log(norm)) for step, norm in known.series if norm > 0]
    steps, logs = [step for step, _ in points], [value for _, value in points]
    line = theil_sen(steps, logs) if len(points) > 1 else None
    test = mann_kendall(logs, steps) if line else None
    answer.either(
        "log_norm_slope",
        100 * line.value if line else None,
        basis=f"Theil-Sen slope of ln‖g‖ per 100 steps, Mann-Kendall p={test.p:.3g}"
        if test
        else "",
        uncertainty=_ends(line, 100.0),
        needs=evidence.lacking(
            "--gradients", "--log with grad_norm", instead="norms at more steps"
        ),
        why="it takes norms at two steps",
    )
    deep = depth_slope(known.layers)
    answer.either(
        "depth_slope",
        deep.value if deep else None,
        uncertainty=_ends(deep, 1.0),
        needs=evidence.lacking("--gradients", instead="layers in numbered blocks"),
        why="it takes layers in two numbered blocks, known by name",
    )


def _ends(line: object, scale: float) -> Interval | str | None:
    low, high, n = (getattr(line, name, None) for name in ("low", "high", "n"))
    if line is None:
        return None
    if low is None or high is None:
        return "none_available: fewer than 5 points"
    return Interval(scale * low, scale * high, 0.95, "Sen", n)


def _updates(answer: Answer, diff: Diff) -> bool:
    """Offer how far the weights moved; as a mean gradient only where plain SGD is asserted."""
    moved = pooled(weights(diff)).moved if diff.has_values else None
    over = "‖right - left‖ over matched float parameters"
    answer.either(
        "update_norm",
        moved,
        basis=over,
        uncertainty="exact",
        needs="tensor values",
        why="no finite norm is known",
    )
    rate, steps = answer["sgd_lr"], answer["sgd_steps"]
    asserted = bool(rate and steps and moved is not None)
    answer.either(
        "mean_gradient_norm",
        moved / (rate * steps) if asserted and moved else None,
        uncertainty="exact",
        needs="sgd_lr and sgd_steps in [gradient_analysis] of --policy",
        why="only plain SGD moves weights by -lr times the gradient",
    )
    if asserted:
        answer.assume(f"asserted: {steps:g} steps of plain SGD at {rate:g}, no momentum, no decay")
    return asserted
