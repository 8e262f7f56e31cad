"""Further faults and controls of networks that read series, count, or code what they see."""

from __future__ import annotations

from functools import partial

from ..controls import Control
from ..faults import Fault
from ..healthy import healthy

_SEEDS = (110, 111, 112, 113, 114)
_CONTROL_SEEDS = (110, 111, 112, 113, 114, 115, 116)
_healthy = partial(healthy, _CONTROL_SEEDS)

FAULTS: tuple[Fault, ...] = (
    Fault("PC1", "lstm-rows", "the rate grows by a fiftieth at each step",
          {"schedule": "ramp"},
          "diverging", ("lr-high", "oscillating"), onset="divergence", seeds=_SEEDS),
    Fault("PC2", "bag", "the bias of the second ReLU layer starts at -15",
          {"odd_layer": 1, "odd_bias": -15.0},
          "dead", ("vanishing",), layers=("hidden.1.*",), seeds=_SEEDS),
    Fault("PC3", "tcn", "the weights of the third convolution start 60 times too large",
          {"odd_layer": 2, "odd_scale": 60.0},
          "exploding", ("slow",), layers=("hidden.2.*",), seeds=_SEEDS),
    Fault("PC4", "tied-words", "40 sentences to learn from", {"samples": 40},
          "over-fit", (), onset="lowest-validation", seeds=_SEEDS),
    Fault("PC5", "tagger", "Adam's epsilon is 3", {"epsilon": 3.0},
          "slow", ("lr-low",), seeds=_SEEDS),
    Fault("PC6", "caster", "a cosine made for 12 steps: epochs were counted, not batches",
          {"schedule": "short-cosine", "period": 12},
          "plateau", ("lr-low", "not-training"), onset=12, seeds=_SEEDS),
    Fault("PC7", "gated-filters", "cut from the graph behind the second convolution",
          {"detach_after": 1},
          "not-training", ("slow",), layers=("tokens.*", "hidden.*"), seeds=_SEEDS),
    Fault("PC8", "denoiser", "eight batches are accumulated and not averaged",
          {"accumulate": 8, "averages": False},
          "wiring", ("exploding", "lr-high", "nan"), seeds=_SEEDS),
    Fault("PC9", "variational-curves", "the second loss weighs 0.6", {"kl": 0.6},
          "loss-pairing", ("plateau",), seeds=_SEEDS),
    Fault("PC10", "norm-tcn", "a stream sorted by class", {"order": "sorted"},
          "data", ("oscillating",), seeds=_SEEDS),
    Fault("PC11", "gru-waves", "one target is no number",
          {"bad_step": 130, "bad_kind": "target"},
          "nan", ("data",), onset=130, seeds=_SEEDS),
    Fault("PC12", "deep-tcn", "the gradients of one step are 300 times too large",
          {"burst_step": 142, "burst_factor": 300.0},
          "spike", ("exploding",), onset=142, seeds=_SEEDS),
)  # fmt: skip


CONTROLS: tuple[Control, ...] = (
    _healthy("PCH1", "tagger", optimiser="nadam", schedule="cosine", warmup=10, batch=48),
    _healthy("PCH2", "reviews-lstm", batch=10, lr=4e-3, dropout=0.1, steps=450),
    _healthy("PCH3", "tcn", schedule="one-cycle", lr=1e-2, clip=0.5),
    _healthy("PCH4", "curves", optimiser="nesterov", batch=16, accumulate=2),
    _healthy("PCH5", "deep-tcn", frozen=1, warmup=25, steps=220),
    _healthy("PCH6", "lstm-rows", schedule="restarts", period=60, lr=1e-2, zero_grad="after-step"),
)
