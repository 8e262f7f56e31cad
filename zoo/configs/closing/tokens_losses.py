"""Faults of rates, losses and data in networks that read tokens, and healthy runs beside them."""

from __future__ import annotations

from functools import partial

from ..controls import Control
from ..faults import Fault
from ..healthy import healthy

_SEEDS = (80, 81, 82, 83, 84)
_CONTROL_SEEDS = (80, 81, 82, 83, 84, 85, 86)
_healthy = partial(healthy, _CONTROL_SEEDS)

FAULTS: tuple[Fault, ...] = (
    Fault(
        "JH1", "tokens-brackets", "a decay of one's own has the wrong sign: weights grow by 3 %",
        {"growth": 0.03}, "diverging", ("exploding",), onset="divergence", seeds=_SEEDS,
    ),
    Fault(
        "JH2", "tokens-recall", "batches of four at a rate of 0.1",
        {"lr": 0.1, "batch": 4}, "oscillating", ("lr-high", "vanishing", "dead"),
        seeds=_SEEDS,
    ),
    Fault(
        "JH3", "tokens-topics", "a rate six times too high for the momentum",
        {"lr": 0.6}, "lr-high", ("exploding", "dead", "oscillating", "plateau"), seeds=_SEEDS,
    ),
    Fault(
        "JH4", "tokens-reverse", "Adadelta with the rate of Adam",
        {"optimiser": "adadelta"}, "lr-low", ("slow",), seeds=_SEEDS,
    ),
    Fault(
        "JH5", "tokens-grammar", "a decay by steps counts batches in the place of epochs",
        {"schedule": "steps", "gamma": 0.1, "period": 20}, "plateau", ("lr-low", "slow"),
        onset=20, seeds=_SEEDS,
    ),
    Fault(
        "JH6", "tokens-masked", "a sigmoid squashes the scores before cross-entropy",
        {"ending": "sigmoid"}, "loss-pairing", ("slow",), seeds=_SEEDS,
    ),
    Fault(
        "JH7", "tokens-sums", "labels are those of the example before",
        {"labels": "shifted"}, "data", ("plateau", "slow", "over-fit"), seeds=_SEEDS,
    ),
    Fault(
        "JH8", "tokens-tags", "one batch has gradients three hundred times too large",
        {"burst_step": 280, "burst_factor": 300.0}, "spike", onset=280, seeds=_SEEDS,
    ),
)  # fmt: skip


CONTROLS: tuple[Control, ...] = (
    # A warm-up, a cosine and a little decay.
    _healthy("JHC1", "tokens-grammar", lr=4e-3, warmup=20, schedule="cosine", weight_decay=0.01),
    # Nesterov's momentum, larger batches and dropout.
    _healthy("JHC2", "tokens-topics", optimiser="nesterov", lr=0.05, batch=64, dropout=0.1),
    # Another cell, with gates that remember, and clipping.
    _healthy("JHC3", "tokens-brackets", cell="lstm", memory_bias=1.0, clip=1.0),
    # Norms of groups, AdamW, and labels that are smoothed.
    _healthy(
        "JHC4", "tokens-tags", norm="group", optimiser="adamw", lr=5e-3, weight_decay=0.01,
        label_smoothing=0.05,
    ),
)  # fmt: skip
