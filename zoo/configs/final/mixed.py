"""Faults of the classes that are seldom elsewhere, on parents of all kinds."""

from __future__ import annotations

from functools import partial

from ..controls import Control
from ..faults import Fault
from ..healthy import healthy

_SEEDS = (100, 101, 102, 103, 104)
_CONTROL_SEEDS = (100, 101, 102, 103, 104, 105, 106)
_healthy = partial(healthy, _CONTROL_SEEDS)

FAULTS: tuple[Fault, ...] = (
    Fault("LI1", "robust", "momentum 0.995 where 0.9 was meant",
          {"momentum": 0.995}, "oscillating", ("lr-high",), seeds=_SEEDS),
    Fault("LI2", "quantile", "batches of one example at the rate and momentum meant for 24",
          {"batch": 1}, "oscillating", ("lr-high",), seeds=_SEEDS),
    Fault("LI3", "caster", "warm restarts, each 1.8 times as high as the one before",
          {"schedule": "swelling", "gamma": 1.8, "period": 30},
          "oscillating", ("lr-high",), onset="divergence", seeds=_SEEDS),
    Fault("LI4", "few-gpt", "the patience of early stopping is far too long",
          {"stop_step": 180}, "over-fit", (), onset="lowest-validation", seeds=_SEEDS),
    Fault("LI5", "tags", "a debugging subset of 64 rows of 1200 is left in",
          {"samples": 64}, "over-fit", (), onset="lowest-validation", seeds=_SEEDS),
    Fault("LI6", "echo", "lr 0.4, fifty times too high: learnt while RAdam warms up, then lost",
          {"lr": 0.4}, "lr-high", ("oscillating", "diverging"), onset="divergence", seeds=_SEEDS),
    Fault("LI7", "rnn-rows", "the memory has 40 times the rate of the output layer",
          {"rates": (("memory.*", 40.0),)},
          "lr-high", ("oscillating",), layers=("memory.*",), seeds=_SEEDS),
    Fault("LI8", "separable", "Adamax with an epsilon of 4",
          {"epsilon": 4.0}, "slow", ("lr-low",), seeds=_SEEDS),
    Fault("LI9", "deep10-gelu", "the sixth of ten layers starts 70 times too large",
          {"odd_layer": 5, "odd_scale": 70.0},
          "exploding", (), layers=("hidden.5.*",), seeds=_SEEDS),
)  # fmt: skip


CONTROLS: tuple[Control, ...] = (
    # Mixed precision as it is meant: a scale that doubles, and is taken out again.
    _healthy("LIH1", "cnn4", half=True, loss_scale=256.0, scale_period=60),
    # Fine-tuning: a fresh head, and lower layers at a tenth of its rate.
    _healthy(
        "LIH2", "tuned", new_head=True, lr=2e-3, rates=(("hidden.0.*", 0.1), ("hidden.1.*", 0.3))
    ),
    # Smoothed labels: the loss has a floor far above zero.
    _healthy("LIH3", "adagrad", label_smoothing=0.15),
    # A network that has learnt its task before: its loss has nowhere to go.
    _healthy("LIH4", "moons", pretrained=250, lr=5e-4),
)
