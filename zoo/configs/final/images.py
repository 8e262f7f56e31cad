"""Pictures and small tables, written blind: eleven faults and four healthy controls."""

from __future__ import annotations

from functools import partial

from ..controls import Control
from ..faults import Fault
from ..healthy import healthy

_SEEDS = (100, 101, 102, 103, 104)
_CONTROL_SEEDS = (100, 101, 102, 103, 104, 105, 106)
_healthy = partial(healthy, _CONTROL_SEEDS)

FAULTS: tuple[Fault, ...] = (
    Fault("LD1", "deep-gated", "gates start shut: a bias with a highway's sign, and no shortcut",
          {"gate_bias": -4.0},
          "vanishing", ("slow",), seeds=_SEEDS),
    Fault("LD2", "cnn", "a bit of one bias of the output layer is lost",
          {"flip_step": 270, "flip_name": "output.bias"},
          "spike", ("wiring", "exploding"), onset=270, layers=("output.*",), seeds=_SEEDS),
    Fault("LD3", "vgg", "the biases of the third convolution were loaded as -25",
          {"odd_layer": 2, "odd_bias": -25.0},
          "dead", ("vanishing",), layers=("hidden.2.*",), seeds=_SEEDS),
    Fault("LD4", "experts", "from step 15 on a scaler takes each step for overflow and skips it",
          {"switch_step": 15, "switched": (("calls_step", False),)},
          "not-training", ("plateau",), onset=15, seeds=_SEEDS),
    Fault("LD5", "squeezed", "the last block's group has a rate a hundred times too high",
          {"rates": (("hidden.2.*", 100.0),)},
          "lr-high", ("dead", "oscillating"), layers=("hidden.2.*",), seeds=_SEEDS),
    Fault("LD6", "highway", "the loss scale doubles every 28 steps, gradients are not unscaled",
          {"scale_period": 28, "unscaled": False},
          "wiring", ("exploding", "diverging", "nan"), onset="divergence", seeds=_SEEDS),
    Fault("LD7", "dense", "a growing loss scale overflows half precision, no step is skipped",
          {"half": True, "scale_period": 12},
          "nan", ("wiring", "exploding"), onset="nonfinite", seeds=_SEEDS),
    Fault("LD8", "squeezed", "quarter turns from step 120 on make level bars upright ones",
          {"switch_step": 120, "switched": (("augment", "turn"),)},
          "data", (), onset=120, seeds=_SEEDS),
    Fault("LD9", "entities", "a tenth of the rows was read",
          {"samples": 150},
          "over-fit", (), onset="lowest-validation", seeds=_SEEDS),
    Fault("LD10", "gated", "squared weights are summed, not averaged, and weigh more than the task",
          {"penalty": 0.02},
          "loss-pairing", ("vanishing", "plateau"), seeds=_SEEDS),
    Fault("LD11", "mixer", "a cosine made for 90 steps: the rate is zero for the other 170",
          {"schedule": "short-cosine", "period": 90},
          "plateau", ("lr-low",), onset=90, seeds=_SEEDS),
)  # fmt: skip


CONTROLS: tuple[Control, ...] = (
    _healthy("LDH1", "vgg", optimiser="nadam", lr=4e-3, schedule="one-cycle"),
    _healthy("LDH2", "bottleneck", batch=8, accumulate=4, zero_grad="after-step"),
    _healthy("LDH3", "cnn", jitter=0.4, clip=0.5, warmup=60, schedule="restarts", lr=5e-3),
    _healthy("LDH4", "bn-cnn", loss="sum", held_loss="auto", lr=0.005, frozen=1),
)
