"""The closing part on signals and pictures: faults that sit in layers, and healthy controls."""

from __future__ import annotations

from functools import partial

from ..controls import Control
from ..faults import Fault
from ..healthy import healthy

_SEEDS = (80, 81, 82, 83, 84)
_control = partial(healthy, (*_SEEDS, 85, 86))

FAULTS: tuple[Fault, ...] = (
    Fault(
        "JD1", "signals-tall", "weights start at a third of Xavier's in ten layers of tanh",
        {"init_scale": 0.33}, "vanishing", ("slow", "plateau"), seeds=_SEEDS,
    ),
    Fault(
        "JD2", "signals-grainy", "He's scale without the size of the kernel",
        {"init": "fan-channels"}, "exploding", ("nan", "dead", "lr-high"), seeds=_SEEDS,
    ),
    Fault(
        "JD3", "signals-texture", "the last block starts with a bias far below zero",
        {"odd_layer": 3, "odd_bias": -15.0}, "dead", ("vanishing", "plateau", "not-training"),
        layers=("hidden.3.*",), seeds=_SEEDS,
    ),
    Fault(
        "JD4", "signals-motion", "every parameter starts as one value",
        {"alike": "*"}, "symmetry", ("plateau",), seeds=_SEEDS,
    ),
    Fault(
        "JD5", "signals-pitch", "the memory was not given to the optimiser",
        {"left_out": "memory.*"}, "not-training", ("wiring", "plateau", "slow"),
        layers=("memory.*",), seeds=_SEEDS,
    ),
    Fault(
        "JD6", "signals-chirps", "gradients are never set to zero under Adam",
        {"zero_grad": "never"}, "wiring", ("exploding", "oscillating", "lr-high", "plateau"),
        seeds=_SEEDS,
    ),
    Fault(
        "JD7", "signals-wake", "the scale of a loss in half precision doubles without a check",
        {"half": True, "loss_scale": 1024.0, "scale_period": 15}, "nan", ("exploding",),
        onset="nonfinite", seeds=_SEEDS,
    ),
    Fault(
        "JD8", "signals-cells", "sixteen pictures to learn from",
        {"samples": 16}, "over-fit", (), onset="lowest-validation", seeds=_SEEDS,
    ),
)  # fmt: skip


CONTROLS: tuple[Control, ...] = (
    _control(
        "JDC1", "signals-chirps", activation="gelu", norm="batch", optimiser="adamw",
        weight_decay=0.01,
    ),
    _control("JDC2", "signals-motion", dropout=0.1, label_smoothing=0.1, lr=5e-3, steps=400),
    _control(
        "JDC3", "signals-glyphs", batch=16, accumulate=2, clip=1.0, warmup=20, schedule="cosine"
    ),
    _control("JDC4", "signals-cells", width=12, norm="group", optimiser="nadam", lr=2e-3),
)  # fmt: skip
