"""Faults and controls of series, counts and codes, written blind for the final test."""

from __future__ import annotations

from functools import partial

from ..controls import Control
from ..faults import Fault
from ..healthy import healthy

_SEEDS = (100, 101, 102, 103, 104)
_CONTROL_SEEDS = (100, 101, 102, 103, 104, 105, 106)
_healthy = partial(healthy, _CONTROL_SEEDS)

FAULTS: tuple[Fault, ...] = (
    Fault("LC1", "curves", "the tanh of the code starts saturated, with biases of 10",
          {"odd_layer": 2, "odd_bias": 10.0},
          "dead", ("vanishing",), layers=("hidden.2.*",), seeds=_SEEDS),
    Fault("LC2", "reviews-lstm", "padded by 45 more places, which the LSTM reads to their end",
          {"tail": 45, "pads": "read"},
          "vanishing", ("data", "slow"), layers=("memory.*",), seeds=_SEEDS),
    Fault("LC3", "denoiser", "a loss scale that doubles, and gradients never divided by it",
          {"scale_period": 35, "unscaled": False},
          "wiring", ("diverging", "exploding", "lr-high"), onset="divergence", seeds=_SEEDS),
    Fault("LC4", "encoder", "Adam's epsilon is 1",
          {"epsilon": 1.0},
          "slow", ("lr-low",), seeds=_SEEDS),
    Fault("LC5", "counts", "trained with Huber's loss on raw counts, measured as log rates",
          {"loss": "huber", "held_loss": "poisson"},
          "loss-pairing", (), seeds=_SEEDS),
    Fault("LC6", "tcn", "only biases are optimised: what was left of tuning a finished network",
          {"optimised": "biases"},
          "not-training", ("slow",), layers=("*.weight",), seeds=_SEEDS),
    Fault("LC7", "spread", "hidden layers start from one constant",
          {"alike": "hidden.*"},
          "symmetry", (), layers=("hidden.*",), seeds=_SEEDS),
    Fault("LC8", "caster", "from step 80 on the training windows come in another unit",
          {"switch_step": 80, "switched": (("input_scale", 25.0),)},
          "data", ("spike",), onset=80, seeds=_SEEDS),
    Fault("LC9", "gated-filters", "a weight of the output layer loses a bit near the end",
          {"flip_step": 215, "flip_name": "output.weight"},
          "spike", ("wiring",), onset=215, layers=("output.*",), seeds=_SEEDS),
    Fault("LC10", "echo", "a cosine that was counted in epochs and is over after 75 steps",
          {"schedule": "short-cosine", "period": 75},
          "plateau", ("lr-low",), onset=75, seeds=_SEEDS),
    Fault("LC11", "tcn", "the second convolution starts sixty times too large",
          {"odd_layer": 1, "odd_scale": 60.0},
          "exploding", (), layers=("hidden.1.*",), seeds=_SEEDS),
)  # fmt: skip


CONTROLS: tuple[Control, ...] = (
    _healthy("LCH1", "tagger", cell="lstm", memory_bias=1.0, width=28, batch=16, accumulate=2),
    _healthy("LCH2", "deep-tcn", optimiser="nesterov", schedule="one-cycle", lr=0.08, clip=0.5),
    _healthy("LCH3", "robust", batch=4, lr=0.006, schedule="cosine", steps=450),
    _healthy("LCH4", "encoder", pretrained=200, new_head=True, frozen=1),
)
