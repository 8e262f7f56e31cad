"""Pairs of the dev part to which two or three things were done."""

from __future__ import annotations

from typing import Any

from ..edits import (
    add_noise,
    cast,
    configure,
    edit_elements,
    edit_rows,
    lora,
    permute,
    prune,
    quantise,
    reinitialise,
    relayer,
    rename,
    replace_head,
    resize_vocabulary,
    scale,
    through,
)
from ..pairs import Pair, make
from ..training import trained_lora, tune
from .places import ATTENTION, BERT_UNITS, ENCODER, GPT_UNITS, MATRICES, MLP, ONE, QV

_WORDS = ["embeddings.word_embeddings.weight"]


def _named(kind: str, rows: tuple[Any, ...]) -> list[Pair]:
    """Make pairs of one kind: base, dtype on the left, edits."""
    return [
        make(
            "dev", f"{kind.replace(' + ', '-and-')}-{base}-{index}", base, kind, *edits, dtype=dtype
        )
        for index, (base, dtype, *edits) in enumerate(rows)
    ]


_PRUNED = _named(
    "pruned + cast",
    (
        ("minilm-2", None, prune(ENCODER, 0.5), cast("BF16")),
        ("minilm-2", None, prune(ENCODER, 0.5, "2:4"), cast("F16")),
        ("minilm-2", None, prune(ENCODER, 0.8), through("BF16")),
        ("chgnet", None, prune(MATRICES["chgnet"], 0.5), cast("F16")),
        ("gpt", None, prune(MATRICES["gpt"], 0.3), cast("BF16", rounding="truncated")),
        ("silero", None, prune(MATRICES["silero"], 0.6), cast("BF16")),
    ),
)
_LORA = _named(
    "low_rank + cast",
    (
        ("minilm-2", None, lora(QV, 8, 11, relative=0.1), cast("BF16")),
        ("minilm-2", None, lora(ATTENTION, 4, 12, relative=0.05), cast("F16")),
        ("minilm", None, lora(QV, 16, 13, relative=0.15, decay=0.9), cast("BF16")),
        ("minilm-2", "BF16", lora(QV, 8, 14, relative=0.05), cast("F16")),
        ("minilm-2", None, lora(QV, 2, 15, relative=0.05), through("BF16")),
        ("gpt", None, trained_lora("gpt", r"c_attn\.weight", 8), cast("BF16")),
        ("llama", None, trained_lora("llama", r"[qv]_proj", 4), cast("F16")),
        ("llama", None, trained_lora("llama", r"[qv]_proj", 4), cast("BF16", rounding="truncated")),
    ),
)
_TUNED = _named(
    "trained + cast",
    (
        ("gpt", None, tune("gpt", rate=5e-5), cast("BF16")),
        ("llama", None, tune("llama"), cast("F16")),
        ("gpt", None, tune("gpt", only=r"h\.3\.", rate=1e-4), cast("BF16")),
        ("cnn", None, tune("cnn", only="fc", rate=1e-3), cast("BF16")),
        ("llama", None, tune("llama", only="lm_head", rate=3e-4), cast("BF16")),
        ("mlp", None, tune("mlp", only=r"^6\.", rate=1e-3), through("BF16")),
        ("gpt", None, tune("gpt", only="bias", rate=1e-4), cast("F16")),
    ),
)
_WITH_LORA = [
    *_named(
        "low_rank + head_replaced",
        (
            (
                "llama",
                None,
                trained_lora("llama", r"[qv]_proj", 8),
                replace_head("lm_head.weight", None, 5, 1),
            ),
            (
                "mlp",
                None,
                lora(r"[024]\.weight", 4, 3, relative=0.1),
                replace_head("6.weight", "6.bias", 3, 2),
            ),
        ),
    ),
    *_named(
        "low_rank + vocabulary_resized",
        (
            ("minilm-2", None, lora(QV, 8, 4, relative=0.05), resize_vocabulary(_WORDS, 4112, 1)),
            (
                "llama",
                "BF16",
                trained_lora("llama", r"[qv]_proj", 4),
                resize_vocabulary(["model.embed_tokens.weight", "lm_head.weight"], 260, 2),
            ),
        ),
    ),
    *_named(
        "low_rank + trained",
        (
            (
                "gpt",
                None,
                trained_lora("gpt", r"c_attn\.weight", 8),
                tune("gpt", only="ln_", rate=1e-4),
            ),
            (
                "llama",
                None,
                trained_lora("llama", r"[qv]_proj", 8),
                tune("llama", only="lm_head", rate=3e-4),
            ),
        ),
    ),
    *_named(
        "low_rank + low_rank",
        (("minilm-2", None, lora(QV, 8, 5, relative=0.05), lora(MLP, 4, 6, relative=0.05)),),
    ),
    *_named(
        "low_rank + config_changed",
        (("llama", None, trained_lora("llama", r"[qv]_proj", 8), configure(rope_theta=20000.0)),),
    ),
    make(
        "dev",
        "low_rank-renamed",
        "minilm-2",
        "low_rank",
        lora(QV, 8, 7, relative=0.05),
        renamed=rename("^", "bert."),
    ),
]
_OTHERS = [
    *_named(
        "quantised + cast",
        (
            ("minilm-2", None, quantise(ENCODER, "nf4"), cast("BF16")),
            ("minilm-2", None, quantise(ENCODER, "int8-row"), cast("F16")),
            ("gpt", None, quantise(MATRICES["gpt"], "int4-g32"), cast("F16")),
        ),
    ),
    *_named(
        "sparse_edit + cast",
        (
            ("minilm-2", None, edit_elements(ONE["minilm-2"], 1, 8.0, 1), cast("BF16")),
            ("gpt", None, edit_elements(ONE["gpt"], 4, 8.0, 2), cast("F16")),
            (
                "llama",
                None,
                edit_elements(ONE["llama"], 1, 8.0, 3),
                cast("BF16", rounding="truncated"),
            ),
        ),
    ),
    *_named(
        "row_edit + cast",
        (
            ("minilm-2", None, edit_rows("word_embeddings", 5, 1.0, 1), cast("BF16")),
            ("llama", None, edit_rows("embed_tokens", 3, 1.0, 2), cast("F16")),
        ),
    ),
    *_named("scaled + cast", (("minilm-2", None, scale(ONE["minilm-2"], 1.5), cast("BF16")),)),
    *_named(
        "reinitialised + cast",
        (
            ("minilm-2", None, reinitialise(r"pooler\.dense\.weight", 1), cast("BF16")),
            ("gpt", None, reinitialise(ONE["gpt"], 2), cast("F16")),
        ),
    ),
    *_named(
        "permuted + cast",
        (
            ("minilm-2", None, permute(BERT_UNITS, seed=1), cast("BF16")),
            ("gpt", None, permute(GPT_UNITS, seed=2), cast("F16")),
        ),
    ),
    *_named("noise + cast", (("minilm-2", None, add_noise(ENCODER, 0.1, 1), cast("BF16")),)),
    *_named(
        "vocabulary_resized + cast",
        (("minilm-2", None, resize_vocabulary(_WORDS, 4200, 3), cast("BF16")),),
    ),
    *_named(
        "layers_removed + cast",
        (
            (
                "gpt",
                None,
                relayer("transformer.h.", (0, 1, 3), "layers_removed", depth="n_layer"),
                cast("BF16"),
            ),
        ),
    ),
    *_named(
        "layers_removed + trained",
        (
            (
                "llama",
                None,
                tune("llama"),
                relayer("model.layers.", (0, 1, 2), "layers_removed", depth="num_hidden_layers"),
            ),
        ),
    ),
    *_named(
        "head_replaced + trained",
        (
            ("cnn", None, tune("cnn"), replace_head("fc.weight", "fc.bias", 4, 5)),
            ("mlp", None, tune("mlp", only=r"^[024]\."), replace_head("6.weight", "6.bias", 4, 5)),
        ),
    ),
]

PAIRS = [*_PRUNED, *_LORA, *_TUNED, *_WITH_LORA, *_OTHERS]
