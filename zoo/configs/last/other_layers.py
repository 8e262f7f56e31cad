"""The last part, written blind: single layers at fault, on tables, signals, structures, others."""

from __future__ import annotations

from ..controls import Control
from ..faults import Fault

_SEEDS = (90, 91, 92, 93, 94)

FAULTS: tuple[Fault, ...] = (
    Fault(
        "KL1", "tables-multilabel",
        "the two factors of the third layer start a hundred times too small",
        {"odd_layer": 2, "odd_scale": 0.01},
        "vanishing", ("slow",), layers=("hidden.2.*",), seeds=_SEEDS,
    ),
    Fault(
        "KL2", "lstm-first",
        "the bias of the LSTM's forget gate has the wrong sign and is large: it is shut",
        {"memory_bias": -8.0},
        "vanishing", ("slow",), layers=("memory.*",), seeds=_SEEDS,
    ),
    Fault(
        "KL3", "signals-beats",
        "all norms' weights start at zero, those in front of a ReLU with no way around it too",
        {"norm_scale": 0.0},
        "dead", ("vanishing",), layers=("hidden.*.norm.*",), seeds=_SEEDS,
    ),
    Fault(
        "KL4", "wide",
        "the first layer was given a group of its own with a rate a hundred times too high",
        {"rates": (("hidden.0.*", 100.0),)},
        "dead", ("lr-high",), layers=("hidden.0.*",), seeds=_SEEDS,
    ),
    Fault(
        "KL5", "structures-ratings",
        "the codes of users and items were not given to the optimiser",
        {"left_out": "[ui]*s.weight"},
        "not-training", ("slow",), layers=("users.weight", "items.weight"), seeds=_SEEDS,
    ),
    Fault(
        "KL7", "structures-pendulum",
        "the second layer starts sixty times too large, and is passed again and again",
        {"odd_layer": 1, "odd_scale": 60.0},
        "exploding", ("nan",), layers=("hidden.1.*",), seeds=_SEEDS,
    ),
)  # fmt: skip

CONTROLS: tuple[Control, ...] = ()
