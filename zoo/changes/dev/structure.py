"""Pairs of the dev part whose structure changed, or what lies beside the weights."""

from __future__ import annotations

import numpy as np

from ..edits import (
    add,
    advance_state,
    configure,
    fold_batch_norm,
    fold_norm,
    fold_weight_norm,
    prune_units,
    relayer,
    remove,
    replace_head,
    reshape,
    resize_vocabulary,
    retoken,
    split_weight_norm,
)
from ..model import Model
from ..pairs import Built, Pair, edited, make
from ..training import optimizer_state
from .places import BERT_HEADS, BERT_UNITS, CNN_UNITS, GPT_UNITS, LLAMA_UNITS, MLP_UNITS

_WORDS = "embeddings.word_embeddings.weight"
_LLAMA_ENDS = ["model.embed_tokens.weight", "lm_head.weight"]
_VOCABULARY = [
    make(
        "dev",
        f"vocabulary-{base}-{rows}",
        base,
        "vocabulary_resized",
        resize_vocabulary(names, rows, seed),
        dtype=dtype,
    )
    for seed, (base, names, rows, dtype) in enumerate(
        (
            ("minilm-2", [_WORDS], 4100, None),
            ("minilm-2", [_WORDS], 4224, "BF16"),
            ("minilm-2", [_WORDS], 4000, None),
            ("gpt", ["transformer.wte.weight"], 264, None),
            ("llama", _LLAMA_ENDS, 288, "BF16"),
            ("llama", _LLAMA_ENDS, 250, None),
        )
    )
]
_GPT, _LLAMA, _BERT = (
    ("transformer.h.", "n_layer"),
    ("model.layers.", "num_hidden_layers"),
    ("encoder.layer.", "num_hidden_layers"),
)
_LAYERS = [
    make(
        "dev",
        f"{kind.replace('_', '-')}-{base}-{''.join(map(str, order))}",
        base,
        kind,
        relayer(stack, order, kind, depth=depth),
        dtype=dtype,
    )
    for base, (stack, depth), order, kind, dtype in (
        ("gpt", _GPT, (0, 1, 2), "layers_removed", None),
        ("gpt", _GPT, (0, 2, 3), "layers_removed", None),
        ("minilm", _BERT, (0, 2, 4), "layers_removed", None),
        ("llama", _LLAMA, (0, 3), "layers_removed", "BF16"),
        ("gpt", _GPT, (0, 1, 1, 2, 3), "layers_duplicated", None),
        ("llama", _LLAMA, (0, 1, 2, 1, 2, 3), "layers_duplicated", "BF16"),
        ("llama", _LLAMA, (0, 2, 1, 3), "layers_swapped", None),
        ("gpt", _GPT, (3, 1, 2, 0), "layers_swapped", "BF16"),
        ("minilm", _BERT, (0, 1, 3, 2, 4, 5), "layers_swapped", None),
        ("gpt", _GPT, (3, 2, 1, 0), "layers_reordered", None),
        ("llama", _LLAMA, (1, 2, 3, 0), "layers_reordered", None),
    )
]
_CUT = [
    make(
        "dev",
        f"cut-{name}",
        base,
        "pruned_structurally",
        prune_units(*places, keep=keep, what=what, unit=unit),
        dtype=dtype,
    )
    for name, base, places, keep, what, unit, dtype in (
        ("bert-units", "minilm-2", BERT_UNITS, 0.5, "units", 1, None),
        ("bert-heads", "minilm-2", BERT_HEADS, 0.75, "heads", 32, None),
        ("gpt-units", "gpt", GPT_UNITS, 0.5, "units", 1, "BF16"),
        ("llama-units", "llama", LLAMA_UNITS, 0.75, "units", 1, None),
        ("cnn-channels", "cnn", CNN_UNITS, 0.5, "channels", 1, None),
        ("mlp-units", "mlp", MLP_UNITS, 0.6, "units", 1, None),
    )
]


def _llama_norms() -> list[tuple[str, list[str]]]:
    return [
        (
            f"model.layers.{i}.input_layernorm.weight",
            [f"model.layers.{i}.self_attn.{x}_proj.weight" for x in "qkv"],
        )
        for i in range(4)
    ]


def _split(base: Model) -> Built:
    return edited(split_weight_norm(base, r"[024]\.weight"), fold_weight_norm(r"[024]"))


_FOLDED = [
    make(
        "dev",
        "batch-norm-folded-cnn",
        "cnn",
        "norms_folded",
        *(fold_batch_norm(f"conv{i}", f"bn{i}") for i in (1, 2, 3)),
    ),
    make(
        "dev", "batch-norm-folded-once-cnn", "cnn", "norms_folded", fold_batch_norm("conv2", "bn2")
    ),
    make(
        "dev",
        "norms-folded-llama",
        "llama",
        "norms_folded",
        *(fold_norm(norm, names) for norm, names in _llama_norms()),
    ),
    Pair("weight-norm-folded-mlp", "dev", "mlp", "weight_norm_folded", _split),
]
_HEADS = [
    make(
        "dev",
        f"head-{base}-{classes}",
        base,
        "head_replaced",
        replace_head(weight, bias, classes, seed),
        dtype=dtype,
    )
    for seed, (base, weight, bias, classes, dtype) in enumerate(
        (
            ("mlp", "6.weight", "6.bias", 7, None),
            ("cnn", "fc.weight", "fc.bias", 3, None),
            ("lstm", "head.weight", "head.bias", 20, "F16"),
            ("llama", "lm_head.weight", None, 5, None),
        )
    )
]
_OTHER = [
    make("dev", "pooler-removed", "minilm-2", "tensors_removed", remove("^pooler")),
    make("dev", "position-ids-removed", "minilm-2", "tensors_removed", remove("position_ids")),
    make(
        "dev",
        "classifier-added",
        "minilm-2",
        "tensors_added",
        add(
            {
                "classifier.weight": np.random.default_rng(0)
                .standard_normal((3, 384))
                .astype(np.float32),
                "classifier.bias": np.zeros(3, np.float32),
            }
        ),
    ),
    make("dev", "kernels-flattened", "cnn", "reshaped", reshape(r"conv2\.weight", (64, 288))),
]
_BESIDE = [
    make("dev", "config-rope", "llama", "config_changed", configure(rope_theta=500000.0)),
    make("dev", "config-act", "minilm-2", "config_changed", configure(hidden_act="relu")),
    make(
        "dev",
        "config-eps-and-heads",
        "minilm-2",
        "config_changed",
        configure(layer_norm_eps=1e-5, num_attention_heads=6),
    ),
    make("dev", "config-gpt", "gpt", "config_changed", configure(n_head=8), dtype="BF16"),
]
_TOKENS = {f"word{i}": i for i in range(256)}


def _retokened(base: Model) -> Built:
    tokens = {**_TOKENS, "hello": 255}
    del tokens["word255"]
    return edited(base._replace(tokens=_TOKENS), retoken(tokens))


def _trained_on(base: Model) -> Built:
    before = base._replace(state=optimizer_state("mlp", 5))
    return edited(before, advance_state(optimizer_state("mlp", 9)))


_STATES = [
    Pair("token-exchanged-gpt", "dev", "gpt", "tokens_changed", _retokened),
    Pair("optimizer-advanced-mlp", "dev", "mlp", "state_changed", _trained_on),
]

PAIRS = [*_VOCABULARY, *_LAYERS, *_CUT, *_FOLDED, *_HEADS, *_OTHER, *_BESIDE, *_STATES]
