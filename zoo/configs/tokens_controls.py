"""Healthy controls that read tokens: what else people do and is in order."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from .controls import Control
from .tokens_parents import TOKENS_PARENTS


def _control(name: str, parent_name: str, target: float | None = None, **changes: Any) -> Control:
    parent = TOKENS_PARENTS[parent_name]
    parent = replace(
        parent,
        config=replace(parent.config, **changes),
        target=parent.target if target is None else target,
    )
    return Control(name, parent, seeds=(60, 61, 62, 63, 64, 65, 66))


TOKENS_CONTROLS: tuple[Control, ...] = (
    _control("CC1", "tokens-reverse", width=48, lr=2e-3, warmup=30, schedule="cosine"),
    _control("CC2", "tokens-reverse", depth=3, dropout=0.05),
    _control("CC3", "tokens-grammar", schedule="inverse-root", steps=400, lr=3e-3),
    _control("CC4", "tokens-grammar", norm_place="post", warmup=50, weight_decay=0.05, clip=1.0),
    _control("CC5", "tokens-masked", norm_place="pre", depth=2, lr=3e-3, schedule="restarts",
             period=100),
    _control("CC6", "tokens-brackets", cell="lstm", memory_bias=1.0, lr=8e-3),
    _control("CC7", "tokens-brackets", accumulate=2, batch=16, clip=1.0, optimiser="nadam"),
    _control("CC8", "tokens-recall", cell="gru", length=10, lr=8e-3),
    _control("CC9", "tokens-topics", batch=4, lr=0.02, momentum=0.0, steps=500),
    _control("CC10", "tokens-topics", dropout=0.2, label_noise=0.15, target=0.85, lr=0.03),
    _control("CC11", "tokens-sums", depth=5, activation="silu", schedule="one-cycle", lr=3e-3),
    _control("CC12", "tokens-tags", norm="group", frozen=1, lr=0.2),
    _control("CC13", "tokens-tags", optimiser="adamw", lr=5e-3, weight_decay=0.02, steps=400),
    _control("CC14", "tokens-tags", pretrained=150, new_head=True, frozen=1),
)  # fmt: skip
