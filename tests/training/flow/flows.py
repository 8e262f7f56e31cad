"""Flows that tests share: recorded by an animator, and as the history of a run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from difflens.training.flow.animator import GradientFlowAnimator
from difflens.training.history.building import Builder
from difflens.training.history.frame import MISSING, Frame
from difflens.training.history.history import History
from difflens.training.records.runs import LAYER_FIELDS, Layer, RunInfo


def recorded(*steps: Mapping[str, Any], first: int = 0, **settings: Any) -> GradientFlowAnimator:
    """Record steps one after the other."""
    animator = GradientFlowAnimator(**settings)
    for place, gradients in enumerate(steps):
        animator.record_step(first + place, gradients)
    return animator


def history(
    norms: Any, *, layers: tuple[Layer, ...] | None = None, memory: int | None = None, **fields: Any
) -> History:
    """Make a history out of norms of (steps, layers); other fields follow from them."""
    norms = np.asarray(norms, np.float64)
    named = layers or tuple(Layer(f"layer{i}", shape=(100,)) for i in range(norms.shape[1]))
    builder = Builder(RunInfo(name="made", layers=named), **({"memory": memory} if memory else {}))
    counts = np.array([layer.count or 1 for layer in named])
    for step, row in enumerate(norms):
        known = {
            "grad_l2": row,
            "grad_mean_abs": row / np.sqrt(counts),
            "grad_max_abs": row / 2,
            "grad_nonfinite": np.where(np.isnan(row), 1.0, 0.0),
            "grad_zeros": np.zeros(len(row)),
            "weight_l2": np.full(len(row), 10.0),
            "update_l2": row / 1000,
        }
        known |= {name: np.asarray(values)[step] for name, values in fields.items()}
        block = np.full((len(LAYER_FIELDS), len(row)), MISSING, np.float32)
        for place, name in enumerate(LAYER_FIELDS):
            if known[name] is not None:
                there = ~np.isinf(row) if name.startswith("grad_") else slice(None)
                block[place, there] = np.asarray(known[name])[there]
        builder.add(Frame(step, step, 0.0, 0.0, np.zeros(4), block))
    return builder.history()
