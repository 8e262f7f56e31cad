"""Odd runs in which nothing is wrong."""

from __future__ import annotations

from functools import partial

from ..controls import Control
from ..healthy import healthy

_SEEDS = (130, 131, 132)
_healthy = partial(healthy, _SEEDS)

ODD_CONTROLS: tuple[Control, ...] = (
    # Each example is mixed with a weaker one: the loss has a floor.
    _healthy("ODH1", "odd-read", augment="mix", lr=3e-3, steps=240),
    # Resumes without the optimiser's state, twice.
    _healthy("ODH2", "odd-half", events=((60, "rebuild", ""), (130, "rebuild", ""))),
    # A resume as it should be: new tensors, and an optimiser that has them.
    _healthy("ODH3", "odd-assigned", events=((90, "assign", "*"), (90, "rebuild", ""))),
    # Gradients two steps late, at a rate that allows for it.
    _healthy("ODH4", "odd-late", delay=2, lr=0.03, activation="gelu", steps=240),
    # Signs alone, with momentum.
    _healthy("ODH5", "odd-signs", momentum=0.9, lr=4e-4, schedule="constant"),
    # Adapters in a wider frozen network.
    _healthy("ODH6", "odd-adapters", width=32, code=4, lr=2e-2),
    # The top layers learn first; the others are thawed one by one.
    _healthy(
        "ODH7", "odd-hinges",
        events=((0, "freeze", "hidden.[01].*"), (30, "thaw", "hidden.1.*"), (60, "thaw", "*")),
    ),
    # Steps as long as loss and slope ask for.
    _healthy("ODH8", "odd-slopes", polyak=0.08, label_noise=0.1),
    # One seed for every layer: those of one shape start as one.
    _healthy("ODH9", "odd-resumed", same_layers=True),
    # The greatest twentieth of each gradient is sent.
    _healthy("ODH10", "odd-sent", top_share=0.05, steps=320),
    # Three weights of four are held at zero.
    _healthy("ODH11", "odd-sparse", pruned=(("hidden.*.linear.weight", 0.7),), width=80),
    # An Adam with moments in half precision, and an epsilon that fits them.
    _healthy("ODH12", "odd-half", state_in="float16", epsilon=1e-3, lr=4e-3),
)  # fmt: skip
