"""Series of norms whose fault is known, and a run that holds some of them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from difflens.training.gradients.analyzer import GradientAnalyzer
from difflens.training.history.writer import RunWriter
from difflens.training.records.gradients import LayerGradientDetails
from difflens.training.records.runs import Layer, RunInfo


def noise(n: int = 200, seed: int = 0, sigma: float = 0.2) -> np.ndarray:
    """Norms that scatter about 1, with no trend and no memory."""
    return np.exp(np.random.default_rng(seed).normal(size=n) * sigma)


def details(histories: Mapping[str, Any], **how: Any) -> dict[str, LayerGradientDetails]:
    return GradientAnalyzer(**how).analyze_gradients(histories).layer_details


def one(norms: Any, **how: Any) -> LayerGradientDetails:
    """Analyse a layer that stands alone."""
    return details({"layer": norms}, **how)["layer"]


def rules(found: LayerGradientDetails) -> set[str]:
    return {each.rule for each in found.health_metrics.risks}


def write_run(
    folder: Path, frames: int = 150, faults: Mapping[str, Any] | None = None, blocks: int = 3
) -> Path:
    """Write a run of small blocks; `faults` maps a layer to what its norms are multiplied by."""
    layers = tuple(
        Layer(f"blocks.{block}.{role}", (16, 16) if role == "weight" else (16,), "Linear", role,
              depth=block, dtype="F32")
        for block in range(blocks)
        for role in ("weight", "bias")
    )  # fmt: skip
    random = np.random.default_rng(7)
    writer = RunWriter(folder, RunInfo(name="demo", layers=layers))
    norms = np.exp(random.normal(size=(frames, len(layers))) * 0.2)
    for name, factor in (faults or {}).items():
        norms[:, [layer.name for layer in layers].index(name)] *= factor
    for step in range(frames):
        values = np.zeros((7, len(layers)), np.float32)
        values[0], values[5], values[6] = norms[step], 4.0, 0.01
        writer.append(10 * step, {"loss": 1 / (step + 1)}, values, wall_time=0.0,
                      monotonic_time=float(step))  # fmt: skip
    writer.close()
    return folder
