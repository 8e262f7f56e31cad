"""Pairs of the dev part whose change has few directions: LoRA, one outer product, abliteration."""

from __future__ import annotations

from ..edits import abliterate, lora, outer_product
from ..pairs import make
from ..training import trained_lora
from .places import ATTENTION, ENCODER, MATRICES, MLP, ONE, QV


def _label(dtype: str | None) -> str:
    return (dtype or "F32").lower()


_RANDOM = [
    make(
        "dev",
        f"lora-r{rank}-{_label(dtype)}-{base}-{seed}",
        base,
        "low_rank",
        lora(where, rank, seed, relative=size, decay=decay),
        dtype=dtype,
    )
    for seed, (base, where, rank, size, decay, dtype) in enumerate(
        (
            ("minilm-2", QV, 8, 0.03, 0.8, None),
            ("minilm-2", QV, 8, 0.03, 0.8, "BF16"),
            ("minilm-2", QV, 16, 0.05, 0.9, None),
            ("minilm-2", QV, 16, 0.1, 0.9, "BF16"),
            ("minilm-2", QV, 1, 0.02, 1.0, None),
            ("minilm-2", QV, 1, 0.05, 1.0, "BF16"),
            ("minilm-2", ATTENTION, 4, 0.02, 0.8, None),
            ("minilm-2", ATTENTION, 4, 0.05, 0.8, "BF16"),
            ("minilm-2", ENCODER, 8, 0.05, 0.9, None),
            ("minilm-2", ENCODER, 8, 0.1, 0.9, "F16"),
            ("minilm-2", MLP, 2, 0.01, 1.0, None),
            ("minilm-2", MLP, 32, 0.1, 0.95, None),
            ("minilm-2", QV, 64, 0.2, 0.97, None),
            ("minilm-2", QV, 8, 0.003, 0.8, None),
            ("minilm-2", ATTENTION, 8, 0.03, 1.0, "BF16"),
            ("minilm-2", MLP, 8, 0.05, 0.7, "F16"),
            ("minilm", QV, 8, 0.04, 0.8, None),
            ("minilm", ATTENTION, 16, 0.1, 0.9, "BF16"),
            ("gpt", r"c_attn\.weight", 4, 0.05, 0.8, None),
            ("gpt", r"c_attn\.weight", 4, 0.1, 0.8, "BF16"),
            ("llama", r"[qv]_proj", 2, 0.05, 0.9, None),
            ("llama", r"[qv]_proj", 4, 0.1, 0.9, "BF16"),
            ("llama", MATRICES["llama"], 6, 0.1, 0.9, "F16"),
            ("chgnet", MATRICES["chgnet"], 4, 0.05, 0.9, None),
            ("silero", r"lstm_cell\.weight", 8, 0.05, 0.9, None),
            ("mlp", MATRICES["mlp"], 4, 0.05, 0.9, None),
            ("lstm", MATRICES["lstm"], 4, 0.05, 0.9, "BF16"),
        )
    )
]
_TRAINED = [
    make(
        "dev",
        f"trained-lora-r{rank}-{_label(dtype)}-{base}-{index}",
        base,
        "low_rank",
        trained_lora(base, where, rank, steps=steps),
        dtype=dtype,
    )
    for index, (base, where, rank, steps, dtype) in enumerate(
        (
            ("gpt", r"c_attn\.weight", 8, 60, None),
            ("gpt", r"c_attn\.weight", 8, 60, "BF16"),
            ("gpt", r"c_attn\.weight", 8, 60, "F16"),
            ("gpt", r"(attn|mlp)\.c_\w+\.weight", 4, 120, None),
            ("gpt", r"(attn|mlp)\.c_\w+\.weight", 4, 120, "BF16"),
            ("gpt", r"c_fc\.weight", 16, 60, None),
            ("llama", r"[qv]_proj", 8, 60, None),
            ("llama", r"[qv]_proj", 8, 60, "BF16"),
            ("llama", r"[qkvo]_proj", 4, 100, None),
            ("llama", r"[qkvo]_proj", 4, 100, "F16"),
            ("llama", MATRICES["llama"], 2, 60, "BF16"),
            ("llama", MATRICES["llama"], 16, 120, None),
            ("mlp", MATRICES["mlp"], 8, 100, None),
            ("lstm", MATRICES["lstm"], 4, 60, None),
        )
    )
]
_PRODUCTS = [
    make(
        "dev",
        f"product-{base}-{seed}",
        base,
        "outer_product",
        outer_product(where, size, seed),
        dtype=dtype,
    )
    for seed, (base, where, size, dtype) in enumerate(
        (
            ("minilm-2", r"layer\.1\.output\.dense\.weight", 0.05, None),
            ("minilm-2", r"layer\.1\.output\.dense\.weight", 0.05, "BF16"),
            ("minilm", r"layer\.3\.output\.dense\.weight", 0.02, "F16"),
            ("gpt", ONE["gpt"], 0.1, "BF16"),
            ("llama", r"layers\.1\.mlp\.down_proj", 0.05, None),
        )
    )
]
_ABLITERATED = [
    make(
        "dev",
        f"abliterated-{base}-{seed}",
        base,
        "abliterated",
        abliterate(where, seed, strength=strength),
        dtype=dtype,
    )
    for seed, (base, where, strength, dtype) in enumerate(
        (
            ("minilm-2", r"encoder.*output\.dense\.weight", 1.0, None),
            ("minilm-2", r"encoder.*output\.dense\.weight", 1.0, "BF16"),
            ("minilm", r"encoder.*output\.dense\.weight", 1.0, None),
            ("llama", r"(o|down)_proj", 1.0, None),
            ("llama", r"(o|down)_proj", 0.7, "BF16"),
        )
    )
]

PAIRS = [*_RANDOM, *_TRAINED, *_PRODUCTS, *_ABLITERATED]
