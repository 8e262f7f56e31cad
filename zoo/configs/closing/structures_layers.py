"""Faults and controls on structures, written blind: one of each class that has layers to name."""

from __future__ import annotations

from functools import partial

from ..controls import Control
from ..faults import Fault
from ..healthy import healthy

_FAULT_SEEDS = (80, 81, 82, 83, 84)
_CONTROL_SEEDS = (80, 81, 82, 83, 84, 85, 86)
_control = partial(healthy, _CONTROL_SEEDS)


FAULTS: tuple[Fault, ...] = (
    Fault("JK2", "structures-pendulum", "weights four times Xavier's in a motion that is fed back",
          {"init_scale": 4.0},
          "exploding", (), seeds=_FAULT_SEEDS),
    Fault("JK3", "structures-graph", "the bias of the second round starts at -12",
          {"odd_layer": 1, "odd_bias": -12.0},
          "dead", ("vanishing", "plateau"), layers=("hidden.[12].*",), seeds=_FAULT_SEEDS),
    Fault("JK4", "structures-heads", "weights at zero and biases at 0.1",
          {"init": "zero", "hidden_bias": 0.1},
          "symmetry", ("plateau",), layers=("hidden.*", "gate.*"), seeds=_FAULT_SEEDS),
    Fault("JK5", "structures-denoiser", "the optimiser was not given the encoder",
          {"left_out": "hidden.[01].*"},
          "not-training", ("plateau",), layers=("hidden.[01].*",), seeds=_FAULT_SEEDS),
    Fault("JK6", "structures-siamese", "each epoch begins by loading the first checkpoint",
          {"restored": 40},
          "wiring", ("oscillating", "spike"), 39, seeds=_FAULT_SEEDS),
    Fault("JK7", "structures-set", "a loss scale for half precision that doubles and skips nothing",
          {"half": True, "scale_period": 12},
          "nan", (), "nonfinite", seeds=_FAULT_SEEDS),
    Fault("JK8", "structures-ratings", "a thousand ratings and no weight decay",
          {"samples": 1000, "weight_decay": 0.0},
          "over-fit", (), "lowest-validation", seeds=_FAULT_SEEDS),
)  # fmt: skip

CONTROLS: tuple[Control, ...] = (
    _control("JKC1", "structures-graph", norm="layer", lr=2e-3, schedule="cosine", warmup=20),
    _control("JKC2", "structures-heads", batch=16, accumulate=2, weight_decay=1e-5),
    _control("JKC3", "structures-pendulum", activation="silu", width=48, clip=1.0, lr=2e-3),
    _control("JKC4", "structures-siamese", depth=4, lr=0.03, label_smoothing=0.05, batch=96),
)
