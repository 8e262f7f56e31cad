"""Further configurations for acceptance: networks that read tokens, and those of structures."""

from __future__ import annotations

from functools import partial

from ..controls import Control
from ..faults import Fault
from ..healthy import healthy

_SEEDS = (110, 111, 112, 113, 114)
_CONTROL_SEEDS = (110, 111, 112, 113, 114, 115, 116)
_healthy = partial(healthy, _CONTROL_SEEDS)

FAULTS: tuple[Fault, ...] = (
    Fault("PE1", "structures-ratings", "300 ratings and no decay",
          {"samples": 300, "weight_decay": 0.0},
          "over-fit", (), onset="lowest-validation", seeds=_SEEDS),
    Fault("PE2", "structures-pendulum", "the second layer starts thirty times too large",
          {"odd_layer": 1, "odd_scale": 30.0},
          "exploding", ("nan",), layers=("hidden.1.*",), seeds=_SEEDS),
    Fault("PE3", "structures-graph", "the bias of the second round starts at -15",
          {"odd_layer": 1, "odd_bias": -15.0},
          "dead", ("vanishing",), layers=("hidden.1.*",), seeds=_SEEDS),
    Fault("PE4", "tokens-recall", "Adam at a rate of 0.3", {"lr": 0.3},
          "oscillating", ("lr-high", "dead"), seeds=_SEEDS),
    Fault("PE5", "tokens-brackets", "Adam's epsilon of 1", {"epsilon": 1.0},
          "slow", ("lr-low",), seeds=_SEEDS),
    Fault("PE6", "tokens-masked", "a cosine made for 25 steps: the rate is zero from there on",
          {"schedule": "short-cosine", "period": 25},
          "plateau", ("lr-low",), onset=65, seeds=_SEEDS),
    Fault("PE7", "tokens-sums", "cut from the graph behind the seventh layer",
          {"detach_after": 6},
          "not-training", (), layers=("tokens.*", "hidden.[0-6].*"), seeds=_SEEDS),
    Fault("PE8", "structures-heads", "the loss is scaled by 64, its gradients not scaled back",
          {"loss_scale": 64.0, "unscaled": False},
          "wiring", ("exploding", "lr-high", "nan"), seeds=_SEEDS),
    Fault("PE10", "gpt", "the loader gives the same batch for ever", {"order": "stuck"},
          "data", ("over-fit",), seeds=_SEEDS),
    Fault("PE11", "gpt-sgd", "gradients are 300 times too large at one step",
          {"burst_step": 250, "burst_factor": 300.0}, "spike", (), onset=250, seeds=_SEEDS),
    Fault("PE12", "structures-set", "the rate grows by 2 % a step: a search for it was left in",
          {"schedule": "ramp"},
          "diverging", ("lr-high", "exploding"), onset="divergence", seeds=_SEEDS),
)  # fmt: skip


CONTROLS: tuple[Control, ...] = (
    _healthy("PEH1", "tokens-topics", optimiser="nesterov", batch=12, schedule="cosine"),
    _healthy("PEH2", "structures-denoiser", batch=16, accumulate=2, clip=2.0),
    _healthy("PEH3", "gpt", optimiser="adamax", lr=6e-3, warmup=25),
    _healthy("PEH4", "tokens-tags", optimiser="adam", lr=6e-3, schedule="one-cycle"),
    _healthy("PEH5", "structures-siamese", dropout=0.1, width=64, batch=96),
    _healthy("PEH6", "structures-field", lr=2e-3, batch=40, schedule="cosine"),
)
