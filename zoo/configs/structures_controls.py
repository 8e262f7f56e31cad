"""Healthy controls on structures: what else people do with them and is no fault."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from .config import Config
from .controls import Control
from .parents import Parent, accurate, low
from .structures_parents import STRUCTURES_PARENTS

_SEEDS = (60, 61, 62, 63, 64, 65, 66)


def _kin(name: str, target: float | None = None, **changes: Any) -> Parent:
    parent = STRUCTURES_PARENTS[f"structures-{name}"]
    config = replace(parent.config, **changes)
    return replace(parent, config=config, target=parent.target if target is None else target)


_CLONE = Config(
    data="structures-controller", depth=2, width=32, norm="layer", activation="silu", lr=3e-3
)
_QUANTILE = Config(data="structures-delays", depth=2, width=32, loss="pinball", lr=3e-3)

_HEALTHY: tuple[Parent, ...] = (
    _kin("graph", width=48, optimiser="sgd", momentum=0.9, lr=0.05, schedule="cosine", warmup=30),
    _kin("set", dropout=0.1, width=48, schedule="one-cycle", lr=6e-3),
    _kin("set", batch=8, accumulate=4, zero_grad="after-step"),
    _kin("denoiser", optimiser="adam", momentum=0.0, lr=2e-3, jitter=0.1),
    _kin("denoiser", batch=8, lr=0.03, schedule="linear"),
    _kin("field", depth=4, activation="gelu", norm="layer", optimiser="nadam", lr=2e-3),
    _kin("pendulum", clip=1.0, optimiser="rmsprop", lr=1e-3, steps=350),
    _kin("pendulum", target=0.1, data="structures-lorenz", width=48, steps=350),
    _kin("ratings", entry=16, schedule="restarts", period=100),
    _kin("siamese", target=0.85, optimiser="adamw", momentum=0.0, lr=2e-3, label_smoothing=0.1),
    _kin("siamese", target=0.85, pretrained=200, frozen=2, new_head=True, steps=200),
    _kin("heads", depth=4, width=16, optimiser="adam", momentum=0.0, lr=5e-3),
    accurate(_CLONE, 0.9),
    low(_QUANTILE, 0.25, 0.05),
)

STRUCTURES_CONTROLS: tuple[Control, ...] = tuple(
    Control(f"GC{number}", parent, seeds=_SEEDS) for number, parent in enumerate(_HEALTHY, 1)
)
