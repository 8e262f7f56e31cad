"""Pairs of the dev part that are real training, of all parameters or of some."""

from __future__ import annotations

from ..bases import load
from ..edits import cast
from ..model import Model
from ..pairs import Edit, Edited, Pair, make
from ..training import learned, tune

_WHOLE = [
    make(
        "dev",
        f"tuned-{base}-{(dtype or 'F32').lower()}-{seed}",
        base,
        "trained",
        tune(base, seed=seed, steps=steps, rate=rate),
        dtype=dtype,
    )
    for seed, (base, steps, rate, dtype) in enumerate(
        (
            ("mlp", 60, 1e-4, None),
            ("cnn", 40, 1e-4, None),
            ("lstm", 40, 1e-4, None),
            ("gpt", 60, 5e-5, None),
            ("llama", 60, 1e-4, None),
            ("gpt", 200, 2e-5, None),
            ("gpt", 60, 5e-5, "BF16"),
            ("llama", 60, 1e-4, "F16"),
            ("llama", 300, 3e-4, None),
            ("cnn", 200, 1e-3, None),
            ("mlp", 60, 1e-4, "BF16"),
            ("lstm", 100, 5e-4, "F16"),
        ),
        1,
    )
]
_PARTS = [
    make(
        "dev",
        f"tuned-{what}-{base}{'-' + dtype.lower() if dtype else ''}",
        base,
        "trained",
        tune(base, only=only, rate=1e-4),
        dtype=dtype,
    )
    for what, base, only, dtype in (
        ("head", "llama", "lm_head", None),
        ("head", "cnn", "fc", None),
        ("head", "lstm", "head", "BF16"),
        ("head", "mlp", r"^6\.", None),
        ("biases", "gpt", "bias", None),
        ("biases", "mlp", "bias", None),
        ("norms", "gpt", "ln_", None),
        ("norms", "llama", "norm", "BF16"),
        ("last-layer", "gpt", r"h\.3\.", None),
        ("two-layers", "llama", r"layers\.[01]\.", "F16"),
        ("attention", "gpt", "attn", None),
        ("mlps", "llama", r"mlp\.", "BF16"),
        ("frozen-embeddings", "gpt", r"h\.|ln_f", None),
        ("embeddings", "llama", "embed_tokens", None),
        ("convs", "cnn", "conv", None),
    )
]


def _transfer() -> Edit:
    """CHGNet's own fine-tune: its weights of 0.3.0, trained on with r2SCAN data."""

    def edit(model: Model) -> Edited:
        return learned(model, load("chgnet"), load("chgnet-r2scan"))

    return edit


_REAL: list[Pair] = [
    make("dev", "chgnet-to-r2scan", "chgnet", "trained", _transfer()),
    make("dev", "chgnet-to-r2scan-bf16", "chgnet", "trained + cast", _transfer(), cast("BF16")),
]

PAIRS = [*_WHOLE, *_PARTS, *_REAL]
