"""Healthy parents: each reaches its target, and every fault is a mutation of one of them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from .config import Config


@dataclass(frozen=True)
class Parent:
    """A configuration that works, and what it must reach on examples held back."""

    config: Config
    metric: str  # val_accuracy (higher is better) or val_loss (lower is better)
    target: float
    margin: float  # a mutant misses the target by more than this

    def reached(self, measured: float) -> bool:
        """Did a run reach the target?"""
        if self.metric == "val_accuracy":
            return measured >= self.target
        return measured <= self.target

    def missed(self, measured: float) -> bool:
        """Did a run miss the target by the margin? A value that is NaN did."""
        if self.metric == "val_accuracy":
            return not measured >= self.target - self.margin
        return not measured <= self.target + self.margin


def accurate(config: Config, target: float, margin: float = 0.03) -> Parent:
    """Return a parent that is asked for its accuracy."""
    return Parent(config, "val_accuracy", target, margin)


def low(config: Config, target: float, margin: float) -> Parent:
    """Return a parent that is asked for its loss."""
    return Parent(config, "val_loss", target, margin)


_DIGITS = Config()
_SGD = replace(_DIGITS, optimiser="sgd", lr=0.1)
_TANH = replace(_SGD, activation="tanh", init="xavier")
_CNN = Config(model="cnn", depth=2, width=12, lr=1e-3)
_BN_CNN = replace(_CNN, depth=5, norm="batch", optimiser="sgd", lr=0.3, init_scale=1.6)
_GPT = Config(
    model="transformer", data="markov", depth=2, width=32, length=12, batch=32,
    init="xavier", lr=2e-3,
)  # fmt: skip
_POST = replace(_GPT, depth=8, width=16, batch=16, norm_place="post", lr=1e-3, warmup=60)
_RNN = Config(model="rnn", data="sequences", width=32, activation="tanh")
_DEEP = replace(
    _DIGITS, depth=34, width=32, lr=5e-4, steps=400, residual=True, norm="layer", init="xavier"
)
_SMALL = replace(_DIGITS, samples=100, label_noise=0.3, width=256, steps=600)

PARENTS: dict[str, Parent] = {
    "mlp": accurate(_DIGITS, 0.93),
    "sgd": accurate(_SGD, 0.92),
    "tanh": accurate(_TANH, 0.92),
    "narrow": accurate(replace(_DIGITS, width=24, lr=3e-3), 0.92),
    "tight": accurate(replace(_DIGITS, width=10, lr=5e-3), 0.85),
    "sgd16": accurate(replace(_SGD, batch=16, steps=310), 0.92),
    "blobs16": accurate(replace(_SGD, data="blobs", batch=16, steps=320), 0.93),
    "single": accurate(replace(_SGD, batch=1, lr=0.01, steps=900), 0.80),
    "pair": accurate(replace(_TANH, batch=2, lr=0.05, steps=600), 0.85),
    "leaky": accurate(replace(_DIGITS, activation="leaky_relu"), 0.93),
    "gelu": accurate(replace(_DIGITS, activation="gelu", optimiser="adamw"), 0.93),
    "dropout": accurate(replace(_DIGITS, dropout=0.2), 0.93),
    "batch-norm": accurate(replace(_DIGITS, norm="batch", depth=4), 0.93),
    "deep8": accurate(replace(_DIGITS, depth=8, lr=5e-4), 0.90),
    "deep8-narrow": accurate(replace(_DIGITS, depth=8, width=16, lr=3e-3), 0.82),
    "deep12": accurate(replace(_SGD, depth=12, steps=400), 0.90),
    "deep20-tanh": accurate(
        replace(_TANH, depth=20, width=32, optimiser="adam", lr=1e-3, steps=500), 0.88
    ),
    "deep20-relu": accurate(replace(_DIGITS, depth=20, lr=5e-4, steps=500), 0.85),
    "deep34": accurate(_DEEP, 0.85),
    "deep16-circles": accurate(
        replace(_DIGITS, data="circles", depth=16, width=16, lr=1e-3, steps=400), 0.93
    ),
    "circles": accurate(replace(_DIGITS, data="circles", depth=2, width=32, lr=3e-3), 0.93),
    "rnn": accurate(_RNN, 0.95),
    "irnn": accurate(
        replace(_RNN, activation="relu", recurrent="identity", optimiser="sgd", lr=1e-3, length=30),
        0.95,
    ),
    "gru": accurate(replace(_RNN, model="gru", width=16, lr=1e-2, length=20), 0.95),
    "regression": low(
        replace(_DIGITS, data="regression", optimiser="sgd", lr=0.03, steps=400), 0.45, 0.2
    ),
    "regression-adam": low(replace(_DIGITS, data="regression", lr=3e-3), 0.45, 0.2),
    "regression-low": low(replace(_DIGITS, data="regression", lr=4e-4, steps=600), 0.55, 0.1),
    "autoencoder-sgd": low(
        replace(_SGD, data="autoencoder", depth=2, width=32, lr=0.3), 0.42, 0.08
    ),
    "autoencoder": low(
        replace(_DIGITS, data="autoencoder", depth=2, width=32, lr=3e-3), 0.28, 0.08
    ),
    "post-norm": low(_POST, 1.45, 0.15),
    "gpt": low(_GPT, 1.30, 0.05),
    "cnn": accurate(_CNN, 0.92),
    "cnn-low": accurate(replace(_CNN, lr=3e-4, steps=500), 0.88),
    "bn-cnn": accurate(_BN_CNN, 0.93),
    "blobs": accurate(replace(_SGD, data="blobs"), 0.95),
    "cancer": accurate(replace(_SGD, data="cancer", depth=2, width=16), 0.93),
    "logistic": accurate(replace(_SGD, model="logistic", data="cancer", lr=0.1), 0.93),
    "small": low(
        replace(_SMALL, dropout=0.6, weight_decay=0.1, optimiser="adamw", stop_step=None), 1.15, 0.1
    ),
    "small60": low(
        replace(_SMALL, samples=60, dropout=0.6, weight_decay=0.1, optimiser="adamw"), 1.9, 0.1
    ),
    "stopped": low(replace(_SMALL, stop_step=30), 1.2, 0.1),
}
