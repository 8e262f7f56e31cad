"""Trains a small network in NumPy for the demo, with a fault in it, and records the run."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

DEPTH, WIDTH, INPUTS, STEPS = 10, 24, 8, 300
_RATE = 0.5
_BEGUN = 1_700_000_000.0  # a demo is the same whenever it is made


def make_run(folder: Path) -> Path:
    """Train ten sigmoid layers, through which next to no gradient reaches the first."""
    from ..history.writer import RunWriter
    from ..runs import Layer, RunInfo

    sizes = [INPUTS, *[WIDTH] * (DEPTH - 1), 1]
    layers = tuple(
        Layer(
            f"layers.{i}.weight",
            (sizes[i], sizes[i + 1]),
            "Linear",
            "weight",
            i,
            activation="Sigmoid" if i + 1 < DEPTH else "",
            optimised=True,
        )
        for i in range(DEPTH)
    )
    info = RunInfo(
        "sigmoid-mlp",
        layers=layers,
        scalars=("loss", "lr", "optimizer_steps", "grad_kept"),
        framework="numpy",
        optimizer={"name": "SGD", "lr": _RATE},
        facts={"activations": ["Sigmoid"], "final_module": "Linear"},
    )
    path = folder / "run"
    with RunWriter(path, info, overwrite=True) as writer:
        for step, (loss, block) in enumerate(_trained(sizes)):
            scalars = {"loss": loss, "lr": _RATE, "optimizer_steps": 1.0, "grad_kept": 0.0}
            moment = _BEGUN + step / 10
            writer.append(step, scalars, block, wall_time=moment, monotonic_time=step / 10)
    return path


def _trained(sizes: list[int]) -> Iterator[tuple[float, Any]]:
    """Yield the loss and the fields of every layer, step after step."""
    import numpy as np

    rng = np.random.default_rng(7)
    weights = [
        rng.normal(0, (2 / (rows + columns)) ** 0.5, (rows, columns))
        for rows, columns in pairwise(sizes)
    ]
    for _ in range(STEPS):
        inputs = rng.normal(size=(32, sizes[0]))
        targets = (inputs[:, :2].sum(axis=1, keepdims=True) > 0).astype(float)
        loss, gradients = _gradients(weights, inputs, targets)
        fields = [
            (
                np.linalg.norm(gradient),
                np.abs(gradient).mean(),
                np.abs(gradient).max(),
                0,
                (gradient == 0).sum(),
                np.linalg.norm(weight),
                _RATE * np.linalg.norm(gradient),
            )
            for gradient, weight in zip(gradients, weights, strict=True)
        ]
        for i, gradient in enumerate(gradients):
            weights[i] = weights[i] - _RATE * gradient
        yield loss, np.array(fields, np.float32).T


def _gradients(weights: list[Any], inputs: Any, targets: Any) -> tuple[float, list[Any]]:
    """Give the mean cross entropy of a batch, and its gradient by every weight."""
    import numpy as np

    signals = [inputs]
    for weight in weights[:-1]:
        signals.append(1 / (1 + np.exp(-signals[-1] @ weight)))
    chances = 1 / (1 + np.exp(-signals[-1] @ weights[-1]))
    loss = -np.log(np.where(targets > 0, chances, 1 - chances)).mean()
    error = (chances - targets) / len(inputs)
    gradients = []
    for i in reversed(range(len(weights))):
        gradients.append(signals[i].T @ error)
        error = (error @ weights[i].T) * signals[i] * (1 - signals[i])
    return float(loss), gradients[::-1]
