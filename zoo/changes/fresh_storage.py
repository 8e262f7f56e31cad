"""Fresh pairs whose numbers are stored in another way: casts, grids, palettes."""

from __future__ import annotations

from .edits import cast, quantise, through
from .fresh_edits import fp8_natively, fp8_rows, fp8_to_floats, of, uint8_natively
from .heldback_edits import grid, relabel, share_weights
from .pairs import Pair

_TURN = r"layers\.\d\.(self_attn\..*|fc\d)\.weight$"
_QUILL = r"(query_key_value|dense|h_to_4h|4h_to_h)\.weight$"
_T5 = r"(SelfAttention|EncDecAttention|DenseReluDense)\..*weight$"

CASTS: list[Pair] = [
    of("bf16-turn", "turn", "cast", cast("BF16")),
    of("bf16-face", "face", "cast", cast("BF16")),
    of("f16-quill", "quill", "cast", cast("F16")),
    of("f16-page", "page", "cast", cast("F16")),
    of("f16-mpnn", "mpnn-0", "cast", cast("F16")),
    of("through-bf16-courier", "courier", "cast", through("BF16")),
    of("through-f16-atoms", "atoms-0", "cast", through("F16")),
    of("truncated-layout", "layout", "cast", cast("BF16", rounding="truncated")),
    of("through-truncated-glide", "glide", "cast", through("BF16", rounding="truncated")),
    of("bf16-matrices-quill", "quill", "cast", cast("BF16", where=_QUILL)),
    of("bf16-to-f32-crowd", "crowd", "cast", cast("F32"), dtype="BF16"),
    of("f16-to-bf16-timer", "timer", "cast", cast("BF16"), dtype="F16"),
    of("bf16-to-f16-drift", "drift", "cast", cast("F16"), dtype="BF16"),
    of("f32-to-f64-lattice", "lattice", "cast", cast("F64")),
    of("e4m3-matrices-pulse", "pulse", "cast", cast("F8_E4M3", where=r"gru\.weight")),
    of(
        "through-e4m3-jarvis",
        "jarvis",
        "cast",
        relabel(through("F8_E4M3", where=r"model\.[147]\.weight"), vague=("quantised",)),
    ),
]

GRIDS: list[Pair] = [
    of("int8-row-quill", "quill", "quantised", quantise(_QUILL, "int8-row")),
    of("int8-row-atoms", "atoms-0", "quantised", quantise(r"[02]\.weight$", "int8-row")),
    of("int8-tensor-page", "page", "quantised", quantise(r"conv2d_\d+\.w_0", "int8-tensor")),
    of("uint8-tensor-timer", "timer", "quantised", grid(r"weight$", 8, None, symmetric=False)),
    of("int8-g64-weather", "weather", "quantised", grid(r"^[13]\.weight", 8, 64)),
    of("nf4-turn", "turn", "quantised", quantise(_TURN, "nf4"), dtype="BF16"),
    of("nf4-mpnn-f16", "mpnn-0", "quantised", quantise(r"W_[hi]\.weight", "nf4"), dtype="F16"),
    of("q8-0-turn-f16", "turn", "quantised", quantise(r"fc\d\.weight", "q8_0"), dtype="F16"),
    of("q4-0-timer", "timer", "quantised", quantise(r"model\.[13]\.weight", "q4_0")),
    of("fp8-layout", "layout", "quantised", quantise(r"conv2d_2\d\d\.w_0|conv2d_\d\d\.w_0", "fp8")),
    of("fp8-row-turn-bf16", "turn", "quantised", fp8_rows(_TURN), dtype="BF16"),
    of("ternary-crowd", "crowd", "quantised", quantise(r"self_attn", "ternary")),
    of("int4-g64-turn", "turn", "quantised", grid(_TURN, 4, 64)),
    of("uint4-g128-turn-f16", "turn", "quantised",
       grid(_TURN, 4, 128, symmetric=False), dtype="F16"),
    of("uint4-g32-alexa", "alexa", "quantised", grid(r"^[13]\.weight", 4, 32, symmetric=False)),
    of("int3-g64-turn", "turn", "quantised", grid(r"fc\d\.weight", 3, 64)),
    of("uint2-g16-turn", "turn", "quantised", grid(r"fc1", 2, 16, symmetric=False)),
    of("int6-g48-speech", "speech", "quantised", grid(r"_1[1-8]/Conv2D_weights", 6, 48)),
    of("palette-16-mpnn", "mpnn-0", "palette", share_weights(r"W_[ho]\.weight", 16)),
    of("palette-64-face", "face", "palette", share_weights(r"^(7\d\d)$", 64)),
    of("palette-22-notes", "notes", "palette", share_weights(r"_(727|707)$", 22)),
    of("native-fp8-turn", "turn", "quantised", fp8_natively(_TURN)),
    of("native-uint8-courier", "courier", "quantised", uint8_natively(_T5)),
    of("native-fp8-to-bf16", "quill", "dequantised", fp8_to_floats(_QUILL[:-1] + r"(_scale)?$"),
       start=[fp8_natively(_QUILL)]),
]  # fmt: skip

PAIRS: list[Pair] = [*CASTS, *GRIDS]
