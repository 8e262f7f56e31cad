"""Pairs of the dev part whose storage changed: casts, and values on grids."""

from __future__ import annotations

from ..edits import SCHEMES, cast, palette, quantise, through
from ..pairs import make
from .places import ENCODER, MATRICES, MLP, ONE

_CASTS = [
    make(
        "dev",
        f"cast-{(before or 'F32').lower()}-{to.lower()}-{base}",
        base,
        "cast",
        cast(to),
        dtype=before,
    )
    for base, before, to in (
        ("minilm", None, "BF16"),
        ("minilm-2", None, "BF16"),
        ("minilm-2", None, "F16"),
        ("minilm-2", "BF16", "F16"),
        ("minilm-2", "BF16", "F32"),
        ("chgnet", None, "BF16"),
        ("chgnet", "F16", "F32"),
        ("silero", None, "F16"),
        ("gpt", None, "BF16"),
        ("llama", "F16", "BF16"),
        ("mlp", None, "F64"),
        ("cnn", None, "BF16"),
        ("lstm", None, "F16"),
    )
]
_THROUGH = [
    make(
        "dev",
        f"through-{to.lower()}-{rounding}-{base}",
        base,
        "cast",
        through(to, rounding=rounding),
    )
    for base, to, rounding in (
        ("minilm-2", "BF16", "nearest"),
        ("minilm-2", "BF16", "truncated"),
        ("minilm-2", "F16", "nearest"),
        ("chgnet", "BF16", "nearest"),
        ("chgnet", "BF16", "truncated"),
        ("silero", "BF16", "nearest"),
        ("gpt", "F16", "nearest"),
        ("gpt", "BF16", "truncated"),
        ("llama", "BF16", "nearest"),
        ("cnn", "F16", "nearest"),
    )
]
_TRUNCATED = [
    make("dev", f"truncated-{base}", base, "cast", cast("BF16", rounding="truncated"))
    for base in ("minilm-2", "chgnet", "gpt", "silero", "mlp")
]
_PARTIAL = [
    make("dev", "cast-matrices-bf16", "minilm-2", "cast", cast("BF16", where=ENCODER)),
    make(
        "dev",
        "cast-fp8-llama",
        "llama",
        "cast",
        cast("F8_E4M3", where=r"_proj\.weight"),
        dtype="BF16",
    ),
    make("dev", "cast-fp8-mlps", "minilm-2", "cast", cast("F8_E5M2", where=MLP)),
]
_GRIDS = [
    make("dev", f"{scheme}-minilm-2", "minilm-2", "quantised", quantise(ENCODER, scheme))
    for scheme in SCHEMES
]
_MORE_GRIDS = [
    make("dev", f"{scheme}-{base}", base, "quantised", quantise(MATRICES[base], scheme))
    for scheme, base in (
        ("int8-row", "chgnet"),
        ("int8-tensor", "gpt"),
        ("nf4", "gpt"),
        ("int4-g32", "llama"),
        ("q8_0", "llama"),
        ("fp8", "chgnet"),
        ("int8-row", "silero"),
        ("ternary", "llama"),
        ("uint4-g64", "gpt"),
        ("int8-row", "cnn"),
        ("q4_0", "chgnet"),
    )
]
_ONE_GRID = [
    make("dev", "nf4-one-matrix", "minilm-2", "quantised", quantise(ONE["minilm-2"], "nf4")),
    make("dev", "int4-row-one-matrix", "gpt", "quantised", quantise(ONE["gpt"], "int4-row")),
]
_STORED_GRIDS = [
    make(
        "dev",
        f"{scheme}-as-{dtype.lower()}-{base}",
        base,
        "quantised",
        quantise(MATRICES[base], scheme),
        dtype=dtype,
    )
    for scheme, dtype, base in (
        ("int8-row", "F16", "minilm-2"),
        ("nf4", "BF16", "minilm-2"),
        ("int4-g32", "F16", "gpt"),
        ("ternary", "BF16", "llama"),
    )
]
_PALETTES = [
    make("dev", f"palette-{colours}-{base}", base, "palette", palette(MATRICES[base], colours))
    for colours, base in ((16, "minilm-2"), (64, "gpt"), (8, "chgnet"), (256, "minilm-2"))
]

PAIRS = [
    *_CASTS,
    *_THROUGH,
    *_TRUNCATED,
    *_PARTIAL,
    *_GRIDS,
    *_MORE_GRIDS,
    *_ONE_GRID,
    *_STORED_GRIDS,
    *_PALETTES,
]
