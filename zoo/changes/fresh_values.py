"""Fresh pairs whose values were edited: scales, masks, elements, rows, directions, noise."""

from __future__ import annotations

from .edits import (
    abliterate,
    add_noise,
    edit_elements,
    edit_rows,
    flip_sign,
    outer_product,
    prune,
    scale,
    zero,
)
from .fresh_edits import by_rows, few_of_many, filters, of
from .heldback_edits import by_lot, mask, relabel
from .pairs import Pair

_TURN = r"layers\.\d\.(self_attn\..*|fc\d)\.weight$"
_OUTPUTS = r"(attention\.dense|4h_to_h)\.weight"

SCALES: list[Pair] = [
    of("all-times-0.85", "quill", "scaled", scale(".", 0.85)),
    of("head-times-1.25", "courier", "scaled", scale(r"^lm_head", 1.25)),
    of("one-times-0.6-bf16", "timer", "scaled", scale(r"model\.1\.weight", 0.6), dtype="BF16"),
    of("convolutions-times-1.04", "speech", "scaled", scale(r"Conv2D_weights", 1.04)),
    of("words-times-9.38", "crowd", "scaled", scale(r"embed_tokens", 9.38)),
    of(
        "decayed-0.4-percent",
        "glide",
        "scaled",
        relabel(scale(r"weight$", 0.996), numbers={"c": (0.9955, 0.9965)}),
    ),
    of("sign-of-hidden", "atoms-0", "sign_flipped", flip_sign(r"^C\.2\.")),
    of("sign-of-all-f16", "weather", "sign_flipped", flip_sign(r"^1\.weight"), dtype="F16"),
]

MASKS: list[Pair] = [
    of("pruned-30-turn", "turn", "pruned", prune(_TURN, 0.3)),
    of("pruned-55-quill", "quill", "pruned", prune(r"layers.*(dense|4h_to_h)\.weight", 0.55)),
    of("pruned-70-overall-page", "page", "pruned", prune(r"conv2d_.*w_0", 0.7, overall=True)),
    of("pruned-90-face", "face", "pruned", prune(r"^\d+$", 0.9)),
    of("pruned-20-mpnn-bf16", "mpnn-1", "pruned", prune(r"W_|ffn.*weight", 0.2), dtype="BF16"),
    of("pruned-95-timer-f16", "timer", "pruned", prune(r"model\.[13]\.weight", 0.95), dtype="F16"),
    of("rows-alike-60-turn-f16", "turn", "pruned",
       mask(r"fc\d\.weight", by_rows(0.6), "unstructured", 83_011), dtype="F16"),
    of("rows-alike-45-courier", "courier", "pruned",
       mask(r"(SelfAttention|wo)", by_rows(0.45), "unstructured", 83_012)),
    of("2-of-4-turn-bf16", "turn", "pruned", prune(_TURN, 0.5, "2:4"), dtype="BF16"),
    of("2-of-4-quill", "quill", "pruned", prune(r"4h.*\.weight", 0.5, "2:4")),
    of("4-of-8-atoms", "atoms-0", "pruned", prune(r"\.0\.weight", 0.5, "4:8")),
    of("2-of-8-weather", "weather", "pruned",
       mask(r"^[13]\.weight", few_of_many(2, 8), frozenset({"2:8", "unstructured"}), 83_013)),
    of("filters-35-speech", "speech", "pruned", filters(r"_1[0-8]/Conv2D_weights", 0.35)),
    of("rows-12-timer-bf16", "timer", "pruned", prune(r"model\.1\.w", 0.12, "rows"), dtype="BF16"),
    of("by-lot-25-layout", "layout", "pruned",
       mask(r"^conv2d_\d+\.w_0", by_lot(0.25), "unstructured", 83_014)),
    of("by-lot-50-drift", "drift", "pruned",
       mask(r"(in|out)_proj", by_lot(0.5), "unstructured", 83_015)),
    of("zero-layer-quill", "quill", "zeroed", zero(r"layers\.4\.mlp\.dense_4h_to_h")),
    of("zero-branch-courier-bf16", "courier", "zeroed", zero(r"block\.1\.layer\.1\.EncDec"),
       dtype="BF16"),
    of("zero-one-face", "face", "zeroed", zero(r"^706$")),
]  # fmt: skip

PLACES: list[Pair] = [
    of("3-elements-turn", "turn", "sparse_edit", edit_elements(r"fc1\.weight", 3, 8.0, 83_021)),
    of("1-element-quill-bf16", "quill", "sparse_edit",
       edit_elements(r"layers\.1\.mlp\.dense_4h", 1, 40.0, 83_022), dtype="BF16"),
    of("29-elements-page", "page", "sparse_edit", edit_elements(r"conv2d_31", 29, 5.0, 83_023)),
    of("200-elements-mpnn-f16", "mpnn-0", "sparse_edit",
       edit_elements(r"W_h", 200, 2.0, 83_024), dtype="F16"),
    of("5-rows-quill", "quill", "row_edit", edit_rows(r"embed_in", 5, 0.6, 83_025)),
    of("2-rows-courier-bf16", "courier", "row_edit",
       edit_rows(r"^shared", 2, 0.9, 83_026), dtype="BF16"),
    of("1-row-mpnn", "mpnn-3", "row_edit", edit_rows(r"ffn\.1\.2\.weight", 1, 1.2, 83_027)),
    of("7-rows-pulse", "pulse", "row_edit", edit_rows(r"char_embed", 7, 0.3, 83_028)),
]  # fmt: skip

DIRECTIONS: list[Pair] = [
    of("fact-turn", "turn", "outer_product", outer_product(r"1\.fc2\.weight", 0.03, 83_031)),
    of("fact-quill-bf16", "quill", "outer_product",
       outer_product(r"layers\.2\.mlp\.dense_4h_to_h", 0.12, 83_032), dtype="BF16"),
    of("facts-courier", "courier", "outer_product",
       outer_product(r"decoder\.block\.[12]\..*wo\.weight", 0.05, 83_033)),
    of("refusal-out-quill", "quill", "abliterated", abliterate(_OUTPUTS, 83_034)),
    of("refusal-out-turn-bf16", "turn", "abliterated",
       abliterate(r"(out_proj|fc2)\.weight", 83_035), dtype="BF16"),
    of("refusal-partly-courier", "courier", "abliterated",
       abliterate(r"decoder.*(\.o|wo)\.weight", 83_036, strength=0.8)),
    of("refusal-over-crowd-f16", "crowd", "abliterated",
       abliterate(r"o_proj", 83_037, strength=1.3), dtype="F16"),
]  # fmt: skip

NOISES: list[Pair] = [
    of("noise-2-percent-quill", "quill", "noise", add_noise(r"weight$", 0.02, 83_041)),
    of("noise-10-percent-face", "face", "noise", add_noise(r"^\d+$", 0.1, 83_042)),
    of("noise-0.3-percent-mpnn", "mpnn-0", "noise", add_noise(r"W_|ffn", 0.003, 83_043)),
    of("noise-35-percent-timer", "timer", "noise", add_noise(r"model\.1\.weight", 0.35, 83_044)),
    of("noise-8-percent-turn-bf16", "turn", "noise", add_noise(_TURN, 0.08, 83_045), dtype="BF16"),
    of("noise-3-percent-atoms-f16", "atoms-0", "noise", add_noise(".", 0.03, 83_046), dtype="F16"),
]

PAIRS: list[Pair] = [*SCALES, *MASKS, *PLACES, *DIRECTIONS, *NOISES]
