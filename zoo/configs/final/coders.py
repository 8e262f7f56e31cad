"""Faults of codes, pairs, waves and small tables, written blind, and healthy runs beside them."""

from __future__ import annotations

from functools import partial

from ..controls import Control
from ..faults import Fault
from ..healthy import healthy

_SEEDS = (100, 101, 102, 103, 104)
_CONTROL_SEEDS = (100, 101, 102, 103, 104, 105, 106)
_healthy = partial(healthy, _CONTROL_SEEDS)

FAULTS: tuple[Fault, ...] = (
    Fault("LG1", "variational", "the weight of the prior leaps to 12 at step 120",
          {"switch_step": 120, "switched": (("prior", 12.0),)},
          "loss-pairing", ("plateau",), onset=120, seeds=_SEEDS),
    Fault("LG2", "deep-vgg", "features are detached behind the sixth convolution",
          {"detach_after": 5}, "not-training", (), layers=("hidden.[0-5].*",), seeds=_SEEDS),
    Fault("LG3", "tags", "a linear decay made for half the steps: the rate falls below zero",
          {"schedule": "overrun", "period": 150},
          "diverging", ("exploding",), onset="divergence", seeds=_SEEDS),
    Fault("LG4", "pairs-sgd", "the scale of the loss is doubled for ever, half precision overflows",
          {"half": True, "loss_scale": 4096.0, "scale_period": 15},
          "nan", ("wiring",), onset="nonfinite", seeds=_SEEDS),
    Fault("LG5", "tied-sgd", "pictures are turned, the pictures to be rebuilt are not",
          {"augment": "turn"}, "data", ("plateau",), seeds=_SEEDS),
    Fault("LG6", "deep-vgg", "the norms' statistics move a thousandth of the way a step",
          {"norm_momentum": 1e-3}, "wiring", ("over-fit",), seeds=_SEEDS),
    Fault("LG7", "pairs", "a decay meant for epochs is applied at each step",
          {"schedule": "exponential", "gamma": 0.94}, "plateau", ("lr-low", "slow"), seeds=_SEEDS),
    Fault("LG8", "gentle", "Adagrad in the place of Adam, at a rate fit for Adam",
          {"optimiser": "adagrad", "lr": 5e-4}, "slow", ("lr-low",), seeds=_SEEDS),
    Fault("LG9", "hard", "the second layer's biases start at 9: hard tanh is at its end for good",
          {"odd_layer": 1, "odd_bias": 9.0},
          "dead", ("vanishing",), layers=("hidden.1.*",), seeds=_SEEDS),
    Fault("LG10", "tied", "one batch's targets are a thousand times too large",
          {"bad_step": 120, "bad_kind": "wild-target"},
          "spike", ("data",), onset=120, seeds=_SEEDS),
    Fault("LG11", "tied", "all units of the code start as one",
          {"alike": "hidden.1.weight"},
          "symmetry", ("plateau",), layers=("hidden.1.*",), seeds=_SEEDS),
)  # fmt: skip


CONTROLS: tuple[Control, ...] = (
    _healthy("LGH1", "tied", optimiser="nadam", lr=4e-3, schedule="one-cycle"),
    _healthy("LGH2", "deep-vgg", batch=16, accumulate=2, clip=1.0, zero_grad="after-step"),
    _healthy("LGH3", "hard", frozen=1, optimiser="sgd", momentum=0.9, lr=0.03),
    _healthy("LGH4", "pairs", jitter=0.2, warmup=40, schedule="restarts", period=110, lr=4e-3),
)  # fmt: skip
