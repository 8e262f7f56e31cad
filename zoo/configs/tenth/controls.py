"""Healthy controls of the tenth part: the families of the specification with other choices."""

from __future__ import annotations

from functools import partial

from ..controls import Control
from ..healthy import healthy

_healthy = partial(healthy, (120, 121, 122))

CONTROLS: tuple[Control, ...] = (
    _healthy("TNH1", "leaky", optimiser="adamw", width=96, lr=2e-3, weight_decay=0.02),
    _healthy("TNH2", "wine", momentum=0.9, lr=0.02, width=32),
    _healthy("TNH3", "deep8", optimiser="nadam", width=56, clip=1.0),
    _healthy("TNH4", "cnn", width=10, batch=32, schedule="linear", lr=3e-3, steps=250),
    _healthy("TNH5", "residual12", depth=6, width=24, lr=2e-3),
    _healthy("TNH6", "gru-waves", width=20, batch=32, schedule="cosine", lr=1e-2),
    _healthy("TNH7", "logistic", momentum=0.5, lr=0.05, batch=32),
    _healthy("TNH8", "dropout", dropout=0.25, depth=2, width=112, schedule="polynomial", lr=3e-3),
    _healthy("TNH9", "batch3", batch=4, width=64, lr=0.025),
    _healthy("TNH10", "moons", optimiser="adam", lr=5e-3, steps=700),
    _healthy("TNH11", "elu-rmsprop", frozen=1, width=72, warmup=20),
    _healthy("TNH12", "wide", accumulate=3, batch=16, schedule="cyclic", lr=0.08),
)
