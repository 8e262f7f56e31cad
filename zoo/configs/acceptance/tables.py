"""Further configurations on tables, written blind: faults PA1.. and healthy controls PAH1.. ."""

from __future__ import annotations

from functools import partial

from ..controls import Control
from ..faults import Fault
from ..healthy import healthy

_SEEDS = (110, 111, 112, 113, 114)
_CONTROL_SEEDS = (110, 111, 112, 113, 114, 115, 116)
_healthy = partial(healthy, _CONTROL_SEEDS)

FAULTS: tuple[Fault, ...] = (
    Fault("PA1", "tables-multilabel", "weights a seventh of Xavier's in eight factors",
          {"init_scale": 0.14},
          "vanishing", ("slow",), layers=("hidden.[0-2].*",), seeds=_SEEDS),
    Fault("PA2", "moons", "the bias of the third ReLU layer starts at -12",
          {"odd_layer": 2, "odd_bias": -12.0},
          "dead", ("vanishing",), layers=("hidden.2.*",), seeds=_SEEDS),
    Fault("PA3", "wide", "the second layer starts with 25 times He's weights",
          {"odd_layer": 1, "odd_scale": 25.0},
          "exploding", ("dead",), layers=("hidden.1.*",), seeds=_SEEDS),
    Fault("PA4", "friedman", "the rate grows by 2 % at each step", {"schedule": "ramp"},
          "diverging", ("lr-high", "exploding"), onset="divergence", seeds=_SEEDS),
    Fault("PA5", "tables-codes", "SGD without momentum, with the rate that Adam had",
          {"optimiser": "sgd"},
          "slow", ("lr-low",), seeds=_SEEDS),
    Fault("PA6", "spirals", "the rate falls to a hundredth every 25 steps, for epochs were meant",
          {"schedule": "steps", "gamma": 0.01, "period": 25},
          "plateau", ("lr-low", "slow"), onset=25, seeds=_SEEDS),
    Fault("PA7", "tables-multilabel", "cut from the graph behind layer 3", {"detach_after": 2},
          "not-training", (), layers=("hidden.[0-2].*",), seeds=_SEEDS),
    Fault("PA8", "friedman", "12 batches are accumulated and their losses not averaged",
          {"accumulate": 12, "averages": False},
          "wiring", ("lr-high", "exploding", "dead"), seeds=_SEEDS),
    Fault("PA9", "friedman-adamw", "a sigmoid at the end, though targets are standardised",
          {"ending": "sigmoid"},
          "loss-pairing", ("plateau",), seeds=_SEEDS),
    Fault("PA10", "wine", "one column was left in a unit of its own, a thousand times too large",
          {"odd_column": 1000.0},
          "data", ("dead",), seeds=_SEEDS),
    Fault("PA11", "wide-gelu", "an infinity in one example",
          {"bad_step": 77, "bad_kind": "infinite"},
          "nan", ("data",), onset=77, seeds=_SEEDS),
    Fault("PA12", "tables-diabetes", "60 patients and no dropout",
          {"samples": 60, "dropout": 0.0},
          "over-fit", (), onset="lowest-validation", seeds=_SEEDS),
)  # fmt: skip


CONTROLS: tuple[Control, ...] = (
    _healthy(
        "PAH1", "tables-quantiles", optimiser="adam", momentum=0.0, lr=5e-3, schedule="cosine"
    ),
    _healthy("PAH2", "wide", batch=12, accumulate=4),
    _healthy("PAH3", "wine", frozen=1, width=48),
    _healthy("PAH4", "moons", jitter=0.1, clip=0.5),
    _healthy("PAH5", "tables-selu", batch=16, clip=0.5),
    _healthy("PAH6", "friedman-adamw", schedule="restarts", period=70),
)
