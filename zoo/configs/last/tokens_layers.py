"""The last part, written blind: readers of tokens and nets on structures, some by layer."""

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
        "KG1", "structures-field",
        "a transformer's start, normal with sd 0.02, copied to eight tanh layers without norms",
        {"init": "normal", "init_scale": 0.02},
        "vanishing", accept=("slow",), seeds=_SEEDS,
    ),
    Fault(
        "KG2", "tokens-sums",
        "the weights of ten layers drawn with sd 1, whatever their width",
        {"init": "normal"},
        "exploding", accept=("nan",), seeds=_SEEDS,
    ),
    Fault(
        "KG3", "tokens-topics",
        "the bias of the second layer starts at -8: none of its units is ever on",
        {"odd_layer": 1, "odd_bias": -8.0},
        "dead", accept=("vanishing",), layers=("hidden.1.*",), seeds=_SEEDS,
    ),
    Fault(
        "KG4", "structures-denoiser",
        "the narrow layer and the one behind it start with one value in all their weights",
        {"alike": "hidden.[12].linear.weight"},
        "symmetry", layers=("hidden.1.*", "hidden.2.*"), seeds=_SEEDS,
    ),
    Fault(
        "KG6", "tokens-tags",
        "from step 100 on gradients are no longer set to zero",
        {"switch_step": 100, "switched": (("zero_grad", "never"),)},
        "wiring", accept=("exploding", "lr-high"), onset=100, seeds=_SEEDS,
    ),
    Fault(
        "KG7", "tokens-masked",
        "half precision with a loss scale that doubles every 10 steps and never looks for overflow",
        {"half": True, "scale_period": 10},
        "nan", onset="nonfinite", seeds=_SEEDS,
    ),
    Fault(
        "KG8", "structures-set",
        "trained on the first 60 sets alone, until their counts are known by heart",
        {"samples": 60},
        "over-fit", onset="lowest-validation", seeds=_SEEDS,
    ),
)  # fmt: skip

CONTROLS: tuple[Control, ...] = (
    _healthy("KGH1", "tokens-brackets", cell="lstm", clip=1.0),
    _healthy("KGH2", "tokens-reverse", batch=64, schedule="cosine", warmup=20, dropout=0.05),
    _healthy("KGH3", "structures-pendulum", activation="silu", optimiser="nadam", batch=128),
    _healthy("KGH4", "structures-graph", norm="layer", optimiser="adamw", weight_decay=0.01,
             accumulate=2),
)  # fmt: skip
