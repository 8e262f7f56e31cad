"""The last part, written blind: losses of pictures that diverge, bounce, crawl, stall and jump."""

from __future__ import annotations

from functools import partial

from ..controls import Control
from ..faults import Fault
from ..healthy import healthy

_SEEDS = (90, 91, 92, 93, 94)
_CONTROL_SEEDS = (90, 91, 92, 93, 94, 95, 96)
_healthy = partial(healthy, _CONTROL_SEEDS)


FAULTS: tuple[Fault, ...] = (
    Fault(
        "KB1", "waves", "linear decay made for 220 steps has no floor: the rate goes below zero",
        {"schedule": "overrun", "period": 220}, "diverging", ("exploding",), onset=220,
        seeds=_SEEDS,
    ),
    Fault(
        "KB2", "hard", "averaged SGD with four times the rate that it bears, hard tanh",
        {"lr": 1.2}, "oscillating", ("lr-high",), seeds=_SEEDS,
    ),
    Fault(
        "KB3", "deep-vgg", "momentum SGD with a rate of 2 where 0.05 was meant, batch norm",
        {"lr": 2.0}, "lr-high", ("oscillating", "exploding"), seeds=_SEEDS,
    ),
    Fault(
        "KB4", "squeezed", "AdamW with 5e-6 where 5e-3 was meant",
        {"lr": 5e-6}, "slow", ("lr-low",), seeds=_SEEDS,
    ),
    Fault(
        "KB5", "bottleneck", "a decay meant for epochs is stepped at each batch: no rate is left",
        {"schedule": "exponential", "gamma": 0.8}, "plateau", ("lr-low", "slow"), onset=20,
        seeds=_SEEDS,
    ),
    Fault(
        "KB6", "cnn", "negative log-likelihood on raw scores, no log-softmax before it",
        {"loss": "nll-of-scores"}, "loss-pairing", ("exploding", "diverging"), seeds=_SEEDS,
    ),
    Fault(
        "KB7", "deep-plain", "resumed at step 110 with a loader that gives the classes in order",
        {"switch_step": 110, "switched": (("order", "sorted"),)}, "data", ("oscillating",),
        onset=110, seeds=_SEEDS,
    ),
    Fault(
        "KB8", "autoencoder-sgd", "the gradients of one step are not unscaled: 120 times too large",
        {"burst_step": 250, "burst_factor": 120.0}, "spike", ("exploding",), onset=250,
        seeds=_SEEDS,
    ),
)  # fmt: skip

CONTROLS: tuple[Control, ...] = (
    # Wider, larger batches, one cycle of the rate with a higher top.
    _healthy("KBH1", "vgg", width=12, lr=0.03, batch=64, schedule="one-cycle"),
    # Batch norm, a smooth activation, NAdam with a warm-up.
    _healthy(
        "KBH2", "separable", norm="batch", activation="silu", optimiser="nadam", lr=4e-3, warmup=30
    ),
    # A Huber loss where squares are measured, Adam, another activation.
    _healthy(
        "KBH3", "tied", activation="elu", optimiser="adam", lr=3e-3, loss="huber", held_loss="auto"
    ),
    # Brier's loss in the place of cross-entropy, warm restarts of the rate.
    _healthy("KBH4", "bn-cnn", loss="brier", schedule="restarts", period=100),
)
