"""Blind faults and controls on structures, sequences, regressions and codes."""

from __future__ import annotations

from functools import partial

from ..controls import Control
from ..faults import Fault
from ..healthy import healthy

_SEEDS = (100, 101, 102, 103, 104)
_CONTROL_SEEDS = (100, 101, 102, 103, 104, 105, 106)
_healthy = partial(healthy, _CONTROL_SEEDS)


FAULTS: tuple[Fault, ...] = (
    Fault("LF1", "structures-siamese", "from step 220 on labels lie one row beside their pairs",
          {"switch_step": 220, "switched": (("labels", "shifted"),)},
          "data", ("diverging",), onset=220, seeds=_SEEDS),
    Fault("LF2", "structures-set",
          "trained by the squared error of counts, though scores are read as logs of rates",
          {"loss": "auto", "held_loss": "poisson"},
          "loss-pairing", (), seeds=_SEEDS),
    Fault("LF3", "post-norm", "Adam's epsilon is 0.1, so it steps far less than its rate",
          {"epsilon": 0.1},
          "slow", ("lr-low",), seeds=_SEEDS),
    Fault("LF4", "structures-field",
          "hard tanh, and the bias of the sixth layer starts at 6: all of it is saturated",
          {"activation": "hardtanh", "odd_layer": 5, "odd_bias": 6.0},
          "dead", ("vanishing",), layers=("hidden.5.*",), seeds=_SEEDS),
    Fault("LF5", "structures-pendulum",
          "the second layer starts 16 times too large: what is foretold grows at each state",
          {"odd_layer": 1, "odd_scale": 16.0},
          "exploding", ("plateau",), layers=("hidden.1.*",), seeds=_SEEDS),
    Fault("LF6", "structures-denoiser", "the code is detached, so the encoder never learns",
          {"detach_after": 1},
          "not-training", ("plateau",), layers=("hidden.[01].*",), seeds=_SEEDS),
    Fault("LF7", "autoencoder", "weights of the hidden layers start as one value each",
          {"alike": "hidden.*"},
          "symmetry", ("plateau",), layers=("hidden.*",), seeds=_SEEDS),
    Fault("LF8", "structures-heads", "warm restarts, each four times as high as the one before",
          {"schedule": "swelling", "gamma": 4.0, "period": 60},
          "diverging", ("lr-high", "exploding", "nan"), onset="divergence", seeds=_SEEDS),
    Fault("LF9", "gru", "150 empty places behind each sequence, and the last state is read",
          {"tail": 150},
          "vanishing", ("data", "slow"), layers=("memory.*",), seeds=_SEEDS),
    Fault("LF10", "structures-graph",
          "the scale of the loss doubles every 25 steps, and no overflow is looked for",
          {"half": True, "loss_scale": 65536.0, "scale_period": 25},
          "nan", (), onset="nonfinite", seeds=_SEEDS),
    Fault("LF11", "regression", "from step 150 on gradients are no longer zeroed",
          {"switch_step": 150, "switched": (("zero_grad", "never"),)},
          "wiring", ("oscillating", "diverging"), onset=150, seeds=_SEEDS),
)  # fmt: skip

CONTROLS: tuple[Control, ...] = (
    _healthy("LFH1", "structures-graph", optimiser="nadam", clip=0.5, schedule="cosine"),
    _healthy("LFH2", "structures-siamese", accumulate=2, batch=32, schedule="one-cycle", lr=0.1),
    _healthy("LFH3", "structures-field", frozen=1, lr=2e-3, batch=128),
    _healthy(
        "LFH4", "structures-denoiser", optimiser="nesterov", schedule="restarts", period=80,
        jitter=0.05,
    ),
)  # fmt: skip
