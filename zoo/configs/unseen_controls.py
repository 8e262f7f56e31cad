"""Healthy controls of the report: other sizes, optimisers, schedules and habits, nothing wrong."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from .controls import Control
from .unseen_parents import UNSEEN_PARENTS

SEEDS = (10, 11, 12, 13)


def _control(name: str, parent_name: str, target: float | None = None, **changes: Any) -> Control:
    parent = UNSEEN_PARENTS[parent_name]
    config = replace(parent.config, **changes)
    aim = parent.target if target is None else target
    return Control(name, replace(parent, config=config, target=aim), SEEDS)


UNSEEN_CONTROLS: tuple[Control, ...] = (
    # Plain networks of other widths, activations and optimisers.
    _control("C1", "wide"),
    _control("C3", "wide", depth=1, width=64, lr=0.1),
    _control("C4", "wide", 0.90, depth=5, width=28, lr=0.02, batch=32, steps=300),
    _control("C5", "wide-gelu"),
    _control("C6", "wide-gelu", width=48, depth=5, lr=2e-3),
    _control("C7", "elu-rmsprop"),
    _control("C9", "adagrad"),
    _control("C10", "adagrad", 0.92, activation="tanh", init="xavier", depth=2, lr=0.05),
    _control("C11", "spirals", lr=2e-3, steps=220),
    _control("C12", "moons", lr=8e-4, steps=220),
    _control("C13", "wine"),
    _control("C14", "wine", batch=142, lr=0.5, steps=200),
    _control("C15", "deep10"),
    _control("C17", "residual12", 0.90),
    _control("C18", "norm", batch=16, lr=0.03),
    # Regression, also with a robust loss, and autoencoders.
    _control("C19", "friedman"),
    _control("C20", "friedman-adamw"),
    _control("C21", "friedman", 0.12, loss="huber", lr=0.05),
    _control("C22", "coder"),
    _control("C23", "coder", 0.45, width=12, activation="elu", optimiser="adamw", lr=4e-3),
    # Images and sequences.
    _control("C24", "cnn4"),
    _control("C26", "cnn-group", activation="gelu", optimiser="nadam", lr=2e-3),
    _control("C27", "cnn-residual", 0.88),
    _control("C28", "lstm-rows"),
    _control("C30", "gru-waves"),
    _control("C31", "gru-waves", 0.18, model="lstm", width=16, lr=1e-2, length=16),
    _control("C32", "lstm-first"),
    _control("C33", "pre-norm"),
    _control("C35", "gpt-sgd"),
    # Schedules that move a lot, and rates that come back.
    _control("C37", "wide", momentum=0.0, lr=0.3, schedule="restarts", period=60),
    _control("C38", "elu-rmsprop", optimiser="adam", lr=4e-3, schedule="one-cycle"),
    _control("C39", "wide-gelu", schedule="linear", warmup=30, lr=2e-3),
    _control("C40", "decaying"),
    _control("C42", "cnn-sgd", 0.90, schedule="cyclic", lr=0.06),
    # Regularisation and noise that belong to the task.
    _control("C43", "wide-gelu", 0.92, label_smoothing=0.1),
    _control("C44", "elu-rmsprop", 0.92, jitter=0.4),
    _control("C45", "wide", 0.85, label_noise=0.15, momentum=0.0, weight_decay=1e-3, steps=200),
    _control("C46", "cnn4", 0.90, dropout=0.25, width=16),
    _control("C47", "wide", weight_decay=5e-3, clip=5.0),
    _control("C48", "wide", loss="brier", lr=0.1),
    # Batches: very small, accumulated, large.
    _control("C49", "batch3", 0.86),
    _control("C50", "accumulated"),
    _control("C51", "wide", 0.92, batch=512, lr=0.1, steps=200),
    # What was learnt before: tuned on, probed with frozen layers, or trained to almost nothing.
    _control("C53", "tuned"),
    _control("C54", "tuned", 0.90, new_head=True, frozen=3, lr=3e-3, steps=200),
    _control("C55", "tuned", optimiser="sgd", lr=1e-2, pretrained=200, steps=120),
    _control("C56", "wide", 0.90, frozen=1, lr=0.03),
    _control("C58", "lstm-first", lr=2e-2, steps=400),
    _control("C59", "few-gpt", 1.72),
)
