"""Pairs of the dev part whose values were edited: scaled, pruned, zeroed, rows, elements, noise."""

from __future__ import annotations

from ..edits import add_noise, edit_elements, edit_rows, flip_sign, prune, scale, zero
from ..pairs import make
from .places import MATRICES, ONE

_SCALED = [
    make("dev", f"scaled-{factor:g}-{base}", base, "scaled", scale(where, factor), dtype=dtype)
    for base, where, factor, dtype in (
        ("minilm-2", ".", 0.5, None),
        ("minilm-2", ".", 1.1, None),
        ("gpt", ".", 0.9, "BF16"),
        ("chgnet", ONE["chgnet"], 3.0, None),
        ("llama", MATRICES["llama"], 1.02, None),
        ("silero", ONE["silero"], 0.7, "F16"),
        ("cnn", ".", 2.0, None),
    )
]
_FLIPPED = [
    make("dev", f"flipped-{base}", base, "sign_flipped", flip_sign(ONE[base]), dtype=dtype)
    for base, dtype in (("minilm-2", None), ("gpt", "BF16"), ("silero", None))
]
_PRUNED = [
    make(
        "dev",
        f"pruned-{sparsity:g}-{pattern}-{base}{'-' + dtype.lower() if dtype else ''}",
        base,
        "pruned",
        prune(MATRICES[base], sparsity, pattern, overall=overall),
        dtype=dtype,
    )
    for base, sparsity, pattern, overall, dtype in (
        ("minilm-2", 0.5, "unstructured", False, None),
        ("minilm-2", 0.1, "unstructured", False, None),
        ("minilm-2", 0.9, "unstructured", False, None),
        ("minilm-2", 0.6, "unstructured", True, None),
        ("minilm-2", 0.5, "2:4", False, None),
        ("minilm-2", 0.5, "4:8", False, "BF16"),
        ("minilm-2", 0.25, "rows", False, None),
        ("gpt", 0.5, "2:4", False, None),
        ("gpt", 0.7, "unstructured", False, "BF16"),
        ("chgnet", 0.5, "unstructured", False, None),
        ("chgnet", 0.2, "rows", False, None),
        ("silero", 0.3, "unstructured", False, "F16"),
        ("cnn", 0.5, "rows", False, None),
        ("llama", 0.8, "unstructured", True, "BF16"),
        ("lstm", 0.5, "unstructured", False, None),
    )
]
_ZEROED = [
    make("dev", f"zeroed-{base}-{index}", base, "zeroed", zero(where), dtype=dtype)
    for index, (base, where, dtype) in enumerate(
        (
            ("minilm-2", ONE["minilm-2"], None),
            ("gpt", r"h\.3\.attn", "BF16"),
            ("chgnet", r"^site_wise\.weight", None),
            ("cnn", "fc", None),
        )
    )
]
_ELEMENTS = [
    make(
        "dev",
        f"elements-{number}-{base}{'-' + dtype.lower() if dtype else ''}",
        base,
        "sparse_edit",
        edit_elements(ONE[base], number, 8.0, seed),
        dtype=dtype,
    )
    for seed, (base, number, dtype) in enumerate(
        (
            ("minilm-2", 1, None),
            ("minilm-2", 20, None),
            ("minilm-2", 5, "BF16"),
            ("gpt", 1, "BF16"),
            ("gpt", 12, None),
            ("chgnet", 1, None),
            ("silero", 30, "F16"),
            ("llama", 2, None),
        )
    )
]
_ROWS = [
    make(
        "dev",
        f"rows-{rows}-{base}-{seed}",
        base,
        "row_edit",
        edit_rows(where, rows, size, seed),
        dtype=dtype,
    )
    for seed, (base, where, rows, size, dtype) in enumerate(
        (
            ("minilm-2", "word_embeddings", 3, 1.0, None),
            ("minilm-2", "word_embeddings", 40, 0.3, None),
            ("minilm-2", ONE["minilm-2"], 1, 0.5, "BF16"),
            ("gpt", "wte", 2, 1.0, None),
            ("llama", "embed_tokens", 5, 0.4, "BF16"),
            ("chgnet", "atom_embedding", 2, 0.5, None),
            ("llama", "lm_head", 3, 0.5, None),
        )
    )
]
_NOISE = [
    make(
        "dev",
        f"noise-{size:g}-{base}{'-' + dtype.lower() if dtype else ''}",
        base,
        "noise",
        add_noise(where, size, seed),
        dtype=dtype,
    )
    for seed, (base, where, size, dtype) in enumerate(
        (
            ("minilm-2", ".", 0.01, None),
            ("minilm-2", ".", 0.1, "BF16"),
            ("minilm-2", MATRICES["minilm-2"], 0.05, None),
            ("gpt", ".", 0.02, None),
            ("chgnet", MATRICES["chgnet"], 0.03, None),
            ("silero", ".", 0.05, "F16"),
            ("llama", ONE["llama"], 0.2, None),
        )
    )
]

PAIRS = [*_SCALED, *_FLIPPED, *_PRUNED, *_ZEROED, *_ELEMENTS, *_ROWS, *_NOISE]
