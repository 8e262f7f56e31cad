"""Faults and controls on tables, about layers: written by one who had not seen the diagnoses."""

from __future__ import annotations

from functools import partial

from ..controls import Control
from ..faults import Fault
from ..healthy import healthy

_FAULT_SEEDS = (80, 81, 82, 83, 84)
_CONTROL_SEEDS = (80, 81, 82, 83, 84, 85, 86)
_control = partial(healthy, _CONTROL_SEEDS)


FAULTS: tuple[Fault, ...] = (
    Fault(
        "JA1", "tables-multilabel", "factors of each layer start at 0.4 of their scale",
        {"init_scale": 0.4}, "vanishing", ("plateau", "slow"), layers=("hidden.*",),
        seeds=_FAULT_SEEDS,
    ),
    Fault(
        "JA2", "tables-selu", "weights start six times too large, ten layers deep",
        {"init_scale": 6.0}, "exploding", ("slow",), seeds=_FAULT_SEEDS,
    ),
    Fault(
        "JA3", "tables-diabetes", "the second hidden layer starts with biases of -6",
        {"odd_layer": 1, "odd_bias": -6.0}, "dead", ("vanishing", "plateau"),
        layers=("hidden.1.*",), seeds=_FAULT_SEEDS,
    ),
    Fault(
        "JA4", "tables-ordinal", "hidden weights start as one value each",
        {"alike": "hidden.*.weight"}, "symmetry", ("plateau",), layers=("hidden.0.*",),
        seeds=_FAULT_SEEDS,
    ),
    Fault(
        "JA5", "tables-cross", "the optimiser was not given the crossings",
        {"left_out": "hidden.[01].*"}, "not-training", ("slow", "plateau"),
        layers=("hidden.0.*", "hidden.1.*"), seeds=_FAULT_SEEDS,
    ),
    Fault(
        "JA6", "tables-tokens", "gradients are never set back to zero",
        {"zero_grad": "never"}, "wiring", ("oscillating", "exploding", "lr-high"),
        seeds=_FAULT_SEEDS,
    ),
    Fault(
        "JA7", "tables-residual", "the scale of a half-precision loss doubles and is never cut",
        {"half": True, "scale_period": 12}, "nan", onset="nonfinite", seeds=_FAULT_SEEDS,
    ),
    Fault(
        "JA8", "tables-codes", "150 rows are left to learn from",
        {"samples": 150}, "over-fit", onset="lowest-validation", seeds=_FAULT_SEEDS,
    ),
)  # fmt: skip

CONTROLS: tuple[Control, ...] = (
    _control("JAC1", "tables-diabetes", batch=64, schedule="cosine", warmup=30),
    _control("JAC2", "tables-codes", dropout=0.1, label_smoothing=0.05),
    _control("JAC3", "tables-residual", depth=4, schedule="one-cycle", lr=4e-3),
    _control(
        "JAC4", "tables-multilabel", optimiser="adamw", momentum=0.0, lr=3e-3, weight_decay=0.01
    ),
)
