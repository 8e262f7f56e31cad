"""Healthy controls that read series, count, or code what they see: nothing is wrong with them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from .controls import Control
from .series_parents import SERIES_PARENTS

SEEDS = (20, 21, 22, 23)


def _control(name: str, parent_name: str, target: float | None = None, **changes: Any) -> Control:
    parent = SERIES_PARENTS[parent_name]
    config = replace(parent.config, **changes)
    aim = parent.target if target is None else target
    return Control(name, replace(parent, config=config, target=aim), SEEDS)


SERIES_CONTROLS: tuple[Control, ...] = (
    # Cells of three kinds, one and two layers of them, trained on to next to nothing.
    _control("QC1", "tagger"),
    _control("QC2", "reviews-lstm", 0.80, cell="gru", depth=1, dropout=0.2, clip=0.5),
    _control("QC3", "echo-rnn", optimiser="adam", schedule="polynomial"),
    _control("QC4", "echo-rnn", 0.75, cell="lstm", depth=1, width=32, lr=1e-2, steps=400, length=8),
    # Bags of words, noisy batches, labels that are partly wrong.
    _control("QC5", "bag", 0.80, batch=4, lr=0.03, schedule="linear", steps=500),
    _control("QC6", "bag", 0.80, label_noise=0.2, label_smoothing=0.05, optimiser="adagrad",
             lr=0.05, momentum=0.0, weight_decay=1e-3),
    # Convolutions over time: plain, gated, normalised, accumulated.
    _control("QC7", "tcn", schedule="one-cycle", lr=1e-2),
    _control("QC8", "deep-tcn", 0.85, depth=5, lr=0.03),
    _control("QC9", "norm-tcn", 0.88, norm="group", optimiser="nadam", lr=4e-3, schedule="linear"),
    _control("QC10", "gated-filters", accumulate=4, batch=8, steps=180),
    _control(
        "QC11", "gated-filters", 1.05, weight_decay=1e-4, schedule="restarts", period=55, lr=1e-2
    ),
    # Transformers: norms before and behind, tied, with values for tokens.
    _control("QC12", "encoder", 0.90, depth=3, width=16, schedule="cosine"),
    _control("QC13", "caster", 0.05, norm_place="pre", optimiser="adam", momentum=0.0, lr=2e-3),
    _control("QC14", "echo", optimiser="adamw", lr=5e-3, dropout=0.1, warmup=25),
    _control("QC15", "tied-words", 1.5),
    # Autoencoders: narrow, drawn, with noise on what they see, and with a penalty on weights.
    _control("QC16", "curves", 0.07, schedule="cyclic", lr=0.2),
    _control("QC17", "narrow-coder", 0.33, code=12, activation="elu", optimiser="radam", lr=8e-3),
    _control("QC18", "denoiser", 0.28, jitter=0.8, penalty=1e-5),
    _control("QC19", "variational-curves", kl=5e-3, width=32),
    # Counts, long tails, spreads and quantiles: losses below zero, and batches that leap.
    _control("QC20", "counts", optimiser="sgd", lr=0.02, momentum=0.8),
    _control("QC21", "glm", -0.5, batch=8, lr=0.01, steps=400),
    _control("QC22", "robust", 0.42, batch=6, lr=8e-3, steps=450),
    _control("QC23", "spread", -0.40, schedule="steps", gamma=0.5, period=110, width=48),
    _control("QC24", "quantile", batch=200, lr=0.2, steps=220),
    # Mixed precision done right, tuning of what was learnt, frozen layers, an early end.
    _control("QC25", "tcn", half=True, loss_scale=256.0),
    _control("QC26", "encoder", pretrained=120, lr=5e-4, warmup=0, steps=120),
    _control("QC27", "narrow-coder", 0.32, frozen=1, lr=8e-3),
    _control("QC28", "few-grammar", 1.6, lr=5e-3, stop_step=60),
)  # fmt: skip
