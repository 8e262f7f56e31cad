"""The last part, written blind: faults of layers and loops in networks that see pictures."""

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
        "KA3", "vgg-adam",
        "the bias of the third convolution starts at -8, so that no unit behind it is ever above "
        "zero",
        {"odd_layer": 2, "odd_bias": -8.0}, "dead", ("vanishing",), layers=("hidden.2.*",),
        seeds=_SEEDS,
    ),
    Fault(
        "KA4", "cnn",
        "all weights of a convolutional network start as one constant: its filters stay copies of "
        "each other",
        {"init": "constant"}, "symmetry", ("slow",), seeds=_SEEDS,
    ),
    Fault(
        "KA5", "squeezed",
        "the list of parameters given to AdamW lacks all convolutions; only norms, gates and the "
        "output layer are trained",
        {"left_out": "hidden.*.conv.*"}, "not-training", ("slow",), layers=("hidden.*.conv.*",),
        seeds=_SEEDS,
    ),
    Fault(
        "KA6", "mixer",
        "zero_grad is never called in the loop of an MLP-mixer under RAdam: gradients of all "
        "batches are summed",
        {"zero_grad": "never"}, "wiring", ("exploding", "lr-high", "oscillating"), seeds=_SEEDS,
    ),
    Fault(
        "KA7", "bottleneck",
        "mixed precision by hand: the loss scale is doubled every six steps and nobody looks "
        "whether a gradient in half precision has overflowed",
        {"half": True, "scale_period": 6}, "nan", (), "nonfinite",
        seeds=_SEEDS,
    ),
    Fault(
        "KA8", "vgg",
        "a debugging subset was left in: a convolutional network is trained on sixty noisy "
        "pictures for all of its steps",
        {"samples": 60}, "over-fit", (), "lowest-validation", seeds=_SEEDS,
    ),
)  # fmt: skip

CONTROLS: tuple[Control, ...] = (
    # A rate half as high again, larger batches, a warm-up and a cosine.
    _healthy("KAH1", "bottleneck", lr=0.03, batch=48, schedule="cosine", warmup=20),
    # Another activation, a norm, and AdamW in the place of momentum.
    _healthy(
        "KAH2", "vgg", activation="silu", norm="group", optimiser="adamw", lr=2e-3,
        weight_decay=0.01,
    ),
    # Longer, in larger batches, with gradients clipped.
    _healthy("KAH3", "mixer", batch=64, clip=1.0, steps=420, schedule="cosine", warmup=20),
    # Nadam, a smooth activation, and gradients of two half batches put together.
    _healthy(
        "KAH4", "autoencoder", optimiser="nadam", activation="elu", accumulate=2, batch=32,
        steps=400,
    ),
)  # fmt: skip
