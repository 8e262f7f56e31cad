"""Closing part on tables: faults that show in the loss, and healthy controls beside them."""

from __future__ import annotations

from functools import partial

from ..controls import Control
from ..faults import Fault
from ..healthy import healthy

_SEEDS = (80, 81, 82, 83, 84)
_control = partial(healthy, (*_SEEDS, 85, 86))

FAULTS: tuple[Fault, ...] = (
    Fault(
        "JB1", "tables-ordinal", "the penalty on squared weights is subtracted, not added",
        {"penalty": -0.03}, "diverging", ("exploding",), seeds=_SEEDS,
    ),
    Fault(
        "JB2", "tables-selu", "batches of two with ten times the rate",
        {"batch": 2, "lr": 0.01}, "oscillating", ("lr-high",), seeds=_SEEDS,
    ),
    Fault(
        "JB3", "tables-residual", "AdamW with a rate of one",
        {"lr": 1.0}, "lr-high", ("dead", "oscillating", "plateau"), seeds=_SEEDS,
    ),
    Fault(
        "JB4", "tables-codes", "Adam's epsilon is one: gradients are far below it",
        {"epsilon": 1.0}, "slow", ("lr-low", "plateau"), seeds=_SEEDS,
    ),
    Fault(
        "JB5", "tables-quantiles", "a decay that was meant for epochs is applied at each step",
        {"schedule": "exponential", "gamma": 0.93}, "plateau", ("lr-low", "slow"), seeds=_SEEDS,
    ),
    Fault(
        "JB6", "tables-multilabel", "a sigmoid before a loss that has one of its own",
        {"ending": "sigmoid"}, "loss-pairing", ("plateau", "slow"), seeds=_SEEDS,
    ),
    Fault(
        "JB7", "tables-cross", "the first column was left in a unit of its own",
        {"odd_column": 40.0}, "data", ("exploding", "slow"), seeds=_SEEDS,
    ),
    Fault(
        "JB8", "tables-diabetes", "the targets of one batch are in another unit",
        {"bad_step": 370, "bad_kind": "wild-target"}, "spike", ("data",), onset=370, seeds=_SEEDS,
    ),
)  # fmt: skip


CONTROLS: tuple[Control, ...] = (
    _control("JBC1", "tables-tokens", lr=5e-3, warmup=30, schedule="cosine", clip=1.0),
    _control("JBC2", "tables-ordinal", momentum=0.9, lr=0.05, accumulate=2),
    _control(
        "JBC3", "tables-multilabel", optimiser="adamw", momentum=0.0, weight_decay=0.01,
        norm="layer", lr=5e-3,
    ),
    _control("JBC4", "tables-selu", depth=6, batch=64, lr=2e-3, steps=400),
)  # fmt: skip
