"""Small models that hold every kind of difference, written by hand."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path

from ..diffs import Diff
from ..pipeline import diff

# A tensor as a test writes it down: dtype, shape, encoded bytes.
Encoded = tuple[str, tuple[int, ...], bytes]
Model = dict[str, Encoded]

HOSTILE = (
    "\x1b[31mred", "a\nb", "=1+1", "@sum(1)", "<script>alert(1)</script>", "\u202egnp", "{{ 7*7 }}",
)  # fmt: skip


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
    """Make a pair that comes out with one tensor of every kind."""
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
    """Give pairs of models by name, each unlike the others."""
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
        "hostile": (
            {name: floats(1) for name in HOSTILE},
            {name: floats(2) for name in HOSTILE},
        ),
    }


def diffs(folder: Path) -> Iterator[tuple[str, Diff]]:
    """Yield a measured diff of every pair, then one of headers alone and one with an epsilon."""
    for name, (left, right) in pairs().items():
        paths = _written(folder, name, left, right)
        yield name, diff(*paths)
        if name == "kinds":
            yield "headers alone", diff(*paths, shape_only=True)
        if name == "near":
            yield "within epsilon", diff(*paths, epsilon=0.1)


def _written(folder: Path, name: str, left: Model, right: Model) -> tuple[Path, Path]:
    before = write_safetensors(folder / f"{name} left.safetensors", left, {"step": "1"})
    after = write_safetensors(folder / f"{name} right.safetensors", right, {"step": "2"})
    return before, after
