"""Structures, blind: faults that show in the course of the loss, and healthy controls."""

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
        "JM1", "structures-heads", "the loss scale doubles every 40 steps and is never divided out",
        {"scale_period": 40, "unscaled": False}, "diverging",
        ("exploding", "lr-high", "nan", "wiring"), onset=40, seeds=_SEEDS,
    ),
    Fault(
        "JM2", "structures-siamese", "momentum of 0.99 with a rate made for none",
        {"momentum": 0.99, "lr": 0.5}, "oscillating",
        ("lr-high", "diverging", "exploding"), seeds=_SEEDS,
    ),
    Fault(
        "JM3", "structures-graph", "the rate of Adadelta was kept for Adam",
        {"lr": 1.0}, "lr-high", ("dead", "exploding", "plateau"), seeds=_SEEDS,
    ),
    Fault(
        "JM4", "structures-field", "a warm-up made for a run of 20000 steps",
        {"warmup": 20000}, "lr-low", ("slow",), seeds=_SEEDS,
    ),
    Fault(
        "JM5", "structures-pendulum", "a decay meant for epochs is applied at each step",
        {"schedule": "exponential", "gamma": 0.9}, "plateau", ("lr-low", "slow"), seeds=_SEEDS,
    ),
    Fault(
        "JM7", "structures-denoiser", "signals are mirrored at random, their targets are not",
        {"augment": "mirror"}, "data", ("plateau",), seeds=_SEEDS,
    ),
    Fault(
        "JM8", "structures-set", "the counts of one late batch are in another unit",
        {"bad_step": 260, "bad_kind": "wild-target"}, "spike", ("data",), onset=260, seeds=_SEEDS,
    ),
)  # fmt: skip


CONTROLS: tuple[Control, ...] = (
    _control(
        "JMC1", "structures-graph", label_smoothing=0.05, optimiser="adamw", weight_decay=0.01,
        schedule="cosine", warmup=20, steps=350,
    ),
    _control("JMC2", "structures-set", optimiser="nadam", clip=2.0, batch=96),
    _control(
        "JMC3", "structures-denoiser", optimiser="nesterov", lr=0.08, schedule="linear", width=64
    ),
    _control("JMC4", "structures-field", activation="gelu", schedule="one-cycle", lr=2e-3),
)  # fmt: skip
