"""Fresh pairs that were fine-tuned: everything, a part, the biases, at rates that people use."""

from __future__ import annotations

from .fresh_edits import of, only
from .heldback_edits import tune
from .heldback_training import Recipe
from .pairs import Pair

# Name, network, optimizer, rate, steps, parameters, data, dtype.
_RUNS: tuple[tuple[str, str, str, float, int, str, int, str], ...] = (
    ("quill-slow", "quill", "adamw", 5e-5, 20, ".", 1, ""),
    ("quill-full", "quill", "adamw", 3e-4, 30, ".", 1, ""),
    ("quill-far", "quill", "adamw", 2e-3, 25, ".", 2, ""),
    ("quill-sgd", "quill", "sgd", 0.05, 20, ".", 1, ""),
    ("quill-bf16", "quill", "adamw", 2e-4, 25, ".", 1, "BF16"),
    ("quill-last-two", "quill", "adamw", 5e-4, 20, r"layers\.[34]\.", 1, ""),
    ("quill-attention", "quill", "momentum", 0.03, 20, r"attention\.", 1, ""),
    ("quill-biases", "quill", "adamw", 2e-3, 20, r"\.bias$", 1, ""),
    ("quill-head", "quill", "adamw", 1e-3, 20, r"^lm_head", 2, ""),
    ("quill-norms-f16", "quill", "adamw", 3e-3, 20, r"norm", 1, "F16"),
    ("quill-words", "quill", "adamw", 1e-3, 15, r"embed_in|lm_head", 1, "BF16"),
    ("courier-full", "courier", "adamw", 1e-4, 20, ".", 1, ""),
    ("courier-decoder", "courier", "adamw", 5e-4, 20, r"^decoder", 1, ""),
    ("courier-encoder-bf16", "courier", "adamw", 1e-3, 20, r"^encoder", 2, "BF16"),
    ("courier-cross", "courier", "sgd", 0.3, 20, r"EncDecAttention", 2, ""),
    ("crowd-full", "crowd", "adamw", 2e-4, 25, ".", 1, ""),
    ("crowd-router", "crowd", "adamw", 3e-3, 30, r"mlp\.gate\.weight", 1, ""),
    ("crowd-experts-bf16", "crowd", "adamw", 1e-3, 25, r"experts", 1, "BF16"),
    ("drift-full", "drift", "adamw", 3e-4, 8, ".", 1, ""),
    ("drift-scan", "drift", "adamw", 3e-3, 8, r"A_log|\.D$|dt_proj", 1, ""),
    ("glide-full", "glide", "momentum", 0.002, 25, ".", 1, ""),
    ("glide-adamw-f16", "glide", "adamw", 4e-4, 25, ".", 1, "F16"),
    ("glide-head", "glide", "adamw", 1e-4, 20, r"^classifier", 1, ""),
    ("glide-last-stage", "glide", "adamw", 5e-4, 20, r"stages\.2|^classifier", 1, ""),
    ("glide-biases", "glide", "adamw", 4e-3, 25, r"bias$", 1, ""),
    ("pulse-sgd", "pulse", "sgd", 0.2, 15, ".", 1, ""),
    ("pulse-full-bf16", "pulse", "adamw", 5e-4, 15, ".", 2, "BF16"),
    ("pulse-top", "pulse", "adamw", 1e-3, 12, r"_l1|tagger", 2, ""),
    ("lattice-full", "lattice", "adamw", 5e-4, 60, ".", 1, ""),
    ("lattice-readout", "lattice", "adamw", 3e-3, 60, r"^readout", 1, ""),
)  # fmt: skip

PAIRS: list[Pair] = [
    of(
        name,
        base,
        "trained",
        tune(base, Recipe(how, rate, steps, only(where), data, seed=83_500 + at)),
        dtype=dtype,
    )
    for at, (name, base, how, rate, steps, where, data, dtype) in enumerate(_RUNS)
]
