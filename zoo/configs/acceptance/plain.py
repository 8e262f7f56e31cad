"""Further faults and controls of plain networks, written by someone who knows no rule."""

from __future__ import annotations

from functools import partial

from ..controls import Control
from ..faults import Fault
from ..healthy import healthy

_SEEDS = (110, 111, 112, 113, 114)
_CONTROL_SEEDS = (110, 111, 112, 113, 114, 115, 116)
_healthy = partial(healthy, _CONTROL_SEEDS)

FAULTS: tuple[Fault, ...] = (
    Fault("PF1", "deep14-tanh", "weights of 0.3 times Xavier's in 14 layers of tanh",
          {"init_scale": 0.3},
          "vanishing", ("slow",), layers=("hidden.[0-6].*",), seeds=_SEEDS),
    Fault("PF2", "deep8", "the bias of the fifth ReLU layer starts at -12",
          {"odd_layer": 4, "odd_bias": -12.0},
          "dead", ("vanishing",), layers=("hidden.4.*",), seeds=_SEEDS),
    Fault("PF3", "deep10", "cut from the graph behind the eighth of ten layers",
          {"detach_after": 7},
          "not-training", ("slow",), layers=("hidden.[0-7].*",), seeds=_SEEDS),
    Fault("PF4", "warm-sgd", "gradients are never zeroed, with momentum and a warm-up",
          {"zero_grad": "never"},
          "wiring", ("exploding", "lr-high"), seeds=_SEEDS),
    Fault("PF5", "coder", "a sigmoid behind the decoder, though targets are standardised",
          {"ending": "sigmoid"},
          "loss-pairing", ("plateau",), seeds=_SEEDS),
    Fault("PF6", "regression", "one column was left in a unit 300 times as large",
          {"odd_column": 300.0},
          "data", ("exploding", "nan"), seeds=_SEEDS),
    Fault("PF7", "leaky", "the rate is 400 times as high for one late step",
          {"kick_step": 285, "kick_factor": 400.0},
          "spike", (), onset=285, seeds=_SEEDS),
    Fault("PF8", "dropout", "60 examples to train on, a quarter of them labelled by chance",
          {"samples": 60, "label_noise": 0.25},
          "over-fit", (), onset="lowest-validation", seeds=_SEEDS),
    Fault("PF9", "deep10", "the sixth layer starts with weights 40 times He's",
          {"odd_layer": 5, "odd_scale": 40.0},
          "exploding", ("nan", "dead"), layers=("hidden.5.*",), seeds=_SEEDS),
    Fault("PF10", "gelu", "AdamW's epsilon is 1",
          {"epsilon": 1.0},
          "slow", ("lr-low",), seeds=_SEEDS),
    Fault("PF11", "stepped", "the rate is halved every 8 steps, meant as epochs",
          {"period": 8},
          "plateau", ("slow", "lr-low"), seeds=_SEEDS),
)  # fmt: skip


CONTROLS: tuple[Control, ...] = (
    _healthy("PFH1", "mlp", optimiser="nadam", schedule="one-cycle", lr=4e-3),
    _healthy("PFH2", "sgd", schedule="restarts", period=75, lr=0.25, clip=1.0, batch=32),
    _healthy("PFH3", "deep20-tanh", warmup=50, schedule="cosine", lr=2e-3, clip=1.0),
    _healthy("PFH4", "dropout", dropout=0.35, width=160, label_smoothing=0.1),
    _healthy("PFH5", "autoencoder", jitter=0.1, batch=24, optimiser="adamw"),
    _healthy("PFH6", "gelu", frozen=1, width=160, accumulate=2, batch=24, lr=2e-3),
)
