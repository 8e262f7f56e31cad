"""The last part, written blind: one layer, or one group of layers, is at fault in each."""

from __future__ import annotations

from ..controls import Control
from ..faults import Fault

_SEEDS = (90, 91, 92, 93, 94)

FAULTS: tuple[Fault, ...] = (
    Fault(
        "KJ1", "tokens-recall",
        "the recurrent matrix starts as a fifth of the identity: the first token is forgotten",
        {"recurrent_scale": 0.2}, "vanishing", ("slow", "plateau"),
        layers=("hidden.0.weight_hh_l0",), seeds=_SEEDS,
    ),
    Fault(
        "KJ4", "narrow-coder",
        "the code layer of an autoencoder starts with biases of -6: all codes are zero",
        {"odd_layer": 1, "odd_bias": -6.0}, "dead", ("vanishing",),
        layers=("hidden.1.linear.*",), seeds=_SEEDS,
    ),
    Fault(
        "KJ7", "robust",
        "at step 140 the largest weight of the second hidden layer loses a bit of its exponent",
        {"flip_step": 140, "flip_name": "hidden.1.linear.weight"}, "exploding", ("spike", "nan"),
        onset=140, layers=("hidden.1.linear.weight",), seeds=_SEEDS,
    ),
    Fault(
        "KJ8", "entities",
        "both hidden layers start as one constant each, so that all units of a layer are alike",
        {"alike": "hidden.*.weight"}, "symmetry", ("slow",),
        layers=("hidden.*.linear.weight",), seeds=_SEEDS,
    ),
)  # fmt: skip

CONTROLS: tuple[Control, ...] = ()
