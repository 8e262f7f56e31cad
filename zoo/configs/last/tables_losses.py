"""The last part, written blind: losses that climb, swing, stall or jump on tables and signals."""

from __future__ import annotations

from functools import partial

from ..controls import Control
from ..faults import Fault
from ..healthy import healthy

_SEEDS = (90, 91, 92, 93, 94)
_CONTROL_SEEDS = (90, 91, 92, 93, 94, 95, 96)
_healthy = partial(healthy, _CONTROL_SEEDS)

FAULTS: tuple[Fault, ...] = (
    Fault(
        "KF1", "tables-multilabel",
        "linear decay made for 120 of 300 steps: from there the rate is negative and climbs",
        {"schedule": "overrun", "period": 120},
        "diverging", ("exploding",), onset=120, seeds=_SEEDS,
    ),
    Fault(
        "KF2", "signals-tall", "rate of SGD ten times too high in a tanh network: 1.5 for 0.15",
        {"lr": 1.5},
        "oscillating", ("lr-high",), seeds=_SEEDS,
    ),
    Fault(
        "KF4", "signals-glyphs", "rate of SGD a thousand times too low: 5e-5 for 5e-2",
        {"lr": 5e-5},
        "slow", ("lr-low",), seeds=_SEEDS,
    ),
    Fault(
        "KF5", "tables-selu",
        "decay by 0.9 meant for each epoch is stepped with each batch: no rate left by step 40",
        {"schedule": "exponential", "gamma": 0.9},
        "plateau", ("lr-low", "slow"), onset=40, seeds=_SEEDS,
    ),
    Fault(
        "KF6", "tables-ordinal", "sigmoid at the end of a network whose loss takes logits",
        {"ending": "sigmoid"},
        "loss-pairing", ("slow", "plateau"), seeds=_SEEDS,
    ),
    Fault(
        "KF7", "signals-beats", "from step 120 on data come from a part whose labels are shuffled",
        {"switch_step": 120, "switched": (("labels", "permuted"),)},
        "data", ("spike", "plateau"), onset=120, seeds=_SEEDS,
    ),
    Fault(
        "KF8", "signals-pitch", "targets of the batch of step 200 are in another unit, times 1000",
        {"bad_step": 200, "bad_kind": "wild-target"},
        "spike", ("data",), onset=200, seeds=_SEEDS,
    ),
)  # fmt: skip


CONTROLS: tuple[Control, ...] = (
    _healthy(
        "KFH1", "tables-residual", norm="layer", lr=3e-3, warmup=30, schedule="cosine", batch=48,
        width=48, steps=450,
    ),
    _healthy(
        "KFH2", "tables-quantiles", optimiser="nesterov", activation="gelu", clip=1.0,
        weight_decay=1e-4, width=64,
    ),
    _healthy("KFH3", "signals-motion", batch=16, accumulate=2, clip=1.0, steps=400),
    _healthy(
        "KFH4", "signals-texture", model="signals-depthwise", norm="batch", momentum=0.9, width=16,
        steps=450,
    ),
)  # fmt: skip
