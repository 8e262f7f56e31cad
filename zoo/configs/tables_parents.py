"""Healthy parents on tables, beside those of the specification."""

from __future__ import annotations

from dataclasses import replace

from .config import Config
from .parents import Parent, accurate, low

_QUANTILES = Config(
    data="tables-quantiles", width=48, optimiser="sgd", momentum=0.9, lr=0.03, batch=32
)
_SELU = Config(
    data="tables-s-curve", depth=10, width=24, activation="selu", init="xavier", lr=1e-3, batch=32
)
_RESIDUAL = Config(
    model="tables-residual", data="tables-seldom", norm="batch", residual=True, width=32,
    dropout=0.1, optimiser="adamw", weight_decay=0.01, lr=2e-3, batch=32,
)  # fmt: skip
_TOKENS = Config(
    model="tables-tokens", data="tables-impedance", norm="layer", residual=True, depth=2,
    width=16, activation="gelu", init="xavier", lr=3e-3, batch=32,
)  # fmt: skip
_CODES = Config(
    model="tables-codes", data="tables-codes", entry=4, entry_scale=0.3, depth=2, width=48,
    lr=3e-3, batch=32,
)  # fmt: skip
_MULTILABEL = Config(
    model="tables-low-rank", data="tables-multilabel", loss="bce", code=8, depth=4, width=32,
    activation="tanh", init="xavier", optimiser="nesterov", momentum=0.9, lr=0.05, batch=32,
)  # fmt: skip
_CROSS = Config(
    model="tables-cross", data="tables-products", depth=2, width=32, activation="silu",
    init="xavier", lr=1e-2, batch=32,
)  # fmt: skip
_ORDINAL = Config(
    model="tables-wide", data="tables-ordinal", loss="bce", depth=2, width=32, activation="elu",
    optimiser="sgd", lr=0.3, batch=32,
)  # fmt: skip
_DIABETES = Config(
    data="tables-diabetes", depth=2, width=128, dropout=0.4, init="xavier", optimiser="adamw",
    weight_decay=0.3, lr=3e-3, batch=32,
)  # fmt: skip

TABLES_PARENTS: dict[str, Parent] = {
    "tables-quantiles": accurate(_QUANTILES, 0.85),
    "tables-selu": accurate(_SELU, 0.90),
    "tables-residual": accurate(_RESIDUAL, 0.88),
    "tables-tokens": low(_TOKENS, 0.10, 0.05),
    "tables-codes": accurate(_CODES, 0.77),
    "tables-multilabel": low(_MULTILABEL, 0.34, 0.05),
    "tables-cross": low(_CROSS, 0.10, 0.05),
    "tables-ordinal": low(_ORDINAL, 0.27, 0.03),
    "tables-diabetes": low(replace(_DIABETES, steps=400), 0.57, 0.05),
}
