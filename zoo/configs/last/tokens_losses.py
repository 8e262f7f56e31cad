"""The last part, written blind: rates, losses and data gone wrong on tokens and structures."""

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
        "KH1", "structures-denoiser",
        "a linear decay was made for 300 steps and goes on below zero, so the loss is climbed",
        {"schedule": "overrun", "period": 300},
        "diverging", ("exploding",), onset=300, seeds=_FAULT_SEEDS,
    ),
    Fault(
        "KH2", "tokens-recall",
        "Adam on a plain recurrent network got a rate of 0.5 that was meant for plain SGD",
        {"lr": 0.5},
        "oscillating", ("lr-high", "dead"), seeds=_FAULT_SEEDS,
    ),
    Fault(
        "KH3", "structures-field",
        "the rate of Adam is fifty times too high for eight layers of tanh",
        {"lr": 0.05},
        "lr-high", ("oscillating", "dead"), seeds=_FAULT_SEEDS,
    ),
    Fault(
        "KH4", "tokens-brackets",
        "two zeros too many in the rate of a GRU's Adam",
        {"lr": 5e-5},
        "slow", ("lr-low",), seeds=_FAULT_SEEDS,
    ),
    Fault(
        "KH5", "structures-siamese",
        "a step decay meant for every ten epochs is called every step: no rate is left behind 20",
        {"schedule": "steps", "period": 10, "gamma": 0.1},
        "plateau", ("lr-low", "slow"), onset=20, seeds=_FAULT_SEEDS,
    ),
    Fault(
        "KH7", "tokens-tags",
        "an augmentation shuffles the words of a batch but leaves their tags where they were",
        {"augment": "shuffle-time"},
        "data", ("slow", "plateau"), seeds=_FAULT_SEEDS,
    ),
    Fault(
        "KH8", "tokens-masked",
        "at step 250 a restart of the schedule gives one step a hundred times the rate",
        {"kick_step": 250, "kick_factor": 100.0},
        "spike", (), onset=250, seeds=_FAULT_SEEDS,
    ),
)  # fmt: skip

CONTROLS: tuple[Control, ...] = (
    # A decoder with dropout, a warm-up and a cosine.
    _healthy("KHH1", "tokens-grammar", dropout=0.05, warmup=40, schedule="cosine", lr=3e-3,
             steps=350),
    # Group norms, SiLU, Nesterov, two batches put together and clipped.
    _healthy("KHH2", "tokens-tags", norm="group", activation="silu", optimiser="nesterov",
             batch=24, accumulate=2, clip=2.0),
    # Pairs by AdamW, wider, with one cycle of the rate.
    _healthy("KHH3", "structures-siamese", optimiser="adamw", momentum=0.0, lr=3e-3, width=64,
             weight_decay=0.01, schedule="one-cycle"),
    # Experts with another activation, half the rate, a larger batch, longer.
    _healthy("KHH4", "structures-heads", activation="gelu", lr=0.04, batch=48, depth=10,
             steps=600),
)  # fmt: skip
