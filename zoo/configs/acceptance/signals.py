"""Acceptance, written blind: faults and controls on signals and small pictures."""

from __future__ import annotations

from functools import partial

from ..controls import Control
from ..faults import Fault
from ..healthy import healthy

_SEEDS = (110, 111, 112, 113, 114)
_CONTROL_SEEDS = (110, 111, 112, 113, 114, 115, 116)
_healthy = partial(healthy, _CONTROL_SEEDS)

FAULTS: tuple[Fault, ...] = (
    Fault("PB1", "signals-tall", "ten layers of tanh start from weights of sd 0.04",
          {"init": "normal", "init_scale": 0.04},
          "vanishing", ("slow",), layers=("hidden.[0-5].*",), seeds=_SEEDS),
    Fault("PB2", "signals-grainy", "the second layer starts at fifty times He's weights",
          {"odd_layer": 1, "odd_scale": 50.0},
          "exploding", ("nan", "dead"), layers=("hidden.1.*",), seeds=_SEEDS),
    Fault("PB3", "signals-chirps", "the bias of the third ReLU layer starts at -25",
          {"odd_layer": 2, "odd_bias": -25.0},
          "dead", ("vanishing",), layers=("hidden.2.*",), seeds=_SEEDS),
    Fault("PB4", "signals-tall", "momentum 0.98 with the rate of plain SGD",
          {"momentum": 0.98},
          "oscillating", ("lr-high", "diverging"), onset="divergence", seeds=_SEEDS),
    Fault("PB5", "signals-pitch", "Adam's epsilon is 3",
          {"epsilon": 3.0},
          "slow", ("lr-low",), seeds=_SEEDS),
    Fault("PB6", "signals-chirps", "cut from the graph behind the last of the convolutions",
          {"detach_after": 3},
          "not-training", (), layers=("hidden.*",), seeds=_SEEDS),
    Fault("PB7", "signals-motion", "the first checkpoint is loaded again at each epoch",
          {"restored": 25},
          "wiring", (), onset=24, seeds=_SEEDS),
    Fault("PB8", "cnn4", "from step 130 on labels no longer belong to their pictures",
          {"switch_step": 130, "switched": (("labels", "permuted"),)},
          "data", ("diverging",), onset=130, seeds=_SEEDS),
    Fault("PB9", "signals-texture", "a weight of the third layer loses a bit",
          {"flip_step": 338, "flip_name": "hidden.2.conv.weight"},
          "spike", ("exploding", "nan", "dead"), onset=338, layers=("hidden.2.*",), seeds=_SEEDS),
    Fault("PB10", "signals-few", "half the examples, and no end to the training",
          {"samples": 50, "stop_step": None},
          "over-fit", (), onset="lowest-validation", seeds=_SEEDS),
    Fault("PB11", "signals-grainy", "the rate grows by 2% a step",
          {"schedule": "ramp"},
          "diverging", ("lr-high", "exploding", "nan"), onset="divergence", seeds=_SEEDS),
)  # fmt: skip


CONTROLS: tuple[Control, ...] = (
    _healthy("PBH1", "signals-chirps", batch=8, accumulate=4, optimiser="nadam"),
    _healthy("PBH2", "signals-beats", optimiser="nesterov", schedule="one-cycle", lr=0.08),
    _healthy("PBH3", "cnn4", optimiser="adamw", dropout=0.1, warmup=30, schedule="cosine", lr=4e-3),
    _healthy("PBH4", "cnn-group", batch=16, clip=1.0, activation="gelu"),
    _healthy("PBH5", "signals-texture", momentum=0.9, lr=0.02, clip=0.5, jitter=0.1),
    _healthy("PBH6", "signals-glyphs", frozen=1, zero_grad="after-step", weight_decay=1e-3),
)
