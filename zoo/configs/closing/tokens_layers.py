"""Closing part, written blind: networks of tokens whose layers or loop fail, and healthy ones."""

from __future__ import annotations

from functools import partial

from ..controls import Control
from ..faults import Fault
from ..healthy import healthy

_FAULT_SEEDS = (80, 81, 82, 83, 84)
_CONTROL_SEEDS = (80, 81, 82, 83, 84, 85, 86)
_healthy = partial(healthy, _CONTROL_SEEDS)

FAULTS: tuple[Fault, ...] = (
    Fault(
        "JF1", "tokens-recall", "a recurrent matrix that starts at 0.45 of the identity",
        {"recurrent_scale": 0.45}, "vanishing", ("slow", "plateau"),
        layers=("hidden.0.weight_hh_l0",), seeds=_FAULT_SEEDS,
    ),
    Fault(
        "JF2", "tokens-sums", "ten layers that start at twice He's scale",
        {"init_scale": 2.0}, "exploding", ("slow",), seeds=_FAULT_SEEDS,
    ),
    Fault(
        "JF3", "tokens-topics", "the biases of the second layer start at -4",
        {"odd_layer": 1, "odd_bias": -4.0}, "dead", ("vanishing", "plateau"),
        layers=("hidden.1.*",), seeds=_FAULT_SEEDS,
    ),
    Fault(
        "JF4", "tokens-brackets", "memory and output start as one value per tensor",
        {"alike": "[ho]*"}, "symmetry", ("plateau", "slow"),
        layers=("hidden.*", "output.*"), seeds=_FAULT_SEEDS,
    ),
    Fault(
        "JF5", "tokens-reverse", "the optimiser was given embeddings and output, not the blocks",
        {"left_out": "hidden.*"}, "not-training", ("slow",),
        layers=("hidden.*",), seeds=_FAULT_SEEDS,
    ),
    Fault(
        "JF6", "tokens-masked", "no zero_grad",
        {"zero_grad": "never"}, "wiring", ("exploding", "lr-high", "oscillating", "plateau"),
        seeds=_FAULT_SEEDS,
    ),
    Fault(
        "JF7", "tokens-grammar", "a loss scale that doubles until half precision overflows",
        {"half": True, "scale_period": 8}, "nan", ("exploding",), onset="nonfinite",
        seeds=_FAULT_SEEDS,
    ),
    Fault(
        "JF8", "tokens-tags", "40 sentences to learn from",
        {"samples": 40}, "over-fit", onset="lowest-validation", seeds=_FAULT_SEEDS,
    ),
)  # fmt: skip


CONTROLS: tuple[Control, ...] = (
    # Warm-up, cosine and clipping, trained on until nothing is left to learn.
    _healthy("JFC1", "tokens-reverse", warmup=20, schedule="cosine", clip=1.0, steps=250),
    # Nesterov's momentum with larger batches, a little dropout and decay.
    _healthy(
        "JFC2", "tokens-topics",
        optimiser="nesterov", batch=64, dropout=0.1, weight_decay=1e-4,
    ),
    # An LSTM with open forget gates in the place of a GRU.
    _healthy("JFC3", "tokens-brackets", cell="lstm", memory_bias=1.0),
    # A wider network, one cycle, and gradients gathered over two batches.
    _healthy("JFC4", "tokens-tags", width=32, schedule="one-cycle", batch=16, accumulate=2),
)  # fmt: skip
