"""A blind part on signals: faults that show in the course of the loss, and healthy controls."""

from __future__ import annotations

from functools import partial

from ..controls import Control
from ..faults import Fault
from ..healthy import healthy

_SEEDS = (80, 81, 82, 83, 84)
_CONTROL_SEEDS = (80, 81, 82, 83, 84, 85, 86)
_control = partial(healthy, _CONTROL_SEEDS)

FAULTS: tuple[Fault, ...] = (
    Fault(
        "JE1", "signals-pitch", "a linear decay made for half the steps goes on below zero",
        {"schedule": "overrun", "period": 150}, "diverging", ("exploding",), onset=150,
        seeds=_SEEDS,
    ),
    Fault(
        "JE2", "signals-tall", "batches of two at several times the rate",
        {"batch": 2, "lr": 0.7}, "oscillating", ("lr-high", "vanishing"), seeds=_SEEDS,
    ),
    Fault(
        "JE3", "signals-wake", "RMSprop with a rate that suits plain descent",
        {"optimiser": "rmsprop", "lr": 0.1}, "lr-high", ("oscillating", "vanishing"),
        seeds=_SEEDS,
    ),
    Fault(
        "JE4", "signals-chirps", "plain descent takes over Adam's rate",
        {"optimiser": "sgd"}, "lr-low", ("slow",), seeds=_SEEDS,
    ),
    Fault(
        "JE5", "signals-beats", "milestones of a tenth are counted in steps, not in epochs",
        {"schedule": "steps", "gamma": 0.1, "period": 10}, "plateau", ("lr-low", "slow"),
        onset=10, seeds=_SEEDS,
    ),
    Fault(
        "JE6", "signals-grainy", "a sigmoid at the end, though the targets go below zero",
        {"ending": "sigmoid"}, "loss-pairing", ("plateau",), seeds=_SEEDS,
    ),
    Fault(
        "JE7", "signals-texture", "pictures are turned at random where the label is a direction",
        {"augment": "turn"}, "data", ("plateau",), seeds=_SEEDS,
    ),
    Fault(
        "JE8", "signals-motion", "the rate is forty times as high for one step near the end",
        {"kick_step": 282, "kick_factor": 40.0}, "spike", onset=282, seeds=_SEEDS,
    ),
)  # fmt: skip


CONTROLS: tuple[Control, ...] = (
    _control(
        "JEC1", "signals-glyphs", optimiser="nesterov", lr=0.02, warmup=30, schedule="cosine",
        weight_decay=1e-4,
    ),
    _control(
        "JEC2", "signals-cells", optimiser="adamw", lr=6e-3, weight_decay=1e-2, norm="batch",
        accumulate=2,
    ),
    _control("JEC3", "signals-pitch", cell="gru", width=24, lr=6e-3, clip=1.0),
    _control(
        "JEC4", "signals-chirps", dropout=0.1, label_smoothing=0.05, batch=64, steps=400,
        schedule="one-cycle",
    ),
)  # fmt: skip
