"""The golden pairs: small models, each a situation people meet.

Every value is a small dyadic number and finite values come in powers of two, so
that sums and means are exact in float64 whatever their order: AVX-512, AVX2, plain
C and NumPy print the same digits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from models.small import Encoded, Model, arrays, tensor


@dataclass(frozen=True)
class Case:
    """Both sides, what is written beside the tensors, and how the command is called."""

    left: Model
    right: Model
    metadata: tuple[dict[str, str], dict[str, str]] = ({}, {})
    options: tuple[str, ...] = ()


CASES: dict[str, Callable[[], Case]] = {}


def case(build: Callable[[], Case]) -> Callable[[], Case]:
    """Keep a case under the name of its function."""
    CASES[build.__name__.replace("_", "-")] = build
    return build


def steps(*shape: int, start: int = 1, scale: float = 0.125) -> Any:
    """Count up in dyadic steps, wrapped so that no value grows large."""
    return ((np.arange(np.prod(shape)) + start) % 16 * scale).reshape(shape)


def block(layer: int, shift: float = 0.0, prefix: str = "model.") -> dict[str, Any]:
    """Make the weights of one small layer."""
    name = f"{prefix}layers.{layer}"
    return {
        f"{name}.self_attn.q_proj.weight": steps(2, 4, start=layer) + shift,
        f"{name}.mlp.up_proj.weight": steps(4, 2, start=layer + 3) + 2 * shift,
        f"{name}.input_layernorm.weight": np.ones(4),
    }


@case
def identical() -> Case:
    """Nothing to tell."""
    model = arrays(**block(0))
    return Case(model, model)


@case
def fine_tune() -> Case:
    """Projections moved, norms did not, the step went on."""
    left = arrays(**block(0), **block(1))
    right = arrays(**block(0, 0.0625), **block(1, 0.125))
    steps_done = ({"format": "pt", "step": "0"}, {"format": "pt", "step": "800"})
    return Case(left, right, steps_done, ("--change-summary",))


@case
def fine_tune_stats() -> Case:
    """The same, told as means and deviations, largest change first."""
    return Case(
        fine_tune().left, fine_tune().right, options=("--stats", "--sort-by-change-magnitude")
    )


@case
def cast() -> Case:
    """One tensor survived the cast, one was rounded by it, one was moved."""
    left = arrays(exact=[1, 2, 4, 8], moved=[1, 2], rounded=[1 + 2**-9, 2, 3, 4])
    right: dict[str, Encoded] = {
        "exact": tensor([1, 2, 4, 8], "BF16"),
        "moved": tensor([1, 3], "BF16"),
        "rounded": tensor([1, 2, 3, 4], "BF16"),
    }
    return Case(left, right)


@case
def renamed_prefixes() -> Case:
    """Saved from inside a wrapper: the same model under longer names."""
    inner = block(0, prefix="") | block(1, prefix="")
    return Case(
        arrays(**{f"module.{name}": value for name, value in inner.items()}), arrays(**inner)
    )


@case
def tied_head() -> Case:
    """A head the right side does not store, because it is the embedding."""
    embedding = steps(4, 2)
    left = arrays(**{"lm_head.weight": embedding, "model.embed_tokens.weight": embedding})
    return Case(left, arrays(**{"model.embed_tokens.weight": embedding}))


@case
def structure() -> Case:
    """A new head: reshaped, added, removed, and one pair that cannot be compared."""
    left = arrays(**{"classifier.weight": steps(3, 4), "old.bias": [0, 1]})
    right = arrays(**{"classifier.weight": steps(2, 4), "new.bias": [1, 0]})
    left["phase"], right["phase"] = ("C64", (1,), bytes(8)), tensor([0])
    return Case(left, right)


@case
def nan_appeared() -> Case:
    """A bad day: NaN and infinities in one matrix, another one zeroed, odd booleans."""
    left = arrays(burnt=steps(2, 4), zeroed=steps(4), healthy=[1, 2])
    burnt = steps(2, 4)
    burnt[0, 1], burnt[0, 2], burnt[1, 0], burnt[1, 3] = np.nan, np.nan, np.inf, -np.inf
    right = arrays(burnt=burnt, zeroed=np.zeros(4), healthy=[1, 2])
    mask = ("BOOL", (4,), b"\0\1\0\1"), ("BOOL", (4,), b"\0\1\2\1")
    left["mask"], right["mask"] = mask
    return Case(left, right)


@case
def within_epsilon() -> Case:
    """One tensor moved less than asked for, one more."""
    left = arrays(far=[1, 2], near=[1, 2])
    return Case(left, arrays(far=[1, 3], near=[1, 2.25]), options=("--epsilon", "0.5"))


@case
def hostile_names() -> Case:
    """Names that would command a terminal, a browser, a spreadsheet, or read backwards."""
    names = (
        "a\x1b[31mred", "b\nline", "<script>alert(1)</script>", "=1+1", "@sum", "é.weight",
        "\u202etxt", "zero\u200bwidth", "'quoted\"", "{{ 7*7 }}", "del\x7f", "x" * 250,
    )  # fmt: skip
    left, right = (arrays(**{name: [value] for name in names}) for value in (1, 2))
    return Case(left, right, ({names[0]: names[2]}, {names[0]: names[3]}))


@case
def many_layers() -> Case:
    """A hundred layers: what is alike folds into one line."""
    left, right = (
        {
            f"model.layers.{n}.mlp.up_proj.weight": steps(2, 2, start=n) + n % 3 * shift
            for n in range(100)
        }
        for shift in (0.0, 0.125)
    )
    return Case(arrays(**left), arrays(**right))


@case
def shape_only() -> Case:
    """Headers alone: values are not read, and that is said."""
    return Case(structure().left, structure().right, options=("--shape-only",))


@case
def every_dtype() -> Case:
    """One changed tensor of each kind of number."""
    names = ("F64", "F32", "F16", "BF16", "F8_E4M3", "F8_E5M2", "I8", "I16", "I32", "I64",
             "U8", "U16", "U32", "U64")  # fmt: skip
    left, right = ({name: tensor(v, name) for name in names} for v in ([1, 2, 4, 1], [1, 2, 8, 1]))
    return Case(left, right)


# How an expected file is called, by renderer.
SUFFIXES = {
    "cli": "txt",
    "json": "json",
    "full-json": "full.json",
    "yaml": "yaml",
    "csv": "csv",
    "html": "html",
    "markdown": "md",
}
