"""The last blind part on signals and pictures: faults and controls written without the rules."""

from __future__ import annotations

from functools import partial

from ..controls import Control
from ..faults import Fault
from ..healthy import healthy

_SEEDS = (100, 101, 102, 103, 104)
_CONTROL_SEEDS = (100, 101, 102, 103, 104, 105, 106)
_healthy = partial(healthy, _CONTROL_SEEDS)

FAULTS: tuple[Fault, ...] = (
    Fault("LB1", "signals-tall", "the gain of every layer's start is 0.65 of what it should be",
          {"init_scale": 0.65}, "vanishing", ("slow",), seeds=_SEEDS),
    Fault("LB2", "signals-motion", "the convolution in front of the memory starts below zero",
          {"odd_layer": 0, "odd_bias": -10.0}, "dead", ("not-training",),
          layers=("hidden.0.*",), seeds=_SEEDS),
    Fault("LB3", "signals-texture", "the second convolution is loaded without its scale of 1/200",
          {"odd_layer": 1, "odd_scale": 200.0}, "exploding", ("nan", "dead"),
          layers=("hidden.1.*",), seeds=_SEEDS),
    Fault("LB4", "signals-pitch", "a warm-up counted in examples, not in steps",
          {"warmup": 5000}, "slow", ("lr-low",), seeds=_SEEDS),
    Fault("LB5", "signals-glyphs", "a decay meant for late epochs comes every 30 steps",
          {"schedule": "steps", "gamma": 0.01, "period": 30}, "plateau", ("lr-low", "slow"),
          onset=30, seeds=_SEEDS),
    Fault("LB6", "signals-tall", "cut from the graph behind the eighth convolution",
          {"detach_after": 7}, "not-training", (), layers=("hidden.[0-7].*",), seeds=_SEEDS),
    Fault("LB7", "cnn4", "the first checkpoint is loaded again every 45 steps",
          {"restored": 45}, "wiring", ("oscillating", "spike"), onset=44, seeds=_SEEDS),
    Fault("LB8", "signals-cells", "squares of raw scores in training, entropy in validation",
          {"loss": "auto", "held_loss": "bce"}, "loss-pairing", (), seeds=_SEEDS),
    Fault("LB9", "cnn-residual", "a new loader from step 130 on: each picture has another's label",
          {"switch_step": 130, "switched": (("labels", "shifted"),)}, "data", ("diverging",),
          onset=130, seeds=_SEEDS),
    Fault("LB10", "signals-glyphs", "a loss scale in half precision that only ever doubles",
          {"half": True, "loss_scale": 1024.0, "scale_period": 25}, "nan", ("wiring", "exploding"),
          onset="nonfinite", seeds=_SEEDS),
    Fault("LB11", "cnn-sgd", "a range test of the rate left on: two in a hundred more at each step",
          {"schedule": "ramp"}, "diverging", ("lr-high", "exploding", "dead"),
          onset="divergence", seeds=_SEEDS),
)  # fmt: skip


CONTROLS: tuple[Control, ...] = (
    _healthy("LBH1", "signals-chirps", optimiser="nadam", schedule="one-cycle", lr=6e-3),
    _healthy("LBH2", "signals-beats", batch=8, accumulate=4, clip=0.5),
    _healthy("LBH3", "signals-glyphs", optimiser="nesterov", frozen=1, label_smoothing=0.1),
    _healthy(
        "LBH4", "signals-cells", optimiser="adamax", lr=6e-3, batch=4, schedule="restarts",
        period=60,
    ),
)  # fmt: skip
