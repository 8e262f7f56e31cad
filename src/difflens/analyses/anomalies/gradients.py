"""Gradients that exploded or vanished, told by recorded gradients alone, never by weights."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ...diffs import Diff
from ...evidences import Evidence, Optimizer
from ...records import Severity
from ..anatomy.roles import role
from .anomaly import Anomaly, Case, Detection, band
from .series import Points, largest_jump

if TYPE_CHECKING:
    from numpy.typing import NDArray

_EXPLOSION, _VANISHING = "gradient_explosion", "gradient_vanishing"
_NAMES = ("grad_norm", "gradient_norm")
_LEVELS: tuple[Severity, ...] = ("medium", "high", "critical")
_LEAST_LAYERS = 3  # of one role, below which a median of them is no measure


def gradient_explosion(case: Case) -> Detection:
    """A norm that is not finite, or that jumps and stays ten times above its trailing median."""
    limits, found, tested = case.limits, [], 0
    for name, points, broken in _series(case.evidence):
        tested += 1
        if broken:
            numbers: dict[str, float | None] = {"steps": float(len(broken)), "first": broken[0]}
            text = f"{len(broken)} norms are not finite, the first at step {broken[0]:g}"
            found.append(Anomaly(_EXPLOSION, name, text, numbers, "critical"))
            continue
        steps = limits["gradient_steps"]
        jump = largest_jump(points, limits["gradient_z"], steps[0], limits["gradient_window"])
        severity = band(jump.ratio, steps, _LEVELS) if jump else None
        if jump and severity:
            text = f"the norm rose {jump.ratio:.3g} times at step {jump.step:g} and stayed up"
            numbers = {"ratio": jump.ratio, "robust_z": jump.z, "step": jump.step}
            found.append(Anomaly(_EXPLOSION, name, text, numbers, severity))
    for name, values in _moments(case.evidence.right.optimizer):
        tested += 1
        count = sum(int((~_is_finite(piece)).sum()) for piece in values.pieces())
        if count:
            text = f"{count} moments are not finite"
            found.append(Anomaly(_EXPLOSION, name, text, {"values": float(count)}, "critical"))
    needs = "--gradients, --optimizer-right, or --log with grad_norm"
    return _detection(_EXPLOSION, tested, found, needs)


def gradient_vanishing(case: Case) -> Detection:
    """‖g‖/‖w‖ of a layer below a thousandth of its role's median, or moments that are all zero.

    Adam rescales gradients: a small one is not by itself harm.
    """
    tested, found = _small_layers(case)
    for name, values in _moments(case.evidence.right.optimizer):
        tested += 1
        zeros = sum(int((piece == 0).sum()) for piece in values.pieces())
        share = zeros / values.info.count if values.info.count else 0.0
        if share > case.limits["vanishing_zeros"]:
            text = f"{share:.2%} of the squared gradients are exactly zero"
            found.append(Anomaly(_VANISHING, name, text, {"zeros": share}, "medium"))
    return _detection(_VANISHING, tested, found, "--gradients or --optimizer-right")


def _detection(name: str, tested: int, found: list[Anomaly], needs: str) -> Detection:
    if tested:
        return Detection(name, tested, tuple(found))
    return Detection(name, needs=needs, why="no gradient was recorded, and weights tell of none")


def _series(evidence: Evidence) -> Iterator[tuple[str, Points, tuple[float, ...]]]:
    recorded = evidence.gradients
    if recorded:
        for name in sorted(recorded.norms.keys() | recorded.nonfinite.keys()):
            yield name, recorded.norms.get(name, ()), recorded.nonfinite.get(name, ())
    log = evidence.log or evidence.right.log
    if log:
        for name in sorted(log.columns.keys() | log.nonfinite.keys()):
            if any(word in name.lower() for word in _NAMES):
                yield name, log.columns.get(name, ()), log.nonfinite.get(name, ())


def _moments(optimizer: Optimizer | None) -> Iterator[tuple[str, Any]]:
    """Yield the squared gradients that Adam kept; which tensor each is of is not known here."""
    for index, kept in sorted((optimizer.moments if optimizer else {}).items()):
        if hasattr(kept.get("exp_avg_sq"), "pieces"):
            yield f"parameter {index} of the optimiser", kept["exp_avg_sq"]


def _is_finite(piece: NDArray[Any]) -> NDArray[Any]:
    import numpy as np

    return np.asarray(np.isfinite(piece))


def _small_layers(case: Case) -> tuple[int, list[Anomaly]]:
    recorded = case.evidence.gradients
    if recorded is None or not case.diff.has_values:
        return 0, []
    groups: dict[str, dict[str, dict[float, float]]] = defaultdict(dict)
    for name, points in sorted(recorded.norms.items()):
        size = _norm(case.diff, name)
        if size:
            groups[role(f"{name}.")][name] = {step: norm / size for step, norm in points}
    told = [(len(group), list(_vanished(case, group))) for group in groups.values()
            if len(group) >= _LEAST_LAYERS]  # fmt: skip
    return sum(count for count, _ in told), [each for _, found in told for each in found]


def _vanished(case: Case, group: dict[str, dict[float, float]]) -> Iterator[Anomaly]:
    import numpy as np

    steps = sorted(set.intersection(*(set(points) for points in group.values())))
    if not steps:
        return
    ratios = np.array([[points[step] for step in steps] for points in group.values()])
    small = ratios < case.limits["vanishing_ratio"] * np.median(ratios, axis=0)
    for name, share, own in zip(group, small.mean(axis=1), ratios, strict=True):
        if share >= case.limits["vanishing_share"]:
            text = f"‖g‖/‖w‖ is below {case.limits['vanishing_ratio']:g} of its role's median"
            numbers = {"share_of_steps": float(share), "median_ratio": float(np.median(own))}
            yield Anomaly(
                _VANISHING, name, f"{text} in {share:.0%} of the steps", numbers, "medium"
            )


def _norm(diff: Diff, layer: str) -> float:
    """Give ‖w‖ of the right tensors of a layer; 0 where no tensor is called so."""
    names = [pair.right.name for pair in diff.pairs if pair.right
             and (pair.right.name == layer or pair.right.name.startswith(f"{layer}."))]  # fmt: skip
    squares = sum(float((piece.astype("f8") ** 2).sum()) for name in names
                  for piece in diff.values("right", name).pieces())  # fmt: skip
    return float(squares**0.5)
