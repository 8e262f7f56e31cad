"""Healthy controls of the blind part on signals and pictures: none may raise an alarm."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from .controls import Control
from .signals_parents import SIGNALS_PARENTS

_SEEDS = (60, 61, 62, 63, 64, 65, 66)


def _control(name: str, parent_name: str, target: float | None = None, **changes: Any) -> Control:
    parent = SIGNALS_PARENTS[f"signals-{parent_name}"]
    config = replace(parent.config, **changes)
    target = parent.target if target is None else target
    return Control(name, replace(parent, config=config, target=target), seeds=_SEEDS)


SIGNALS_CONTROLS: tuple[Control, ...] = (
    # A schedule of one cycle, weights pulled to zero a little.
    _control("BC1", "chirps", optimiser="adamw", weight_decay=0.02, schedule="one-cycle", lr=6e-3),
    # Group norm in the place of none, a smooth activation, small batches.
    _control("BC2", "chirps", norm="group", activation="silu", batch=12),
    # Nesterov's momentum with rates that fall in steps, as pictures are mostly trained.
    _control("BC3", "glyphs", optimiser="nesterov", schedule="steps", gamma=0.3, period=100),
    # Batch norm, dropout and rates that fall to zero; trained on until done.
    _control("BC4", "beats", dropout=0.1, schedule="cosine", steps=450),
    # An LSTM behind the convolution, gradients clipped, the mean of its states read.
    _control("BC5", "motion", cell="lstm", memory_bias=1.0, clip=1.0, reads="mean", target=0.87,
             steps=360),
    # Fine-tuning: blocks that learnt elsewhere are frozen, the head is fresh.
    _control("BC6", "texture", pretrained=200, new_head=True, frozen=2, optimiser="adam", lr=2e-3),
    # Small batches whose gradients are gathered.
    _control("BC7", "texture", accumulate=4, batch=8, zero_grad="after-step"),
    # A U with batch norm and warm restarts.
    _control("BC8", "cells", norm="batch", schedule="restarts", period=60),
    # Fresh grain on every batch.
    _control("BC9", "grainy", jitter=0.1, target=0.23),
    # A deeper painter with shortcuts and RMSprop.
    _control("BC10", "grainy", depth=5, residual=True, norm="batch", optimiser="rmsprop",
             lr=3e-3, momentum=0.0),
    # A wider memory with clipped gradients, trained long past what it needs.
    _control("BC11", "wake", width=32, lr=1.5e-3, clip=1.0, steps=450),
    # A loss that bears outliers, rates that fall like a root.
    _control("BC12", "pitch", loss="huber", schedule="inverse-root", period=100),
    # Depthwise convolutions with batch norm, warm-up, labels smoothed.
    _control("BC13", "texture", model="signals-depthwise", width=20, norm="batch",
             optimiser="adam", lr=5e-3, warmup=30, label_smoothing=0.05),
    # Labels of which a tenth is wrong, which is what the task offers.
    _control("BC14", "texture", target=0.85, label_noise=0.1, momentum=0.9, lr=0.02),
)  # fmt: skip
