"""The last part, written blind: layers and loops gone wrong on tables and signals."""

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
        "KE1", "tables-multilabel",
        "all layers of a low-rank tanh network start from a normal with a deviation of 0.02",
        {"init": "normal", "init_scale": 0.02},
        "vanishing", ("slow", "plateau"), seeds=_SEEDS,
    ),
    Fault(
        "KE3", "tables-quantiles",
        "the bias of the second ReLU layer starts at -20",
        {"odd_layer": 1, "odd_bias": -20.0},
        "dead", ("vanishing",), layers=("hidden.1.*",), seeds=_SEEDS,
    ),
    Fault(
        "KE4", "signals-chirps",
        "all weights of the convolutions and of the output start as one constant for each layer",
        {"init": "constant"},
        "symmetry", ("slow", "plateau"), seeds=_SEEDS,
    ),
    Fault(
        "KE6", "signals-pitch",
        "the gradients are never set to zero",
        {"zero_grad": "never"},
        "wiring", ("exploding", "lr-high", "oscillating"), seeds=_SEEDS,
    ),
    Fault(
        "KE7", "signals-motion",
        "half precision with a loss scale that doubles every 8 steps and nothing that looks for"
        " infinite gradients",
        {"half": True, "scale_period": 8},
        "nan", onset="nonfinite", seeds=_SEEDS,
    ),
    Fault(
        "KE8", "tables-diabetes",
        "a wide network on the first 80 patients alone, without its dropout",
        {"samples": 80, "dropout": 0.0},
        "over-fit", onset="lowest-validation", seeds=_SEEDS,
    ),
)  # fmt: skip


CONTROLS: tuple[Control, ...] = (
    _healthy(
        "KEH1", "tables-selu", depth=6, width=40, optimiser="adamw", weight_decay=0.01, lr=2e-3,
        schedule="one-cycle",
    ),
    _healthy(
        "KEH2", "tables-residual", depth=4, width=48, lr=3e-3, batch=48, warmup=30,
        schedule="cosine", steps=400,
    ),
    _healthy("KEH3", "signals-wake", width=32, optimiser="nadam", batch=48, clip=1.0),
    _healthy(
        "KEH4", "signals-glyphs", depth=3, width=16, norm="batch", activation="silu",
        optimiser="nesterov", lr=0.03, batch=16, accumulate=2, label_smoothing=0.05,
    ),
)  # fmt: skip
