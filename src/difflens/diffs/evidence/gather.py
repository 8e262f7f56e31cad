"""The story of the evidence: what was named, what lies beside, what further checkpoints show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any, Unpack

from difflens.core.addresses import Location
from difflens.core.errors import EvidenceError
from difflens.models.opening import Model

from .desk import Desk, Named, shared_log
from .records import Evidence, Side, Trajectory


def gather(
    left: Model,
    right: Model,
    *,
    checkpoints: Sequence[str | Location] = (),
    base: str | Location | None = None,
    discovery: bool = True,
    sample: str | Path | None = None,
    model_code: str | None = None,
    measure_hardware: bool = False,
    threads: int | None = None,
    limits: Mapping[str, int] | None = None,
    **named: Unpack[Named],
) -> Evidence:
    """Read what is handed in beside two models, and what lies beside them where that is clear.

    `named` are files: `config_left`, `metrics_left`, `evals_left`, `latency_left`, `tokens_left`,
    `optimizer_left`, `licence_left`, the same for `right`, and `history`, `log`, `gradients`,
    `runs`. `checkpoints` are further ones of the same run, between LEFT and RIGHT; `base` is the
    common ancestor; `sample` and `model_code` run both models in a process of their own;
    `measure_hardware` times this machine for a moment.
    `Evidence.given` lists everything that was used.
    """
    desk = Desk(named, limits, discovery=discovery)
    before, after = desk.side("left", left, right), desk.side("right", right, left)
    run = desk.named("log")
    how: dict[str, Any] = {"threads": threads, "limits": limits}
    return Evidence(
        left=before,
        right=after,
        history=desk.named("history") or (),
        log=run.log if run else shared_log(before.log, after.log),
        gradients=desk.named("gradients"),
        runs=desk.named("runs") or (),
        trajectory=_trajectory(desk, (left, *checkpoints, right), (before, after), how),
        base=_base(desk, base, (left, right), how),
        activations=_activations(desk, (left, right), sample, model_code, limits),
        hardware=_hardware(desk) if measure_hardware else None,
        given=desk.given,
    )


def _trajectory(
    desk: Desk, series: Sequence[Any], ends: tuple[Side, Side], how: dict[str, Any]
) -> Trajectory | None:
    """Compare every two checkpoints of the series; two alone are no series."""
    if len(series) < 3:
        return None
    from ..story import diff
    from .trajectory import trajectory

    steps: list[int | None] = []
    for at, path in enumerate(series[1:-1], 1):
        steps.append(desk.step(f"step_of_checkpoint_{at}", path))
        desk.note(f"checkpoint_{at}", path)
    # Identical tensors are scanned as well: their norms count.
    pairs = {
        (first, second): diff(series[first], series[second], always=True, **how)
        for first, second in combinations(range(len(series)), 2)
    }
    points = [pairs[0, 1].left.path, *(pairs[0, at].right.path for at in range(1, len(series)))]
    return trajectory(points, [ends[0].step, *steps, ends[1].step], pairs)


def _base(
    desk: Desk, base: str | Location | None, sides: tuple[Model, Model], how: dict[str, Any]
) -> tuple[Any, Any] | None:
    """Compare the common ancestor with both; nothing but headers is read until somebody looks."""
    if base is None:
        return None
    from ..story import diff

    desk.note("base", base)
    return diff(base, sides[0], **how), diff(base, sides[1], **how)


def _hardware(desk: Desk) -> dict[str, float]:
    """Measure how fast this machine reads and multiplies."""
    from difflens.measure.bandwidth import hardware

    desk.given["hardware"] = "this machine (measured)"
    return hardware()


def _activations(
    desk: Desk,
    sides: tuple[Model, Model],
    sample: str | Path | None,
    model_code: str | None,
    limits: Mapping[str, int] | None,
) -> Any:
    """Run both models on the sample, where sample and code were named."""
    if sample is None and model_code is None:
        return None
    if sample is None or model_code is None:
        missing = "--sample" if sample is None else "--model-code"
        raise EvidenceError(missing, "it is missing: a sample and the code that runs go together")
    from .sample import check_sample

    check_sample(sample, model_code, limits)
    from .activations import activations

    desk.note("sample", sample)
    desk.note("model_code", model_code)
    return activations(*sides, sample, model_code)
