"""Small models with every kind of difference, and damaged copies of a file."""

from __future__ import annotations

import json
import random
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path

from difflens.diffs.diff import Diff
from difflens.diffs.story import diff

# A tensor as a test writes it down: dtype, shape, encoded bytes.
Encoded = tuple[str, tuple[int, ...], bytes]
Model = dict[str, Encoded]

HOSTILE = (
    "\x1b[31mred",
    "a\nb",
    "=1+1",
    "@sum(1)",
    "<script>alert(1)</script>",
    "\u202egnp",
    "{{ 7*7 }}",
)
_PAGE = b"<!DOCTYPE html><html><body>404: there is no such model here</body></html>"


def write_safetensors(
    path: Path, model: Mapping[str, Encoded], metadata: Mapping[str, str] | None = None
) -> Path:
    """Write a safetensors file, tensors in the order given."""
    header: dict[str, object] = {"__metadata__": dict(metadata)} if metadata else {}
    place = 0
    for name, (dtype, shape, data) in model.items():
        offsets = [place, place + len(data)]
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": offsets}
        place += len(data)
    text = json.dumps(header).encode()
    body = b"".join(data for _, _, data in model.values())
    path.write_bytes(struct.pack("<Q", len(text)) + text + body)
    return path


def floats(*values: float) -> Encoded:
    """Encode numbers as a vector of F32."""
    return "F32", (len(values),), struct.pack(f"<{len(values)}f", *values)


def _kinds() -> tuple[Model, Model]:
    """Make a pair with one tensor of every kind of delta."""
    six = ("F6_E2M3", (4,), b"abc")
    left = {
        "identical": floats(1, 2),
        "changed": floats(1, 2, 3),
        "recast": floats(1, 2),
        "reshaped": floats(1, 2, 3, 4),
        "removed": floats(5),
        "uncompared": six,
        "module.renamed.weight": floats(1, 2),
        "embed_tokens.weight": floats(1, 2, 3, 4, 5),
        "lm_head.weight": floats(1, 2, 3, 4, 5),
        "empty": floats(),
    }
    right = {
        "identical": floats(1, 2),
        "changed": floats(1, 2, 3.5),
        "recast": ("F64", (2,), struct.pack("<2d", 1, 2)),
        "reshaped": floats(1, 2),
        "added": floats(7, 8),
        "uncompared": ("F6_E2M3", (4,), b"abd"),
        "renamed.weight": floats(1, 2),
        "embed_tokens.weight": floats(1, 2, 3, 4, 5),
        "empty": floats(),
    }
    return left, right


def pairs() -> dict[str, tuple[Model, Model]]:
    """Return pairs of models by name, each different from the others."""
    small = {"a.weight": floats(1, 2, 3), "b.weight": floats(4, 5)}
    near = {"a.weight": floats(1, 2, 3.001), "b.weight": floats(4, 5)}
    far = {"a.weight": floats(-9, 70, 0), "b.weight": floats(-4, 500)}
    burnt = {"a.weight": floats(float("nan"), 2, float("inf")), "b.weight": floats(0, 0)}
    return {
        "empty": ({}, {}),
        "same": (small, small),
        "near": (small, near),
        "far": (small, far),
        "not finite": (small, burnt),
        "from zero": ({"w": floats(0, 0)}, {"w": floats(1, 0)}),
        "kinds": _kinds(),
        "hostile": ({name: floats(1) for name in HOSTILE}, {name: floats(2) for name in HOSTILE}),
    }


def diffs(folder: Path) -> Iterator[tuple[str, Diff]]:
    """Yield a measured diff of every pair, one of headers only and one with an epsilon."""
    for name, (left, right) in pairs().items():
        paths = [
            write_safetensors(folder / f"{name} {side}.safetensors", model, {"step": step})
            for side, model, step in (("left", left, "1"), ("right", right, "2"))
        ]
        yield name, diff(*paths)
        if name == "kinds":
            yield "headers alone", diff(*paths, shape_only=True)
        if name == "near":
            yield "within epsilon", diff(*paths, epsilon=0.1)


def damaged(good: bytes) -> dict[str, bytes]:
    """Return broken copies of a file, each by a name that describes the damage."""
    noise = random.Random(0)  # noqa: S311  the same noise every time
    inverted = bytes(255 - byte for byte in good[:8])
    return {
        "empty": b"",
        "its first byte alone": good[:1],
        "its first seven bytes": good[:7],
        "the last byte missing": good[:-1],
        "cut in half": good[: len(good) // 2 | 1],
        "the first byte missing": good[1:],
        "a byte too many": good + b"\0",
        "all zeros": bytes(len(good)),
        "all ones": b"\xff" * len(good),
        "a head of inverted bits": inverted + good[8:],
        "noise": b"\xfe" + noise.randbytes(len(good)),
        "a web page": _PAGE,
    }
