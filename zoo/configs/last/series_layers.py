"""The last part, written blind: readers of series and deep stacks, with faults in their layers."""

from __future__ import annotations

from functools import partial

from ..controls import Control
from ..faults import Fault
from ..healthy import healthy

_FAULT_SEEDS = (90, 91, 92, 93, 94)
_CONTROL_SEEDS = (90, 91, 92, 93, 94, 95, 96)
_healthy = partial(healthy, _CONTROL_SEEDS)

FAULTS: tuple[Fault, ...] = (
    Fault(
        "KC1", "deep-tcn", "nine convolutions with sigmoids, and no way around any of them",
        {"residual": False, "activation": "sigmoid"}, "vanishing", accept=("slow", "plateau"),
        seeds=_FAULT_SEEDS,
    ),
    Fault(
        "KC2", "tcn", "convolutions of a forecaster start from a plain normal of sd 1",
        {"init": "normal"}, "exploding", accept=("nan",), seeds=_FAULT_SEEDS,
    ),
    Fault(
        "KC3", "cnn4", "the biases of the third convolution start at -8: no unit ever fires",
        {"odd_layer": 2, "odd_bias": -8.0}, "dead", accept=("vanishing",),
        layers=("hidden.2.*",), seeds=_FAULT_SEEDS,
    ),
    Fault(
        "KC4", "gated-filters", "all weights of a layer start as one constant, all filters alike",
        {"init": "constant"}, "symmetry", accept=("slow", "plateau"), seeds=_FAULT_SEEDS,
    ),
    Fault(
        "KC5", "tagger", "the optimiser was not given the parameters of the GRU",
        {"left_out": "memory.*"}, "not-training", accept=("slow", "plateau"),
        layers=("memory.*",), seeds=_FAULT_SEEDS,
    ),
    Fault(
        "KC6", "reviews-lstm", "batch_first was forgotten: the LSTM reads along the batch",
        {"batch_first": False}, "wiring", accept=("data", "plateau", "slow"), seeds=_FAULT_SEEDS,
    ),
    Fault(
        "KC7", "pre-norm", "half-precision gradients, a loss scale that doubles with no check",
        {"half": True, "scale_period": 8}, "nan", accept=("exploding",), onset="nonfinite",
        seeds=_FAULT_SEEDS,
    ),
    Fault(
        "KC8", "spread", "means and variances are learnt from 50 examples to the end",
        {"samples": 50}, "over-fit", onset="lowest-validation", seeds=_FAULT_SEEDS,
    ),
)  # fmt: skip


CONTROLS: tuple[Control, ...] = (
    _healthy("KCH1", "echo-rnn", optimiser="adam", lr=3e-3, width=64, clip=1.0, steps=300),
    _healthy("KCH2", "encoder", depth=3, dropout=0.1, schedule="cosine", warmup=40, steps=260),
    _healthy(
        "KCH3", "norm-tcn", norm="group", activation="silu", optimiser="adamw", lr=4e-3, steps=260
    ),
    _healthy(
        "KCH4", "residual12", depth=8, width=48, activation="gelu", batch=32, accumulate=2,
        clip=1.0, steps=300,
    ),
)  # fmt: skip
