"""Tables: faults of one layer, of a loop and of data, written without sight of the diagnosis."""

from __future__ import annotations

from functools import partial

from ..controls import Control
from ..faults import Fault
from ..healthy import healthy

_SEEDS = (100, 101, 102, 103, 104)
_CONTROL_SEEDS = (100, 101, 102, 103, 104, 105, 106)
_healthy = partial(healthy, _CONTROL_SEEDS)

FAULTS: tuple[Fault, ...] = (
    Fault("LA1", "tables-multilabel", "both factors of the second layer start 50 times too small",
          {"odd_layer": 1, "odd_scale": 0.02},
          "vanishing", ("slow",), layers=("hidden.0.*", "hidden.1.*"), seeds=_SEEDS),
    Fault("LA2", "tables-cross", "the second crossing starts thirty times too large",
          {"odd_layer": 1, "odd_scale": 30.0},
          "exploding", (), layers=("hidden.1.*",), seeds=_SEEDS),
    Fault("LA3", "moons", "all weights start below zero: behind the first ReLU nothing answers",
          {"init": "negative"},
          "dead", ("vanishing",), layers=("hidden.[1-3].*",), seeds=_SEEDS),
    Fault("LA4", "friedman-adamw", "the root of a variance that nothing keeps above zero",
          {"loss": "gaussian-raw"},
          "nan", (), onset="nonfinite", seeds=_SEEDS),
    Fault("LA5", "wine", "a linear decay made for 90 steps: below zero the rate climbs the loss",
          {"schedule": "overrun", "period": 90},
          "diverging", ("exploding", "wiring"), onset="divergence", seeds=_SEEDS),
    Fault("LA6", "tables-quantiles", "the loss scale doubles every 25 steps, never divided out",
          {"scale_period": 25, "unscaled": False},
          "wiring", ("diverging", "exploding", "lr-high"), onset="divergence", seeds=_SEEDS),
    Fault("LA7", "tables-diabetes", "trained for an upper quantile, measured by squares",
          {"loss": "pinball", "held_loss": "auto"},
          "loss-pairing", (), seeds=_SEEDS),
    Fault("LA8", "tables-selu", "the first column is in a unit that makes it 500 times too small",
          {"odd_column": 0.002},
          "data", ("plateau",), seeds=_SEEDS),
    Fault("LA9", "tables-residual", "48 rows to learn from, and no dropout",
          {"samples": 48, "dropout": 0.0},
          "over-fit", (), onset="lowest-validation", seeds=_SEEDS),
    Fault("LA10", "tables-quantiles", "the first two layers start as one value each",
          {"alike": "hidden.[01].*"},
          "symmetry", ("plateau",), layers=("hidden.0.*", "hidden.1.*"), seeds=_SEEDS),
    Fault("LA11", "tables-tokens", "a weight of the first block loses a bit",
          {"flip_step": 250, "flip_name": "hidden.0.inner.back.weight"},
          "spike", ("exploding",), onset=250, layers=("hidden.0.*",), seeds=_SEEDS),
)  # fmt: skip


CONTROLS: tuple[Control, ...] = (
    _healthy("LAH1", "tables-ordinal", accumulate=4, batch=8, clip=1.0, warmup=20),
    _healthy("LAH2", "tables-quantiles", optimiser="adamax", lr=2e-2, schedule="restarts"),
    _healthy("LAH3", "tables-selu", frozen=2, width=48, batch=16, warmup=30),
    _healthy("LAH4", "wine", batch=2, lr=0.02, jitter=0.1),
)
