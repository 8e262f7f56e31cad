"""Losses that spiked, or were no number, in the log of a training run."""

from __future__ import annotations

from .anomaly import Anomaly, Case, Detection
from .series import spikes

_NAME = "loss_spike"


def loss_spike(case: Case) -> Detection:
    """A logged loss that is not finite, or far above the median of its neighbours."""
    log = case.evidence.log or case.evidence.right.log
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
        high = spikes(points, case.limits["loss_z"], case.limits["loss_rise"])
        if high:
            top = max(high, key=lambda each: each.ratio)
            text = f"{len(high)} spikes, the largest {top.ratio:.3g} times its neighbours"
            numbers = {"spikes": float(len(high)), "ratio": top.ratio, "robust_z": top.z,
                       "step": top.step}  # fmt: skip
            found.append(Anomaly(_NAME, name, f"{text} at step {top.step:g}", numbers, "high"))
    return Detection(_NAME, len(losses), tuple(found))
