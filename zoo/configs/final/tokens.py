"""Faults and controls of networks that read tokens and series, written blind."""

from __future__ import annotations

from functools import partial

from ..controls import Control
from ..faults import Fault
from ..healthy import healthy

_SEEDS = (100, 101, 102, 103, 104)
_CONTROL_SEEDS = (100, 101, 102, 103, 104, 105, 106)
_healthy = partial(healthy, _CONTROL_SEEDS)


FAULTS: tuple[Fault, ...] = (
    Fault("LE1", "lstm-first", "the forget gate starts at -3 in the place of 2: the sign is wrong",
          {"memory_bias": -3.0}, "vanishing", ("slow",), layers=("memory.*",), seeds=_SEEDS),
    Fault("LE2", "tokens-topics", "a group of the optimiser gives one layer 60 times the rate",
          {"rates": (("hidden.1.*", 60.0),)},
          "lr-high", ("oscillating", "dead"), layers=("hidden.1.*",), seeds=_SEEDS),
    Fault("LE3", "tokens-tags", "every convolution and the output start as one value",
          {"init": "constant"}, "symmetry", ("plateau",), layers=("hidden.*",), seeds=_SEEDS),
    Fault("LE4", "tokens-tags", "convolutions lie in a plain list: the optimiser has norms only",
          {"left_out": "hidden.*.conv.*"},
          "not-training", ("slow",), layers=("hidden.*.conv.*",), seeds=_SEEDS),
    Fault("LE5", "pre-norm", "from step 140 an average that began with the start is written back",
          {"switch_step": 140, "switched": (("averaged", 0.99),)},
          "wiring", ("spike",), onset=140, seeds=_SEEDS),
    Fault("LE6", "pre-norm", "a tanh was left behind the output layer, before cross-entropy",
          {"ending": "tanh"}, "loss-pairing", ("plateau",), seeds=_SEEDS),
    Fault("LE7", "tokens-reverse", "from step 90 the tokens of a batch change places, not targets",
          {"switch_step": 90, "switched": (("augment", "shuffle-time"),)},
          "data", ("spike",), onset=90, seeds=_SEEDS),
    Fault("LE8", "tokens-masked", "the scale of the loss doubles and doubles, in half precision",
          {"half": True, "scale_period": 6}, "nan", ("wiring",), onset="nonfinite", seeds=_SEEDS),
    Fault("LE9", "tokens-grammar", "a linear decay made for 180 steps goes on below zero",
          {"schedule": "overrun", "period": 180},
          "diverging", ("wiring", "exploding"), onset="divergence", seeds=_SEEDS),
    Fault("LE10", "tokens-grammar", "a weight of the second block loses a bit",
          {"flip_step": 290, "flip_name": "hidden.1.narrow.weight"},
          "spike", ("wiring", "exploding"), onset=290, layers=("hidden.1.*",), seeds=_SEEDS),
    Fault("LE11", "rnn-rows", "a scheduler meant for epochs steps with each batch",
          {"schedule": "steps", "gamma": 0.1, "period": 25},
          "plateau", ("lr-low", "slow"), onset=25, seeds=_SEEDS),
)  # fmt: skip

CONTROLS: tuple[Control, ...] = (
    _healthy("LEH1", "tokens-topics", optimiser="nesterov", schedule="one-cycle", lr=0.15),
    _healthy("LEH2", "tokens-tags", batch=10, lr=0.08, steps=500),
    _healthy(
        "LEH3", "tokens-grammar", batch=16, accumulate=4, warmup=30, schedule="cosine", lr=4e-3
    ),
    _healthy("LEH4", "lstm-rows", optimiser="nadam", jitter=0.3, zero_grad="after-step"),
)
