"""The demo's checkpoints: a small transformer and what usually happens to one.

Shapes, names and scales are those of a Llama-type model, only smaller. Values are
drawn with a fixed seed, so the demo says the same on every machine.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

LAYERS, WIDTH, HIDDEN, VOCABULARY, RANK = 6, 128, 352, 1000, 8
_NAMES = {
    "bfloat16": "BF16", "float32": "F32", "float16": "F16", "float8_e4m3fn": "F8_E4M3",
}  # fmt: skip

Weights = dict[str, Any]


def write(path: Path, weights: Weights, metadata: dict[str, str]) -> None:
    """Write a safetensors file: length, header, tensors."""
    header: dict[str, Any] = {"__metadata__": metadata}
    place = 0
    for name, array in weights.items():
        header[name] = {
            "dtype": _NAMES[str(array.dtype)],
            "shape": list(array.shape),
            "data_offsets": [place, place + array.nbytes],
        }
        place += array.nbytes
    text = json.dumps(header).encode()
    with path.open("wb") as stream:
        stream.write(struct.pack("<Q", len(text)) + text)
        for array in weights.values():
            stream.write(array.tobytes())


def base(random: Any) -> Weights:
    """A freshly trained model in BF16, its output head tied to its embedding."""
    shapes: dict[str, tuple[int, ...]] = {"model.embed_tokens.weight": (VOCABULARY, WIDTH)}
    for layer in range(LAYERS):
        block = f"model.layers.{layer}"
        shapes |= {f"{block}.self_attn.{role}_proj.weight": (WIDTH, WIDTH) for role in "qkvo"}
        shapes |= {f"{block}.mlp.{role}_proj.weight": (HIDDEN, WIDTH) for role in ("gate", "up")}
        shapes[f"{block}.mlp.down_proj.weight"] = (WIDTH, HIDDEN)
        shapes |= {f"{block}.{role}_layernorm.weight": (WIDTH,) for role in ("input", "post")}
    shapes["model.norm.weight"] = (WIDTH,)
    return {name: _initial(random, name, shape) for name, shape in shapes.items()}


def _initial(random: Any, name: str, shape: tuple[int, ...]) -> Any:
    if "norm" in name:
        return _half(1 + 0.05 * random.standard_normal(shape))
    return _half(0.02 * random.standard_normal(shape))


def _half(array: Any) -> Any:
    import ml_dtypes

    return array.astype(ml_dtypes.bfloat16)


def finetuned(weights: Weights, random: Any) -> Weights:
    """Every weight moved a little, later layers more; embeddings of unseen tokens did not."""
    tuned = {}
    for name, array in weights.items():
        layer = int(name.split(".")[2]) if ".layers." in name else 0
        step = 0.01 * (1 + layer) / LAYERS
        moved = array.astype("float64") * (1 + step * random.standard_normal(array.shape))
        if "embed_tokens" in name:
            moved[VOCABULARY // 4 :] = array[VOCABULARY // 4 :].astype("float64")
        tuned[name] = _half(moved)
    return tuned


def lora_merged(weights: Weights, random: Any) -> Weights:
    """A low-rank update merged into the query and value projections."""
    merged = dict(weights)
    for name, array in weights.items():
        if name.endswith(("q_proj.weight", "v_proj.weight")):
            up, down = (random.standard_normal(shape) for shape in ((WIDTH, RANK), (RANK, WIDTH)))
            merged[name] = _half(array.astype("float64") + 5e-4 * (up @ down) / RANK**0.5)
    return merged


def quantised(weights: Weights, _random: Any) -> Weights:
    """Matrices cast to eight-bit floats; norms kept as they were."""
    import ml_dtypes

    return {
        name: array.astype("float32").astype(ml_dtypes.float8_e4m3fn) if array.ndim == 2 else array
        for name, array in weights.items()
    }


def damaged(weights: Weights, random: Any) -> Weights:
    """The fine-tune, with the faults of a bad day: NaN in one matrix, another one zeroed."""
    broken = finetuned(weights, random)
    burnt = broken["model.layers.3.mlp.down_proj.weight"].copy()
    burnt[7, :12] = float("nan")
    broken["model.layers.3.mlp.down_proj.weight"] = burnt
    zeroed = "model.layers.5.self_attn.o_proj.weight"
    broken[zeroed] = broken[zeroed] * 0
    return broken


MODELS: dict[str, Callable[[Weights, Any], Weights]] = {
    "finetuned": finetuned,
    "lora-merged": lora_merged,
    "quantised": quantised,
    "damaged": damaged,
}


def make(folder: Path) -> dict[str, Path]:
    """Write every checkpoint into the folder, and say where each is."""
    import numpy as np

    folder.mkdir(parents=True, exist_ok=True)
    first = base(np.random.default_rng(0))
    paths = {"base": folder / "base.safetensors"}
    write(paths["base"], first, {"format": "pt", "step": "0"})
    for number, (name, change) in enumerate(MODELS.items(), 1):
        paths[name] = folder / f"{name}.safetensors"
        changed = change(first, np.random.default_rng(number))
        write(paths[name], changed, {"format": "pt", "step": "0" if name == "quantised" else "800"})
    return paths
