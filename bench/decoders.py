"""Makes pairs of decoders that look fine-tuned: BF16, every weight moved by about a hundredth."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

if TYPE_CHECKING:
    import numpy as np

Tensors = dict[str, tuple[str, list[int]]]  # by name: dtype and shape
_PIECE = 1 << 22  # values made at a time
_SPREAD, _MOVED = 0.02, 0.0002


def gpt2(narrow: int) -> Tensors:
    """Name the tensors of GPT-2 small, 124 million parameters; widths are divided by `narrow`."""
    width, words, layers = 768 // narrow, 50257 // narrow, max(1, 12 // narrow)
    shapes: dict[str, list[int]] = {"wte.weight": [words, width], "wpe.weight": [1024, width]}
    for i in range(layers):
        parts = {
            "ln_1": [width], "attn.c_attn": [width, 3 * width], "attn.c_proj": [width, width],
            "ln_2": [width], "mlp.c_fc": [width, 4 * width], "mlp.c_proj": [4 * width, width],
        }  # fmt: skip
        for part, shape in parts.items():
            shapes |= {f"h.{i}.{part}.weight": shape, f"h.{i}.{part}.bias": shape[-1:]}
    shapes |= {"ln_f.weight": [width], "ln_f.bias": [width]}
    return {f"transformer.{name}": ("BF16", shape) for name, shape in shapes.items()}


def llama(narrow: int) -> Tensors:
    """Name the tensors of a decoder of 1.2 billion parameters (Llama 3.2 1B), likewise."""
    width, words, layers = 2048 // narrow, 128256 // narrow, max(1, 16 // narrow)
    shapes: dict[str, list[int]] = {"embed_tokens": [words, width], "norm": [width]}
    for i in range(layers):
        shapes |= {
            f"layers.{i}.input_layernorm": [width],
            f"layers.{i}.self_attn.q_proj": [width, width],
            f"layers.{i}.self_attn.k_proj": [width // 4, width],
            f"layers.{i}.self_attn.v_proj": [width // 4, width],
            f"layers.{i}.self_attn.o_proj": [width, width],
            f"layers.{i}.post_attention_layernorm": [width],
            f"layers.{i}.mlp.gate_proj": [4 * width, width],
            f"layers.{i}.mlp.up_proj": [4 * width, width],
            f"layers.{i}.mlp.down_proj": [width, 4 * width],
        }
    return {f"model.{name}.weight": ("BF16", shape) for name, shape in shapes.items()}


def squares(narrow: int) -> Tensors:
    """Name eight matrices of 1024 x 1024 and eight of 4096 x 1024, likewise."""
    side = 1024 // narrow
    return {
        f"model.layers.{i}.mlp.{part}_proj.weight": ("BF16", [high * side, side])
        for i in range(8)
        for part, high in (("gate", 1), ("up", 4))
    }


def write(tensors: Tensors, left: BinaryIO, right: BinaryIO) -> None:
    """Write the bytes of both sides, tensor after tensor."""
    import numpy as np

    random = np.random.default_rng(0)
    for _, shape in tensors.values():
        count, centre = prod(shape), float(len(shape) == 1)  # gains are about one
        for start in range(0, count, _PIECE):
            made = _sides(random, centre, min(_PIECE, count - start))
            for side, bits in zip((left, right), made, strict=True):
                side.write(bits)


def _sides(random: np.random.Generator, centre: float, count: int) -> Iterator[Any]:
    import ml_dtypes
    import numpy as np

    wide = centre + _SPREAD * random.standard_normal(count, np.float32)
    before = wide.astype(ml_dtypes.bfloat16)
    yield before.view(np.uint16).data
    moved = _MOVED * random.standard_normal(count, np.float32)
    yield (before.astype(np.float32) + moved).astype(ml_dtypes.bfloat16).view(np.uint16).data


DECODERS: dict[str, Callable[[int], Tensors]] = {"gpt2": gpt2, "llama": llama, "squares": squares}


def folders(left: Path, right: Path) -> None:
    """Link each file into a folder of its own, as tools that take only folders want it."""
    for path in (left, right):
        path.with_suffix("").mkdir()
        (path.with_suffix("") / "model.safetensors").symlink_to(path)
