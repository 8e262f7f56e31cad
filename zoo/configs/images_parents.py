"""Healthy parents of the second unseen set: pictures and tables, networks of many makes."""

from __future__ import annotations

from dataclasses import replace

from .config import Config
from .parents import Parent, accurate, low

_VGG = Config(
    data="shapes", model="vgg", depth=4, width=8, optimiser="sgd", lr=0.02, momentum=0.9, batch=40,
    steps=260,
)  # fmt: skip
_BOTTLENECK = Config(
    model="bottleneck", depth=5, width=12, norm="batch", optimiser="nesterov", lr=0.02,
    momentum=0.9, batch=32, steps=200,
)  # fmt: skip
_SEPARABLE = Config(
    data="ink", model="separable", depth=5, width=16, optimiser="adamax", lr=6e-3, batch=32,
    steps=260,
)  # fmt: skip
_SQUEEZED = Config(
    data="shapes", model="squeezed", depth=3, width=12, norm="group", optimiser="adamw", lr=5e-3,
    weight_decay=0.01, batch=32, steps=280,
)  # fmt: skip
_MIXER = Config(
    model="mixer", depth=3, width=20, activation="gelu", init="xavier", optimiser="radam", lr=1e-2,
    batch=32, steps=260,
)  # fmt: skip
_GATED = Config(
    data="mixture", model="gated", depth=4, width=40, activation="tanh", init="xavier",
    optimiser="adam", lr=3e-3, batch=50, steps=260,
)  # fmt: skip
_HIGHWAY = Config(
    data="mixture", model="gated", depth=14, width=24, activation="selu", residual=True,
    init="xavier", gate_bias=-1.5, optimiser="sgd", lr=0.1, momentum=0.9, batch=64, steps=280,
)  # fmt: skip
_DENSE = Config(
    data="quadratic", model="dense", depth=5, width=16, optimiser="sgd", lr=0.05, momentum=0.9,
    batch=64, steps=320,
)  # fmt: skip
_EXPERTS = Config(
    data="mixture", model="experts", depth=8, width=3, activation="elu", init="xavier", lr=1e-2,
    batch=64, steps=300,
)  # fmt: skip
_ENTITIES = Config(
    data="categories", model="entities", depth=2, width=24, init="xavier", lr=1e-2, batch=64,
    steps=300,
)  # fmt: skip
_TIED = Config(
    data="autoencoder", model="tied", depth=2, width=40, activation="softplus", init="xavier",
    optimiser="rmsprop", lr=1e-3, batch=48, steps=280,
)  # fmt: skip
_VAE = Config(
    data="autoencoder", model="variational", width=64, activation="silu", init="xavier", lr=4e-3,
    batch=64, steps=280, loss="variational", held_loss="rebuilt", prior=0.3, spread_limit=6.0,
)  # fmt: skip
_PAIRS = Config(
    data="views", model="pairs", depth=2, width=48, init="xavier", lr=2e-3, batch=48, steps=260,
    loss="contrast",
)  # fmt: skip
_TAGS = Config(
    data="tags", depth=2, width=48, activation="relu6", init="xavier", optimiser="adadelta",
    lr=1.0, batch=32, steps=300, loss="bce",
)  # fmt: skip
_WAVES = Config(data="surface", depth=3, width=48, activation="sine", lr=2e-3, batch=128, steps=400)
_HARD = Config(
    data="ink", depth=3, width=48, activation="hardtanh", init="orthogonal", optimiser="asgd",
    lr=0.3, batch=32, steps=300,
)  # fmt: skip

IMAGES_PARENTS: dict[str, Parent] = {
    "vgg": accurate(_VGG, 0.90),
    "bottleneck": accurate(_BOTTLENECK, 0.90),
    "separable": accurate(_SEPARABLE, 0.90),
    "squeezed": accurate(_SQUEEZED, 0.88),
    "own-scale": accurate(
        replace(_VGG, own_eps=1e-3, bad_step=140, bad_kind="blank", lr=0.02, depth=3), 0.88
    ),
    "mixer": accurate(_MIXER, 0.82),
    "gated": accurate(_GATED, 0.88),
    "deep-gated": accurate(replace(_GATED, depth=6, gate_bias=2.0), 0.85),
    "highway": accurate(_HIGHWAY, 0.85),
    "dense": accurate(_DENSE, 0.85),
    "experts": accurate(_EXPERTS, 0.85),
    "entities": accurate(_ENTITIES, 0.93),
    "tied": low(_TIED, 0.22, 0.05),
    "variational": low(_VAE, 0.25, 0.08),
    "pairs": low(_PAIRS, 2.9, 0.2),
    "tags": low(_TAGS, 0.43, 0.05),
    "waves": low(_WAVES, 0.07, 0.05),
    "hard": accurate(_HARD, 0.90),
    "seldom": accurate(
        replace(
            _DENSE, data="ink", depth=2, width=32, lr=0.02, imbalance=0.1,
            class_weights="balanced", batch=64,
        ),
        0.82,
    ),
    "deep-vgg": accurate(
        replace(_VGG, depth=7, width=8, norm="batch", lr=0.05, batch=32, steps=240), 0.90
    ),
    "deep-plain": accurate(
        replace(_VGG, data="ink", depth=8, width=10, lr=0.01, clip=1.0, steps=240), 0.85
    ),
    "vgg-adam": accurate(replace(_VGG, optimiser="adam", lr=2e-3), 0.90),
    "tied-sgd": low(
        replace(_TIED, depth=1, activation="tanh", optimiser="sgd", lr=0.3, momentum=0.8),
        0.12, 0.08,
    ),
    "pairs-sgd": low(replace(_PAIRS, optimiser="sgd", lr=0.1, momentum=0.9), 2.95, 0.2),
    "gentle": accurate(
        replace(_DENSE, data="ink", depth=2, width=64, optimiser="adam", lr=2e-4, steps=400), 0.85
    ),
    "raw-vae": low(replace(_VAE, input_scale=80.0, spread_limit=4.0), 1.2, 0.1),
    "hot-tags": low(
        replace(_TAGS, activation="relu", optimiser="adam", lr=1e-2, input_scale=9.0), 0.6, 0.1
    ),
    "tuned-vgg": accurate(
        replace(_VGG, pretrained=150, lr=5e-3, steps=160, schedule="cosine"), 0.90
    ),
    "few-rows": low(
        replace(
            _GATED, data="diabetes", samples=80, depth=2, width=64, stop_step=25, lr=2e-3,
            batch=20, steps=300,
        ),
        0.60, 0.15,
    ),
    "few-shapes": low(
        replace(_SQUEEZED, samples=60, norm="none", label_noise=0.4, stop_step=40, steps=320,
                lr=4e-3),
        1.45, 0.1,
    ),
    "sums": low(
        replace(_DENSE, data="diabetes", depth=2, width=24, lr=0.01, batch=32, steps=300,
                weight_decay=0.1, dropout=0.2),
        0.75, 0.15,
    ),
}  # fmt: skip
