"""The last part, written blind: series, odd losses and small networks; rates, losses, bad data."""

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
        "KD1", "curves",
        "a linear decay made for 300 steps, training prolonged to 400: the rate goes below zero",
        {"schedule": "overrun", "period": 300}, "diverging", ("exploding",), onset=300,
        seeds=_FAULT_SEEDS,
    ),
    Fault(
        "KD2", "caster", "momentum SGD at lr 0.5 instead of 0.02, held by clipping alone",
        {"lr": 0.5}, "oscillating", ("lr-high",), seeds=_FAULT_SEEDS,
    ),
    Fault(
        "KD3", "echo-rnn", "RMSprop at lr 0.2 instead of 0.002 on a recurrent tagger",
        {"lr": 0.2}, "lr-high", ("oscillating", "diverging"), seeds=_FAULT_SEEDS,
    ),
    Fault(
        "KD4", "cnn-residual", "momentum SGD at lr 1e-4, a rate meant for Adam, instead of 0.03",
        {"lr": 1e-4}, "slow", ("lr-low",), seeds=_FAULT_SEEDS,
    ),
    Fault(
        "KD5", "gated-filters",
        "a decay of 0.9 for each epoch is stepped with each batch: the rate is soon nothing",
        {"schedule": "exponential", "gamma": 0.9}, "plateau", ("lr-low", "slow"),
        seeds=_FAULT_SEEDS,
    ),
    Fault(
        "KD6", "rnn-rows", "the negative log-likelihood is given raw scores: no log-softmax",
        {"loss": "nll-of-scores"}, "loss-pairing", ("diverging",), seeds=_FAULT_SEEDS,
    ),
    Fault(
        "KD8", "bag", "the gradients of one late step come 100 times too large, with no clipping",
        {"burst_step": 230, "burst_factor": 100.0}, "spike", (), onset=230,
        seeds=_FAULT_SEEDS,
    ),
)  # fmt: skip


CONTROLS: tuple[Control, ...] = (
    _healthy("KDH1", "tagger", cell="lstm", lr=1.5e-2, batch=48),
    _healthy("KDH2", "denoiser", optimiser="nesterov", lr=0.2, batch=32),
    _healthy(
        "KDH3", "quantile", optimiser="adam", momentum=0.0, lr=4e-3, schedule="cosine", warmup=20
    ),
    _healthy(
        "KDH4", "wide", batch=12, accumulate=4, clip=1.0, schedule="one-cycle", lr=0.1, dropout=0.2
    ),
)
