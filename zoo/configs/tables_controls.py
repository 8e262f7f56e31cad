"""Healthy controls on tables: what people do that is no fault."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from .controls import Control
from .parents import Parent
from .tables_parents import TABLES_PARENTS

_SEEDS = (60, 61, 62, 63, 64, 65, 66)


def _kin(parent_name: str, target: float | None = None, **changes: Any) -> Parent:
    parent = TABLES_PARENTS[f"tables-{parent_name}"]
    config = replace(parent.config, **changes)
    return replace(parent, config=config, target=parent.target if target is None else target)


_HEALTHY: tuple[Parent, ...] = (
    _kin("ordinal", target=0.30, batch=8, lr=0.1, width=48, steps=500),
    _kin("quantiles", optimiser="adam", momentum=0.0, lr=3e-3, width=96, steps=500),
    _kin("selu", depth=14, warmup=40, clip=1.0),
    _kin("selu", target=0.80, data="tables-iris", depth=3, batch=8, steps=200),
    _kin("residual", norm="layer", dropout=0.2, depth=4, steps=450),
    _kin("residual", optimiser="sgd", momentum=0.9, lr=0.05, schedule="cosine", norm_momentum=0.05),
    _kin("residual", label_smoothing=0.1, batch=64, weight_decay=0.1),
    _kin("tokens", schedule="one-cycle", lr=8e-3, weight_decay=0.01, optimiser="adamw"),
    _kin("tokens", depth=3, width=12, dropout=0.05, batch=48),
    _kin("codes", target=0.69, pretrained=300, new_head=True, frozen=1),
    _kin("multilabel", accumulate=4, batch=8, zero_grad="after-step"),
    _kin("cross", target=0.15, schedule="restarts", period=75, lr=2e-2),
    _kin("ordinal", jitter=0.1, activation="silu", norm="layer", optimiser="rmsprop", lr=2e-3),
    _kin("diabetes", width=64, batch=16),
)

TABLES_CONTROLS: tuple[Control, ...] = tuple(
    Control(f"AC{number}", parent, seeds=_SEEDS) for number, parent in enumerate(_HEALTHY, 1)
)
