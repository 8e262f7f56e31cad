"""Points of a training run that stand out: jumps of gradients, spikes of a loss, vanishing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from difflens.core.findings import Severity
from difflens.models.anatomy.roles import role
from difflens.stats.explosion import parts_of_peers, rises, robust_scores, share_below
from difflens.stats.samples import robust_deviation

from ...answer import Question
from ...diff import Diff
from ...evidence.records import Evidence, Optimizer
from .anomaly import Anomaly, Detection, band

if TYPE_CHECKING:
    from numpy.typing import NDArray


Points = Sequence[tuple[float, float]]
LEAST = 20  # points below which no spread is told
_SUSTAINED = 5  # points over which a jump must last
_NEAR = 5  # points on each side that a spike is held against


class Jump(NamedTuple):
    """Where a series jumped: the step, how many deviations, and by what factor it stayed up."""

    step: float
    z: float | None
    ratio: float


def largest_jump(points: Points, z_least: float, ratio_least: float, window: int) -> Jump | None:
    """Find the largest jump that stays: z of a step in ln x, and ratio to the trailing median."""
    import numpy as np

    kept = np.array([point for point in points if point[1] > 0], float).reshape(-1, 2)
    if len(kept) < LEAST:
        return None
    scores = robust_scores(np.diff(np.log(kept[:, 1])))
    jumps = [
        Jump(float(kept[each.place, 0]), _finite(each.z), each.after / each.before)
        for each in rises(kept[:, 1], scores, z=z_least, window=window, hold=_SUSTAINED)
        if each.after / each.before >= ratio_least
    ]
    return max(jumps, key=lambda each: each.ratio, default=None)


def spikes(points: Points, z_least: float, rise_least: float) -> list[Jump]:
    """Find points far above the median of their neighbours, in units of the noise between steps.

    Neighbours are as many on each side, so that a curve which only falls is its own median.
    Positive values are compared by their logarithm. Noise: the robust deviation of the steps
    / sqrt 2.
    """
    import numpy as np

    raw = np.array([value for _, value in points], float)
    if len(raw) < LEAST:
        return []
    values = np.log(raw) if raw.min() > 0 else raw
    places = np.arange(2, len(values) - 2)
    reach = np.minimum(np.minimum(places, len(values) - 1 - places), _NEAR)
    windows = [slice(at - w, at + w + 1) for at, w in zip(places, reach, strict=True)]
    rises = values[places] - np.array([np.median(values[each]) for each in windows])
    noise = _spread(np.diff(values)) / np.sqrt(2)
    levels = np.array([abs(np.median(raw[each])) for each in windows])
    heights = raw[places] / np.maximum(levels, np.finfo(float).tiny)
    return [
        Jump(points[int(at)][0], float(rise / noise) if noise else None, float(height))
        for at, rise, height in zip(places, rises, heights, strict=True)
        if rise > z_least * noise and height - 1 >= rise_least
    ]


def _spread(values: NDArray[Any]) -> float:
    """The robust deviation: MAD / 0.6745."""
    return float(robust_deviation(values))


def _finite(value: Any) -> float | None:
    import numpy as np

    return float(value) if np.isfinite(value) else None


_EXPLOSION, _VANISHING = "gradient_explosion", "gradient_vanishing"
_NAMES = ("grad_norm", "gradient_norm")
_LEVELS: tuple[Severity, ...] = ("medium", "high", "critical")
_LEAST_LAYERS = 3  # of one role, below which a median of them is no measure


def gradient_explosion(asked: Question) -> Detection:
    """A norm that is not finite, or that jumps and stays ten times above its trailing median."""
    limits, found, tested = asked.answer, [], 0
    for name, points, broken in _series(asked.evidence):
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
    for name, values in _moments(asked.evidence.right.optimizer):
        tested += 1
        count = sum(int((~_is_finite(piece)).sum()) for piece in values.pieces())
        if count:
            text = f"{count} moments are not finite"
            found.append(Anomaly(_EXPLOSION, name, text, {"values": float(count)}, "critical"))
    needs = "--gradients, --optimizer-right, or --log with grad_norm"
    return _detection(_EXPLOSION, tested, found, needs)


def gradient_vanishing(asked: Question) -> Detection:
    """‖g‖/‖w‖ of a layer below a thousandth of its role's median, or moments that are all zero.

    Adam rescales gradients: a small one is not by itself harm.
    """
    tested, found = _small_layers(asked)
    for name, values in _moments(asked.evidence.right.optimizer):
        tested += 1
        zeros = sum(int((piece == 0).sum()) for piece in values.pieces())
        share = zeros / values.info.count if values.info.count else 0.0
        if share > asked.answer["vanishing_zeros"]:
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


def _small_layers(asked: Question) -> tuple[int, list[Anomaly]]:
    recorded = asked.evidence.gradients
    if recorded is None or not asked.diff.has_values:
        return 0, []
    groups: dict[str, dict[str, dict[float, float]]] = defaultdict(dict)
    for name, points in sorted(recorded.norms.items()):
        size = _norm(asked.diff, name)
        if size:
            groups[role(f"{name}.")][name] = {step: norm / size for step, norm in points}
    told = [
        (len(group), list(_vanished(asked, group)))
        for group in groups.values()
        if len(group) >= _LEAST_LAYERS
    ]
    return sum(count for count, _ in told), [each for _, found in told for each in found]


def _vanished(asked: Question, group: dict[str, dict[float, float]]) -> Iterator[Anomaly]:
    import numpy as np

    steps = sorted(set.intersection(*(set(points) for points in group.values())))
    if not steps:
        return
    ratios = np.array([[points[step] for step in steps] for points in group.values()])
    shares = share_below(parts_of_peers(ratios), asked.answer["vanishing_ratio"])
    for name, share, own in zip(group, shares, ratios, strict=True):
        if share >= asked.answer["vanishing_share"]:
            text = f"‖g‖/‖w‖ is below {asked.answer['vanishing_ratio']:g} of its role's median"
            numbers = {"share_of_steps": float(share), "median_ratio": float(np.median(own))}
            yield Anomaly(
                _VANISHING, name, f"{text} in {share:.0%} of the steps", numbers, "medium"
            )


def _norm(diff: Diff, layer: str) -> float:
    """Return ‖w‖ of the right tensors of a layer; 0 if no tensor is called so."""
    names = [
        pair.right.name
        for pair in diff.pairs
        if pair.right and (pair.right.name == layer or pair.right.name.startswith(f"{layer}."))
    ]
    squares = sum(
        float((piece.astype("f8") ** 2).sum())
        for name in names
        for piece in diff.values("right", name).pieces()
    )
    return float(squares**0.5)
