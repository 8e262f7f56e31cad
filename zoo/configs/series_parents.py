"""Healthy parents that read series, count, or code what they see; unknown to those with rules."""

from __future__ import annotations

from dataclasses import replace

from .config import Config
from .parents import Parent, accurate, low

_TAGGER = Config(
    model="reader", data="brackets", cell="gru", reads="every", depth=1, width=20, entry=8,
    init="xavier", lr=1e-2, batch=32, steps=200,
)  # fmt: skip
_REVIEWS = Config(
    model="reader", data="reviews", cell="lstm", reads="last", depth=2, width=16, entry=12,
    init="xavier", lr=1e-2, batch=40, clip=1.0, steps=260,
)  # fmt: skip
_ECHO_RNN = Config(
    model="reader", data="echo", cell="rnn", reads="every", depth=1, width=48, init="xavier",
    optimiser="rmsprop", lr=2e-3, batch=32, steps=240,
)  # fmt: skip
_BAG = Config(
    model="bag", data="reviews", depth=2, width=24, activation="relu", optimiser="sgd", lr=0.3,
    momentum=0.9, batch=32, steps=300,
)  # fmt: skip
_TCN = Config(
    model="tcn", data="seasonal", reads="last", depth=4, width=16, activation="elu",
    init="xavier", residual=True, optimiser="adamw", lr=4e-3, weight_decay=0.01, batch=48,
    steps=220,
)  # fmt: skip
_DEEP_TCN = replace(
    _TCN, data="motifs", reads="mean", depth=9, width=12, activation="tanh", optimiser="sgd",
    lr=0.05, momentum=0.9, weight_decay=0.0, batch=32, steps=150,
)  # fmt: skip
_NORM_TCN = replace(
    _TCN, data="motifs", reads="mean", depth=3, width=16, activation="relu", norm="batch",
    optimiser="adamax", lr=1e-2, batch=32, steps=180,
)  # fmt: skip
_GATED = Config(
    model="tcn", data="grammar", reads="every", depth=2, width=24, gated=True, init="xavier",
    lr=8e-3, batch=32, steps=220,
)  # fmt: skip
_ENCODER = Config(
    model="encoder", data="slots", reads="first", depth=2, width=24, activation="gelu",
    init="xavier", norm="layer", lr=4e-3, warmup=20, batch=32, steps=170,
)  # fmt: skip
_CASTER = Config(
    model="encoder", data="seasonal", reads="last", depth=2, width=24, activation="relu",
    init="xavier", norm="layer", norm_place="post", optimiser="sgd", lr=0.02, momentum=0.9,
    clip=2.0, batch=32, steps=190,
)  # fmt: skip
_ECHO = Config(
    model="encoder", data="echo", reads="every", causal=True, depth=1, width=32,
    activation="silu", init="xavier", norm="layer", optimiser="radam", lr=8e-3, batch=32, steps=220,
)  # fmt: skip
_TIED = Config(
    model="encoder", data="grammar", reads="every", causal=True, tied=True, entry_scale=0.3,
    length=10, depth=1, width=32, activation="gelu", init="xavier", norm="layer", optimiser="adamw",
    lr=1e-2, schedule="linear", warmup=15, weight_decay=0.02, batch=32, steps=260,
)  # fmt: skip
_CURVES = Config(
    model="narrow", data="curves", depth=2, width=32, code=6, activation="tanh",
    init="xavier", optimiser="sgd", lr=0.15, momentum=0.9, batch=32, steps=400,
)  # fmt: skip
_CODER = Config(
    model="narrow", data="autoencoder", depth=1, width=40, code=20, activation="relu",
    lr=6e-3, batch=64, steps=300,
)  # fmt: skip
_DENOISER = Config(
    data="autoencoder", depth=2, width=96, activation="relu", optimiser="sgd", lr=0.3,
    momentum=0.9, jitter=0.3, batch=64, steps=260,
)  # fmt: skip
_VARIATIONAL = Config(
    model="narrow", data="curves", depth=1, width=48, code=4, activation="silu",
    init="xavier", kl=2e-3, lr=5e-3, batch=48, steps=320,
)  # fmt: skip
_COUNTS = Config(
    data="counts", depth=2, width=24, loss="poisson", lr=4e-3, batch=48, steps=240, clip=5.0
)
_GLM = Config(
    model="logistic", data="counts", loss="poisson", init_scale=0.1, optimiser="sgd", lr=0.03,
    momentum=0.5, batch=32, steps=240,
)  # fmt: skip
_ROBUST = Config(
    data="heavy", depth=2, width=40, activation="leaky_relu", loss="huber", optimiser="sgd",
    lr=0.05, momentum=0.9, batch=32, steps=300,
)  # fmt: skip
_SPREAD = Config(
    data="spread", depth=2, width=32, activation="silu", init="xavier", loss="gaussian",
    lr=4e-3, batch=40, steps=300, clip=5.0,
)  # fmt: skip
_QUANTILE = Config(
    data="spread", depth=2, width=32, activation="tanh", init="xavier", loss="pinball",
    optimiser="sgd", lr=0.1, momentum=0.9, batch=24, steps=260,
)  # fmt: skip

SERIES_PARENTS: dict[str, Parent] = {
    "tagger": accurate(_TAGGER, 0.95, 0.05),
    "reviews-lstm": accurate(_REVIEWS, 0.85, 0.05),
    "echo-rnn": accurate(_ECHO_RNN, 0.85, 0.05),
    "bag": accurate(_BAG, 0.88, 0.05),
    "tcn": low(_TCN, 0.03, 0.02),
    "deep-tcn": accurate(_DEEP_TCN, 0.90, 0.05),
    "norm-tcn": accurate(_NORM_TCN, 0.93, 0.05),
    "gated-filters": low(_GATED, 1.0, 0.12),
    "encoder": accurate(_ENCODER, 0.92, 0.05),
    "caster": low(_CASTER, 0.04, 0.02),
    "echo": accurate(_ECHO, 0.92, 0.05),
    "tied-words": low(_TIED, 1.45, 0.2),
    "curves": low(_CURVES, 0.045, 0.015),
    "narrow-coder": low(_CODER, 0.25, 0.05),
    "denoiser": low(_DENOISER, 0.18, 0.05),
    "variational-curves": low(_VARIATIONAL, 0.04, 0.03),
    "counts": low(_COUNTS, -0.45, 0.15),
    "glm": low(_GLM, -0.55, 0.15),
    "robust": low(_ROBUST, 0.32, 0.1),
    "spread": low(_SPREAD, -0.6, 0.15),
    "quantile": low(_QUANTILE, 0.15, 0.03),
    "few-reviews": low(
        replace(
            _BAG, optimiser="adam", lr=1e-2, momentum=0.0, width=48, samples=60, stop_step=10
        ), 0.75, 0.1
    ),
    "few-grammar": low(
        replace(_GATED, width=32, samples=100, steps=200, stop_step=45), 1.5, 0.2
    ),
    "few-diabetes": low(
        Config(
            data="diabetes", depth=2, width=128, samples=70, lr=3e-3, batch=32, steps=300,
            stop_step=20,
        ), 0.88, 0.05
    ),
}  # fmt: skip
