"""Pairs of the dev part: replaced, destroyed, not related, or not changed at all."""

from __future__ import annotations

from ..bases import load
from ..edits import corrupt, flip_zeros, reinitialise, rename, zero
from ..model import Model, stored
from ..pairs import Built, Expected, Pair, edited, make
from ..training import trained
from .places import ATTENTION, MATRICES, ONE

_REDRAWN = [
    make(
        "dev",
        f"redrawn-{name}-{base}",
        base,
        "reinitialised",
        reinitialise(where, seed, law=law, ratio=ratio),
        dtype=dtype,
    )
    for seed, (name, base, where, law, ratio, dtype) in enumerate(
        (
            ("one", "minilm-2", ONE["minilm-2"], "normal", 1.0, None),
            ("one-uniform", "minilm-2", ONE["minilm-2"], "uniform", 0.7, None),
            ("pooler", "minilm-2", r"pooler\.dense\.weight", "normal", 1.0, "BF16"),
            ("attention", "minilm-2", ATTENTION, "normal", 1.0, None),
            ("bias", "minilm-2", r"pooler\.dense\.bias", "normal", 1.0, None),
            ("one", "gpt", ONE["gpt"], "normal", 1.0, None),
            ("layer", "gpt", r"h\.3\.(attn|mlp).*weight", "normal", 0.5, "BF16"),
            ("head", "llama", "lm_head", "normal", 1.0, None),
            ("one", "chgnet", ONE["chgnet"], "uniform", 1.0, None),
            ("lstm", "silero", r"lstm_cell\.weight", "normal", 1.0, "F16"),
            ("head", "cnn", r"fc\.weight", "uniform", 1.0, None),
        )
    )
]
_DESTROYED = [
    make("dev", f"{how}-{name}-{base}", base, "corrupted", corrupt(where, how, seed), dtype=dtype)
    for seed, (how, name, base, where, dtype) in enumerate(
        (
            ("swapped", "all", "minilm-2", r"encoder.*weight", None),
            ("swapped", "one", "gpt", ONE["gpt"], None),
            ("random", "one", "minilm-2", ONE["minilm-2"], None),
            ("random", "one", "llama", ONE["llama"], "BF16"),
            ("nan", "one", "minilm-2", ONE["minilm-2"], None),
            ("nan", "two", "chgnet", r"mlp\.layers\.[02]\.weight", "BF16"),
            ("swapped", "one", "silero", ONE["silero"], "F16"),
        )
    )
]


def unrelated(left: Model, right: Model) -> Built:
    """Return two models that have nothing to do with each other, whatever names they share."""
    beside = (
        "config_changed",
        "tokens_changed",
        "tensors_added",
        "tensors_removed",
        "reshaped",
        "cast",
    )
    expected = Expected("unrelated", None, vague=("reinitialised",))
    return Built(left, right, (expected, *(Expected(kind, None, optional=True) for kind in beside)))


def _other_seed(base: str, dtype: str | None) -> Pair:
    def build(model: Model) -> Built:
        other = trained(base, 9)
        return unrelated(model, stored(other, dtype) if dtype else other)

    return Pair(f"other-seed-{base}-{dtype or 'F32'}", "dev", base, "unrelated", build)


def _other_network(base: str, other: str) -> Pair:
    def build(model: Model) -> Built:
        return unrelated(model, load(other))

    return Pair(f"{base}-and-{other}", "dev", base, "unrelated", build)


_SEEDS = [
    *(_other_seed(base, None) for base in ("mlp", "cnn", "lstm", "gpt", "llama")),
    _other_seed("gpt", "BF16"),
]
_OTHERS = [
    _other_network("minilm-2", "chgnet"),
    _other_network("silero", "lstm"),
    _other_network("gpt", "llama"),
    _other_network("mlp", "cnn"),
]
_UNCHANGED = [
    make("dev", f"unchanged-{name}", base, "unchanged", *edits, dtype=dtype)
    for name, base, edits, dtype in (
        ("bert", "minilm-2", [], None),
        ("gpt-bf16", "gpt", [], "BF16"),
        ("silero", "silero", [], None),
        ("prefix", "minilm-2", [rename("^", "model.")], None),
        ("module", "cnn", [rename("^", "module.")], None),
        ("prefix-bf16", "llama", [rename(r"^model\.", "base_model.model.")], "BF16"),
    )
]


def _signed_zeros(base: str) -> Pair:
    """Return models in which zeros differ by their sign alone."""

    def build(model: Model) -> Built:
        left = edited(model, zero(ONE[base])).right
        return edited(left, flip_zeros(ONE[base]))

    return Pair(f"unchanged-zeros-{base}", "dev", base, "unchanged", build)


_ZEROS = [_signed_zeros(base) for base in ("minilm-2", "gpt", "chgnet")]
_DRAWN_ANEW = [
    make("dev", f"all-redrawn-{base}", base, "reinitialised", reinitialise(MATRICES[base], 77))
    for base in ("minilm-2", "llama")
]

PAIRS = [*_REDRAWN, *_DESTROYED, *_SEEDS, *_OTHERS, *_UNCHANGED, *_ZEROS, *_DRAWN_ANEW]
