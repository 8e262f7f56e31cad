"""Further configurations on the parents of pictures and tables, written blind."""

from __future__ import annotations

from functools import partial

from ..controls import Control
from ..faults import Fault
from ..healthy import healthy

_SEEDS = (110, 111, 112, 113, 114)
_CONTROL_SEEDS = (110, 111, 112, 113, 114, 115, 116)
_healthy = partial(healthy, _CONTROL_SEEDS)

FAULTS: tuple[Fault, ...] = (
    Fault("PD1", "deep-plain", "the biases of the fifth convolution start at -15",
          {"odd_layer": 4, "odd_bias": -15.0},
          "dead", ("vanishing",), layers=("hidden.4.*",), seeds=_SEEDS),
    Fault("PD2", "deep-plain", "orthogonal weights, a quarter of what they should be",
          {"init": "orthogonal", "init_scale": 0.25},
          "vanishing", ("slow",), layers=("hidden.[0-3].*",), seeds=_SEEDS),
    Fault("PD3", "own-scale", "the second convolution starts 40 times too large",
          {"odd_layer": 1, "odd_scale": 40.0},
          "exploding", ("dead", "nan"), layers=("hidden.1.*",), seeds=_SEEDS),
    Fault("PD4", "variational", "the optimiser was not given the output layer",
          {"left_out": "output.*"},
          "not-training", (), layers=("output.*",), seeds=_SEEDS),
    Fault("PD5", "vgg", "eight batches accumulated, their sum not divided",
          {"accumulate": 8, "averages": False},
          "wiring", ("lr-high", "exploding", "dead"), seeds=_SEEDS),
    Fault("PD6", "variational", "the term of the prior 40 times too strong", {"prior": 12.0},
          "loss-pairing", ("plateau",), seeds=_SEEDS),
    Fault("PD7", "gated", "one column of the table left in units 2000 times too large",
          {"odd_column": 2000.0}, "data", ("dead", "slow"), seeds=_SEEDS),
    Fault("PD8", "sums", "a target is missing in one batch",
          {"bad_step": 120, "bad_kind": "target"}, "nan", ("data",), onset=120, seeds=_SEEDS),
    Fault("PD9", "mixer", "lr x60 for one step, late", {"kick_step": 246, "kick_factor": 60.0},
          "spike", (), onset=246, seeds=_SEEDS),
    Fault("PD10", "vgg-adam", "24 pictures to learn from", {"samples": 24},
          "over-fit", ("data",), onset="lowest-validation", seeds=_SEEDS),
    Fault("PD11", "squeezed", "AdamW with an epsilon of 1", {"epsilon": 1.0},
          "slow", ("lr-low",), seeds=_SEEDS),
    Fault("PD12", "dense", "restarts each five times as high as the one before",
          {"schedule": "swelling", "gamma": 5.0, "period": 80},
          "diverging", ("lr-high", "exploding", "nan"), onset="divergence", seeds=_SEEDS),
)  # fmt: skip


CONTROLS: tuple[Control, ...] = (
    _healthy("PDH1", "vgg-adam", optimiser="nadam", warmup=30, steps=300),
    _healthy("PDH2", "bottleneck", batch=8, lr=0.005, steps=320),
    _healthy("PDH3", "entities", accumulate=4, batch=16, clip=1.0),
    _healthy("PDH4", "dense", dropout=0.1, schedule="linear", clip=1.0, width=24),
    _healthy("PDH5", "hard", optimiser="sgd", lr=0.1, momentum=0.5, jitter=0.1),
    _healthy("PDH6", "separable", frozen=1, width=24, schedule="one-cycle"),
)
