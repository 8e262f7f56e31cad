"""Held-back pairs that were trained: fine-tunes made here, and fine-tunes that people published."""

from __future__ import annotations

import re
from collections.abc import Callable

from .bases import load
from .heldback_edits import of, trained_label, tune
from .heldback_training import Recipe
from .model import Model
from .pairs import Built, Pair, with_bystanders


def only(pattern: str) -> Callable[[str], bool]:
    """Train the parameters whose name matches."""
    return lambda name: bool(re.search(pattern, name))


def published(name: str, left: str, right: str) -> Pair:
    """Return a pair of weights that their authors trained one from the other."""

    def build(model: Model) -> Built:
        other = load(right)
        return Built(model, other, with_bystanders((trained_label(model, other),), model, other))

    return Pair(f"h-{name}", "second", left, "trained", build)


PAIRS: list[Pair] = [
    of("scribe-adamw", "scribe", "trained", tune("scribe", Recipe(rate=3e-4, steps=25, seed=7201))),
    of(
        "scribe-sgd-bf16",
        "scribe",
        "trained",
        tune("scribe", Recipe("sgd", 0.08, 25, seed=7202)),
        dtype="BF16",
    ),
    of(
        "scribe-one-step",
        "scribe",
        "trained",
        tune("scribe", Recipe(rate=1e-5, steps=1, seed=7203, decay=0.0), vague=("noise",)),
    ),
    of(
        "scribe-backwards",
        "scribe",
        "trained",
        tune("scribe", Recipe(rate=4e-3, steps=25, data=2, seed=7204)),
    ),
    of(
        "scribe-last-layer",
        "scribe",
        "trained",
        tune("scribe", Recipe("momentum", 0.02, 20, only(r"layers\.6\."), seed=7205)),
    ),
    of(
        "scribe-embedding",
        "scribe",
        "trained",
        tune(
            "scribe", Recipe(rate=2e-3, steps=20, only=only(r"embed_tokens"), seed=7206, decay=0.05)
        ),
    ),
    of(
        "scribe-attention-f16",
        "scribe",
        "trained",
        tune("scribe", Recipe(rate=1e-3, steps=20, only=only(r"self_attn"), seed=7207)),
        dtype="F16",
    ),
    of(
        "murmur-long",
        "murmur",
        "trained",
        tune("murmur", Recipe(rate=2e-3, steps=60, data=2, seed=7208)),
    ),
    of(
        "murmur-tiny-sgd",
        "murmur",
        "trained",
        tune("murmur", Recipe("sgd", 1e-4, 5, seed=7209), vague=("noise",)),
    ),
    of(
        "glance-biases",
        "glance",
        "trained",
        tune("glance", Recipe(rate=1e-2, steps=25, only=only(r"bias$"), seed=7210)),
    ),
    of(
        "glance-norms",
        "glance",
        "trained",
        tune("glance", Recipe(rate=5e-3, steps=25, only=only(r"norm"), seed=7211)),
    ),
    of(
        "glance-head-bf16",
        "glance",
        "trained",
        tune("glance", Recipe(rate=1e-3, steps=25, only=only(r"^head"), seed=7212)),
        dtype="BF16",
    ),
    of("glance-full", "glance", "trained", tune("glance", Recipe("momentum", 0.01, 40, seed=7213))),
    of(
        "towers-users",
        "towers",
        "trained",
        tune("towers", Recipe(rate=3e-3, steps=40, only=only(r"^user_tower"), seed=7214)),
    ),
    of("mender-full", "mender", "trained", tune("mender", Recipe(rate=1e-3, steps=25, seed=7215))),
    of(
        "mender-way-up",
        "mender",
        "trained",
        tune("mender", Recipe("sgd", 0.1, 30, only(r"^(up|merge)\d.*(weight|bias)"), seed=7216)),
    ),
    of("voice-full", "voice", "trained", tune("voice", Recipe(rate=1e-4, steps=8, seed=7217))),
    of(
        "voice-projection-f16",
        "voice",
        "trained",
        tune("voice", Recipe("sgd", 0.5, 10, only(r"^linear"), seed=7218)),
        dtype="F16",
    ),
    published("deepcut-to-tnhc", "deepcut", "deepcut-tnhc"),
    published("deepcut-to-ws", "deepcut", "deepcut-ws"),
    published("deepcut-to-lst20", "deepcut", "deepcut-lst20"),
    published("mos-to-personal", "mos", "mos-personal"),
]
