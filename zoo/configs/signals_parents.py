"""Healthy parents of the blind part on signals and pictures."""

from __future__ import annotations

from dataclasses import replace

from .config import Config
from .parents import Parent, accurate, low

_CHIRPS = Config(
    data="signals-chirps", model="signals-conv", depth=4, width=16, lr=3e-3, batch=32
)  # fmt: skip
_TALL = replace(
    _CHIRPS, depth=10, width=12, activation="tanh", init="xavier", optimiser="sgd",
    lr=0.15, steps=330,
)  # fmt: skip
_BEATS = Config(
    data="signals-beats", model="signals-dilated", depth=5, width=10, norm="batch", residual=True,
    optimiser="sgd", momentum=0.9, lr=0.03, batch=32, steps=240,
)  # fmt: skip
_MOTION = Config(
    data="signals-motion", model="signals-listener", depth=1, width=16, lr=1e-2, batch=32,
)  # fmt: skip
_TEXTURE = Config(
    data="signals-texture", model="signals-conv", depth=4, width=12, optimiser="sgd", lr=0.05,
    batch=32, steps=350,
)  # fmt: skip
_CELLS = Config(
    data="signals-cells", model="signals-u", depth=4, width=8, lr=3e-3, batch=16, loss="bce",
    steps=240,
)  # fmt: skip
_GRAINY = Config(
    data="signals-grainy", model="signals-painter", depth=3, width=12, optimiser="sgd",
    momentum=0.9, lr=0.03, batch=32,
)  # fmt: skip
_WAKE = Config(
    data="signals-wake", model="signals-listener", depth=0, width=24, cell="rnn",
    activation="tanh", lr=2e-3, batch=32,
)  # fmt: skip
_GLYPHS = Config(
    data="digits", model="signals-resnet", depth=4, width=12, norm="group", optimiser="sgd",
    momentum=0.9, lr=0.05, batch=32,
)  # fmt: skip
_PITCH = Config(
    data="signals-pitch", model="signals-listener", depth=0, width=16, cell="lstm", lr=1e-2,
    batch=32,
)  # fmt: skip
_FEW = replace(
    _MOTION, width=32, samples=100, label_noise=0.35, lr=5e-3, batch=25, steps=260, stop_step=45
)  # fmt: skip

SIGNALS_PARENTS: dict[str, Parent] = {
    "signals-chirps": accurate(_CHIRPS, 0.90),
    "signals-tall": accurate(_TALL, 0.85),
    "signals-beats": accurate(_BEATS, 0.90),
    "signals-motion": accurate(_MOTION, 0.90),
    "signals-texture": accurate(_TEXTURE, 0.90),
    "signals-cells": low(_CELLS, 0.20, 0.03),
    "signals-grainy": low(_GRAINY, 0.22, 0.04),
    "signals-wake": accurate(_WAKE, 0.95),
    "signals-glyphs": accurate(_GLYPHS, 0.90),
    "signals-pitch": low(_PITCH, 0.10, 0.10),
    "signals-few": low(_FEW, 1.35, 0.1),
}
