"""Plain networks once more: faults and controls written blind, on dense nets and a transformer."""

from __future__ import annotations

from functools import partial

from ..controls import Control
from ..faults import Fault
from ..healthy import healthy

_SEEDS = (100, 101, 102, 103, 104)
_CONTROL_SEEDS = (100, 101, 102, 103, 104, 105, 106)
_healthy = partial(healthy, _CONTROL_SEEDS)


FAULTS: tuple[Fault, ...] = (
    Fault("LH1", "deep10", "weights of the spread that torch gives a Linear: 0.41 times He's",
          {"init_scale": 0.41},
          "vanishing", ("slow",), seeds=_SEEDS),
    Fault("LH2", "deep14-tanh", "the bias of the seventh tanh layer starts at 6",
          {"odd_layer": 6, "odd_bias": 6.0},
          "dead", ("vanishing",), layers=("hidden.6.*",), seeds=_SEEDS),
    Fault("LH3", "coder", "the output layer was made after its optimiser",
          {"left_out": "output.*"},
          "not-training", ("plateau",), layers=("output.*",), seeds=_SEEDS),
    Fault("LH4", "deep-coder", "a ReLU behind the output, though half of the targets are negative",
          {"ending": "relu"}, "loss-pairing", ("plateau", "dead"), seeds=_SEEDS),
    Fault("LH5", "stepped", "from step 100 on labels lie one row beside their inputs",
          {"switch_step": 100, "switched": (("labels", "shifted"),)},
          "data", ("diverging",), onset=100, seeds=_SEEDS),
    Fault("LH6", "wide-gelu", "a scale for half precision that doubles and never backs off",
          {"half": True, "loss_scale": 256.0, "scale_period": 10},
          "nan", ("wiring", "exploding"), onset="nonfinite", seeds=_SEEDS),
    Fault("LH7", "residual-sgd", "gradients are clipped at 0.02", {"clip": 0.02},
          "slow", ("lr-low",), seeds=_SEEDS),
    Fault("LH8", "elu-rmsprop", "all weights of the third and fourth layer start as one value",
          {"alike": "hidden.[23].linear.weight"},
          "symmetry", ("slow",), layers=("hidden.2.*", "hidden.3.*"), seeds=_SEEDS),
    Fault("LH9", "warm-sgd", "a decay behind the warm-up made for fewer steps falls below zero",
          {"schedule": "overrun", "period": 40},
          "diverging", ("wiring", "nan"), onset="divergence", seeds=_SEEDS),
    Fault("LH10", "gelu", "a slice of 60 examples, meant for debugging, was left in",
          {"samples": 60}, "over-fit", ("data",), onset="lowest-validation", seeds=_SEEDS),
    Fault("LH11", "decaying", "from step 100 on gradients are no longer zeroed",
          {"switch_step": 100, "switched": (("zero_grad", "never"),)},
          "wiring", ("diverging", "oscillating"), onset=100, seeds=_SEEDS),
)  # fmt: skip

CONTROLS: tuple[Control, ...] = (
    _healthy("LHH1", "wide", optimiser="nesterov", lr=0.03, batch=16, clip=1.0),
    _healthy("LHH2", "wide-gelu", frozen=1, lr=2e-3, accumulate=2, zero_grad="after-step"),
    _healthy("LHH3", "stream", optimiser="adamax", lr=5e-3, schedule="one-cycle"),
    _healthy("LHH4", "deep-coder", jitter=0.1, schedule="cosine", lr=3e-3),
)
