"""Pairs of the dev part whose order changed: permuted, transposed, exchanged, rotated, rescaled."""

from __future__ import annotations

from ..edits import (
    exchange,
    fold_norm,
    permute,
    permute_inconsistently,
    rescale_channels,
    rotate,
    transpose,
)
from ..model import Model
from ..pairs import Built, Pair, edited, make
from .places import BERT_HEADS, BERT_UNITS, CNN_UNITS, GPT_UNITS, LLAMA_UNITS, MLP_UNITS, ONE

_PERMUTED = [
    make(
        "dev",
        f"permuted-{name}",
        base,
        "permuted",
        permute(places, seed=seed, unit=unit),
        dtype=dtype,
    )
    for seed, (name, base, places, unit, dtype) in enumerate(
        (
            ("bert-units", "minilm-2", BERT_UNITS, 1, None),
            ("bert-heads", "minilm-2", BERT_HEADS, 32, None),
            ("bert-units-bf16", "minilm-2", BERT_UNITS, 1, "BF16"),
            ("gpt-units", "gpt", GPT_UNITS, 1, None),
            ("llama-units", "llama", LLAMA_UNITS, 1, "F16"),
            ("mlp-units", "mlp", MLP_UNITS, 1, None),
            ("cnn-channels", "cnn", CNN_UNITS, 1, None),
        )
    )
]
_INCONSISTENT = [
    make(
        "dev",
        f"inconsistent-{name}",
        base,
        "permuted_inconsistently",
        permute_inconsistently(*places, seed=seed),
        dtype=dtype,
    )
    for seed, (name, base, places, dtype) in enumerate(
        (
            ("bert", "minilm-2", (BERT_UNITS[0], BERT_UNITS[2]), None),
            ("bert-rows", "minilm-2", BERT_UNITS[:1], None),
            ("gpt", "gpt", (GPT_UNITS[0], GPT_UNITS[2]), None),
            ("mlp", "mlp", (MLP_UNITS[0], MLP_UNITS[2]), "BF16"),
            ("cnn", "cnn", CNN_UNITS[:1], None),
        )
    )
]
_TRANSPOSED = [
    make("dev", f"transposed-{name}", base, "transposed", transpose(where), dtype=dtype)
    for name, base, where, dtype in (
        ("bert-query", "minilm-2", r"layer\.0\.attention\.self\.query\.weight", None),
        ("bert-mlp", "minilm-2", ONE["minilm-2"], None),
        ("gpt", "gpt", r"c_\w+\.weight", None),
        ("llama", "llama", ONE["llama"], "BF16"),
        ("mlp", "mlp", r"^2\.weight", None),
    )
]
_BERT, _LLAMA = "encoder.layer.{}.attention.self.{}.weight", "model.layers.{}.self_attn.{}.weight"
_EXCHANGED = [
    make("dev", f"exchanged-{name}", base, "exchanged", exchange(*pairs), dtype=dtype)
    for name, base, pairs, dtype in (
        ("q-and-k", "minilm-2", [(_BERT.format(0, "query"), _BERT.format(0, "key"))], None),
        ("k-and-v", "minilm-2", [(_BERT.format(1, "key"), _BERT.format(1, "value"))], "BF16"),
        ("queries", "minilm-2", [(_BERT.format(0, "query"), _BERT.format(1, "query"))], None),
        (
            "gates",
            "llama",
            [("model.layers.1.mlp.gate_proj.weight", "model.layers.1.mlp.up_proj.weight")],
            None,
        ),
        (
            "keys",
            "llama",
            [(_LLAMA.format(i, "k_proj"), _LLAMA.format(i, "v_proj")) for i in range(4)],
            None,
        ),
    )
]
_READERS = [
    (f"model.layers.{i}.{name}.weight", 1)
    for i in range(4)
    for name in (
        "self_attn.q_proj",
        "self_attn.k_proj",
        "self_attn.v_proj",
        "mlp.gate_proj",
        "mlp.up_proj",
    )
]
_WRITERS = [
    (f"model.layers.{i}.{name}.weight", 0)
    for i in range(4)
    for name in ("self_attn.o_proj", "mlp.down_proj")
]
_STREAM = [("model.embed_tokens.weight", 1), *_READERS, *_WRITERS, ("lm_head.weight", 1)]


def _folds() -> list[tuple[str, list[str]]]:
    """List each norm of the Llama with the matrices that read it."""
    folds = [("model.norm.weight", ["lm_head.weight"])]
    for i in range(4):
        layer = f"model.layers.{i}"
        folds += [
            (
                f"{layer}.input_layernorm.weight",
                [f"{layer}.self_attn.{x}_proj.weight" for x in "qkv"],
            ),
            (
                f"{layer}.post_attention_layernorm.weight",
                [f"{layer}.mlp.{x}_proj.weight" for x in ("gate", "up")],
            ),
        ]
    return folds


def _rotated(base: Model) -> Built:
    folded = edited(base, *(fold_norm(norm, names) for norm, names in _folds())).right
    return edited(folded, rotate(*_STREAM, seed=1))


_ROTATED = [Pair("rotated-llama", "dev", "llama", "rotated", _rotated)]
_RESCALED = [
    make(
        "dev",
        f"rescaled-{name}",
        base,
        "rescaled_channels",
        rescale_channels(*places, seed=seed),
        dtype=dtype,
    )
    for seed, (name, base, places, dtype) in enumerate(
        (
            (
                "llama",
                "llama",
                [
                    ("model.layers.1.input_layernorm.weight", 0),
                    *((_LLAMA.format(1, f"{x}_proj"), 1) for x in "qkv"),
                ],
                None,
            ),
            (
                "llama-mlp",
                "llama",
                [
                    ("model.layers.0.mlp.up_proj.weight", 0),
                    ("model.layers.0.mlp.down_proj.weight", 1),
                ],
                None,
            ),
            ("mlp", "mlp", [("2.weight", 0), ("4.weight", 1)], None),
        )
    )
]

PAIRS = [*_PERMUTED, *_INCONSISTENT, *_TRANSPOSED, *_EXCHANGED, *_ROTATED, *_RESCALED]
