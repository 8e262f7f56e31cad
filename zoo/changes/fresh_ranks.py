"""Fresh pairs of low rank: adapters drawn and trained, over sizes, strengths and dtypes."""

from __future__ import annotations

from .edits import lora
from .fresh_edits import adapter, of
from .heldback_edits import lora_trained
from .heldback_training import Recipe
from .pairs import Edit, Pair

_TURN = r"layers\.\d\.(self_attn\..*|fc\d)\.weight$"
_ALL = r"(query_key_value|dense|h_to_4h|4h_to_h)\.weight$"

# Name, base, matrices, rank, size relative to the matrix, decay of singular values (0: factors of
# normal numbers), dtype.
_GRID: tuple[tuple[str, str, str, int, float, float, str], ...] = (
    ("r8-quill", "quill", r"query_key_value\.weight", 8, 0.02, 0.8, ""),
    ("r16-quill-all", "quill", _ALL, 16, 0.035, 0.87, ""),
    ("r4-mpnn", "mpnn-0", r"W_[hi]\.weight", 4, 0.02, 0.0, ""),
    ("r2-mpnn", "mpnn-1", r"W_o\.weight|ffn\.0\.0\.weight", 2, 0.05, 0.6, ""),
    ("r8-atoms", "atoms-0", r"\.(0|2)\.weight", 8, 0.012, 0.75, ""),
    ("r10-turn", "turn", r"(q|v)_proj\.weight", 10, 0.015, 0.8, ""),
    ("r20-turn", "turn", r"fc\d\.weight", 20, 0.02, 0.0, ""),
    ("r32-turn-all", "turn", _TURN, 32, 0.04, 0.93, ""),
    ("r64-timer", "timer", r"model\.1\.weight", 64, 0.06, 0.0, ""),
    ("r6-speech", "speech", r"_1[2-8]/Conv2D_weights", 6, 0.05, 0.8, ""),
    ("r3-page", "page", r"conv2d_(26|30|31)\.w_0", 3, 0.03, 0.0, ""),
    ("r14-jarvis", "jarvis", r"model\.1\.weight", 14, 0.01, 0.85, ""),
    ("r8-courier", "courier", r"SelfAttention\.(q|v)\.weight", 8, 0.03, 0.0, ""),
    ("r48-courier", "courier", r"wi_\d\.weight", 48, 0.08, 0.96, ""),
    ("r5-crowd", "crowd", r"(q|k|v|o)_proj", 5, 0.04, 0.0, ""),
    ("r2-drift", "drift", r"(in|x)_proj\.weight", 2, 0.02, 0.7, ""),
    ("r9-glide", "glide", r"pwconv\d\.weight", 9, 0.025, 0.8, ""),
    ("r7-pulse", "pulse", r"gru\.weight_hh", 7, 0.03, 0.8, ""),
    ("r18-weather", "weather", r"^1\.weight", 18, 0.02, 0.0, ""),
    ("r4-mpnn-faint", "mpnn-3", r"W_h\.weight", 4, 6e-5, 0.8, ""),
    ("r6-pesto", "pesto", r"prefilt_layers.*weight", 6, 0.04, 0.8, ""),
    ("r16-turn-strong", "turn", r"(q|k|v)_proj\.weight", 16, 0.6, 0.0, ""),
    ("r8-quill-bf16", "quill", r"query_key_value\.weight", 8, 0.04, 0.8, "BF16"),
    ("r16-turn-bf16", "turn", r"(q|k|v|out)_proj\.weight", 16, 0.03, 0.9, "BF16"),
    ("r4-turn-bf16", "turn", r"fc2\.weight", 4, 0.02, 0.0, "BF16"),
    ("r32-turn-bf16", "turn", r"fc1\.weight", 32, 0.1, 0.0, "BF16"),
    ("r64-turn-bf16", "turn", r"fc\d\.weight", 64, 0.25, 0.0, "BF16"),
    ("r6-mpnn-bf16", "mpnn-0", r"W_h\.weight", 6, 0.05, 0.8, "BF16"),
    ("r2-atoms-bf16", "atoms-1", r"[CO]\.(0|2)\.weight", 2, 0.06, 0.0, "BF16"),
    ("r10-timer-bf16", "timer", r"model\.1\.weight", 10, 0.05, 0.0, "BF16"),
    ("r8-courier-bf16", "courier", r"Attention\.(q|v)\.weight", 8, 0.08, 0.8, "BF16"),
    ("r3-crowd-bf16", "crowd", r"(q|v)_proj", 3, 0.06, 0.0, "BF16"),
    ("r5-drift-bf16", "drift", r"out_proj\.weight", 5, 0.05, 0.8, "BF16"),
    ("r14-jarvis-bf16", "jarvis", r"^model\.1\.weight", 14, 0.08, 0.9, "BF16"),
    ("r7-speech-bf16", "speech", r"_1[2-8]/Conv2D_weights", 7, 0.1, 0.0, "BF16"),
    ("r20-page-bf16", "page", r"conv2d_(26|30|31)\.w_0", 20, 0.08, 0.0, "BF16"),
    ("r4-glide-bf16", "glide", r"pwconv1\.weight", 4, 0.04, 0.8, "BF16"),
    ("r9-pulse-bf16", "pulse", r"gru\.weight_[ih]h_l1", 9, 0.07, 0.0, "BF16"),
    ("r2-weather-bf16", "weather", r"^[13]\.weight", 2, 0.015, 0.7, "BF16"),
    ("r8-turn-f16", "turn", r"(q|v)_proj\.weight", 8, 0.01, 0.8, "F16"),
    ("r6-quill-f16", "quill", _ALL, 6, 0.02, 0.0, "F16"),
    ("r4-face-f16", "face", r"^(706|734|742)$", 4, 0.03, 0.8, "F16"),
)  # fmt: skip


def _edit(at: int, where: str, rank: int, size: float, decay: float) -> Edit:
    if decay:
        return lora(where, rank, 83_100 + at, relative=size, decay=decay)
    return adapter(where, rank, 83_100 + at, relative=size)


DRAWN: list[Pair] = [
    of(name, base, "low_rank", _edit(at, where, rank, size, decay), dtype=dtype)
    for at, (name, base, where, rank, size, decay, dtype) in enumerate(_GRID)
]

# Name, network, matrices, rank, alpha, optimizer, rate, steps, dtype.
_TRAINED: tuple[tuple[str, str, str, int, float, str, float, int, str], ...] = (
    ("r8-quill", "quill", r"query_key_value\.weight", 8, 16.0, "adamw", 2e-3, 30, ""),
    ("r4-quill", "quill", r"dense\.weight", 4, 8.0, "adamw", 5e-3, 25, "BF16"),
    ("r16-quill", "quill", r"h_to_4h\.weight|4h_to_h", 16, 32.0, "adamw", 2e-3, 20, ""),
    ("r8-courier", "courier", r"Attention\.(q|v)\.weight", 8, 8.0, "adamw", 4e-3, 25, ""),
    ("r16-courier", "courier", r"DenseReluDense", 16, 32.0, "adamw", 6e-3, 25, "BF16"),
    ("r4-crowd", "crowd", r"(q|k|v|o)_proj", 4, 16.0, "adamw", 3e-3, 30, ""),
    ("r6-crowd", "crowd", r"(q|v)_proj|lm_head", 6, 12.0, "adamw", 1e-2, 30, "BF16"),
    ("r4-glide", "glide", r"pwconv\d\.weight", 4, 8.0, "adamw", 3e-3, 25, ""),
    ("r10-glide", "glide", r"pwconv2\.weight", 10, 20.0, "momentum", 3e-2, 30, ""),
    ("r2-lattice", "lattice", r"convs\.[12]\.lin\.weight", 2, 4.0, "adamw", 8e-3, 60, ""),
    ("r2-drift", "drift", r"(in|out)_proj\.weight", 2, 4.0, "adamw", 5e-3, 12, "F16"),
)  # fmt: skip

TRAINED: list[Pair] = [
    of(
        f"trained-{name}-{dtype.lower() or 'f32'}-{where.count('|')}",
        base,
        "low_rank",
        lora_trained(base, where, rank, alpha, Recipe(how, rate, steps, seed=83_300 + at)),
        dtype=dtype,
    )
    for at, (name, base, where, rank, alpha, how, rate, steps, dtype) in enumerate(_TRAINED)
]

TWO_RANKS: list[Pair] = [
    of(
        "r12-and-r4-turn",
        "turn",
        "low_rank",
        lora(r"(q|k|v|out)_proj\.weight", 12, 83_401, relative=0.03),
        lora(r"fc\d\.weight", 4, 83_402, relative=0.02),
    ),
    of(
        "r24-and-r8-quill-bf16",
        "quill",
        "low_rank",
        lora(r"query_key_value\.weight", 24, 83_403, relative=0.2, decay=0.93),
        adapter(r"attention\.dense\.weight", 8, 83_404, relative=0.1),
        dtype="BF16",
    ),
]

PAIRS: list[Pair] = [*DRAWN, *TRAINED, *TWO_RANKS]
