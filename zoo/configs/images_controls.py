"""Healthy controls of pictures and tables: other makes, habits and noise, nothing wrong."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from .controls import Control
from .images_parents import IMAGES_PARENTS

SEEDS = (20, 21, 22, 23)


def _control(name: str, parent_name: str, target: float | None = None, **changes: Any) -> Control:
    parent = IMAGES_PARENTS[parent_name]
    config = replace(parent.config, **changes)
    aim = parent.target if target is None else target
    return Control(name, replace(parent, config=config, target=aim), SEEDS)


IMAGES_CONTROLS: tuple[Control, ...] = (
    # Pictures: networks of several makes.
    _control("MC1", "vgg", lr=0.01, steps=300),
    _control("MC2", "bottleneck", depth=4, schedule="linear", warmup=20),
    _control("MC4", "squeezed", schedule="cosine", warmup=15),
    _control("MC5", "mixer", optimiser="adamw", lr=6e-3, weight_decay=0.05, clip=1.0, steps=320),
    # Tables, codes, several labels at once, few of one class.
    _control("MC8", "gated", batch=16, lr=2e-3, steps=350),
    _control("MC10", "dense", 0.80, dropout=0.3),
    _control("MC12", "entities", rates=(("tables.*", 3.0),), steps=450),
    _control("MC13", "tags", optimiser="adagrad", lr=0.05),
    _control("MC15", "seldom"),
    # Without labels.
    _control("MC17", "tied", optimiser="nesterov", lr=0.1, momentum=0.9),
    _control("MC18", "variational"),
    _control("MC19", "pairs", 3.0, schedule="cosine"),
    _control("MC20", "waves", optimiser="nadam", lr=1e-3, schedule="one-cycle"),
    # Regularisation, noise and augmentation that leave the label alone.
    _control("MC21", "squeezed", 0.85, augment="shift"),
    _control("MC23", "hard", grad_noise=0.01),
    # Batches: tiny, accumulated, all at once; averaged weights; a blank picture that is borne.
    _control("MC25", "hard", 0.80, batch=2, lr=0.015, steps=500),
    _control("MC26", "gated", accumulate=5, batch=10),
    _control("MC27", "seldom", imbalance=1.0, class_weights="", batch=1437, lr=0.1, steps=160),
    _control("MC28", "separable", 0.86, averaged=0.5),
    _control("MC29", "own-scale"),
    # What was learnt before, tuned, with slow or frozen layers, or to next to nothing.
    _control("MC30", "tuned-vgg"),
    _control("MC31", "tuned-vgg", 0.86, rates=(("hidden.*", 0.1),), new_head=True, lr=0.02),
    _control("MC32", "tuned-vgg", 0.82, new_head=True, frozen=4, lr=0.01),
    _control("MC33", "entities", lr=2e-2, steps=600, batch=128),
    # Rates that leap and come back.
    _control("MC34", "hard", schedule="restarts", period=50, lr=0.4),
    _control("MC35", "gated", 0.85, kick_step=120, kick_factor=30.0),
)
