"""Faults and controls of the blind test on parents of all parts, five classes of them alone."""

from __future__ import annotations

from functools import partial

from ..controls import Control
from ..faults import Fault
from ..healthy import healthy

_SEEDS = (110, 111, 112, 113, 114)
_CONTROL_SEEDS = (110, 111, 112, 113, 114, 115, 116)
_healthy = partial(healthy, _CONTROL_SEEDS)

FAULTS: tuple[Fault, ...] = (
    Fault("PG1", "elu-rmsprop", "the last two hidden layers start as one value each",
          {"alike": "hidden.[23].*"},
          "symmetry", ("plateau",), layers=("hidden.2.*", "hidden.3.*"), seeds=_SEEDS),
    Fault("PG2", "lstm-rows", "memory and output layer start as one value each",
          {"alike": "*"}, "symmetry", ("slow",), seeds=_SEEDS),
    Fault("PG3", "signals-texture", "all filters start as the same mean",
          {"init": "constant"}, "symmetry", ("slow",), seeds=_SEEDS),
    Fault("PG4", "tables-multilabel", "lr 2, momentum 0.97", {"lr": 2.0, "momentum": 0.97},
          "oscillating", ("lr-high",), seeds=_SEEDS),
    Fault("PG5", "curves", "momentum 0.995 at the same rate", {"momentum": 0.995},
          "oscillating", ("lr-high", "diverging"), seeds=_SEEDS),
    Fault("PG6", "lstm-first", "the forget gate starts closed, at -5", {"memory_bias": -5.0},
          "vanishing", ("slow",), layers=("memory.*",), seeds=_SEEDS),
    Fault("PG7", "signals-tall", "weights at 0.3 of Xavier's in ten layers",
          {"init_scale": 0.3}, "vanishing", ("slow",), layers=("hidden.[0-4].*",), seeds=_SEEDS),
    Fault("PG8", "deep-gated", "the biases of all gates have the wrong sign: -5",
          {"gate_bias": -5.0}, "vanishing", ("dead", "slow"), layers=("hidden.[0-4].*",),
          seeds=_SEEDS),
    Fault("PG9", "cnn-group", "half precision, a loss scale that doubles and never backs off",
          {"half": True, "scale_period": 8}, "nan", ("wiring",), onset="nonfinite", seeds=_SEEDS),
    Fault("PG10", "structures-pendulum", "a target that is no number, in one batch",
          {"bad_step": 95, "bad_kind": "target"}, "nan", ("data",), onset=95, seeds=_SEEDS),
    Fault("PG11", "gru-waves", "Adam at 0.5", {"lr": 0.5},
          "lr-high", ("oscillating",), seeds=_SEEDS),
    Fault("PG12", "coder", "RMSprop at 0.1", {"lr": 0.1},
          "lr-high", ("oscillating", "dead"), seeds=_SEEDS),
)  # fmt: skip


CONTROLS: tuple[Control, ...] = (
    _healthy("PGH1", "norm", batch=16, accumulate=3),
    _healthy("PGH2", "moons", optimiser="nadam", schedule="one-cycle", lr=6e-3),
    _healthy("PGH3", "tables-selu", warmup=60, schedule="cosine", clip=0.5, lr=2e-3),
    _healthy("PGH4", "wide-gelu", frozen=1, label_smoothing=0.1, lr=2e-3),
)
