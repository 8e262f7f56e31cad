"""A model in memory: arrays by name, with the config, tokens and state that lie beside them."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

Array = Any  # numpy.ndarray of any dtype, those of ml_dtypes among them
Arrays = dict[str, Array]

DTYPES: dict[str, Any] = {
    "F64": np.float64, "F32": np.float32, "F16": np.float16, "BF16": ml_dtypes.bfloat16,
    "F8_E4M3": ml_dtypes.float8_e4m3fn, "F8_E5M2": ml_dtypes.float8_e5m2,
    "I64": np.int64, "I32": np.int32, "I16": np.int16, "I8": np.int8, "U8": np.uint8,
    "BOOL": np.bool_,
}  # fmt: skip
_SPELT = {np.dtype(kind): name for name, kind in DTYPES.items()}
FLOATS = frozenset({"F64", "F32", "F16", "BF16", "F8_E4M3", "F8_E5M2"})


class Model(NamedTuple):
    """What one side of a pair is; `state` makes it a torch checkpoint with an optimizer."""

    tensors: Arrays
    config: dict[str, Any] | None = None
    tokens: dict[str, int] | None = None
    state: dict[str, Any] | None = None


def dtype_of(array: Array) -> str:
    """Spell a dtype as safetensors spells it."""
    return _SPELT[array.dtype]


def is_float(array: Array) -> bool:
    """Does the array hold floating-point numbers?"""
    return dtype_of(array) in FLOATS


def as_float(array: Array) -> Array:
    """Return the values as float64, to compute with."""
    return array.astype(np.float64)


def like(values: Array, array: Array) -> Array:
    """Round values to the dtype of another array, to nearest."""
    return rounded(values, dtype_of(array))


def rounded(values: Array, dtype: str) -> Array:
    """Round values to a dtype, to nearest; what goes to BF16 or FP8 goes through float32."""
    if dtype in {"BF16", "F8_E4M3", "F8_E5M2"}:
        values = values.astype(np.float32)
    return np.asarray(values.astype(DTYPES[dtype]), order="C")  # a scalar stays a scalar


def stored(model: Model, dtype: str) -> Model:
    """Return the model with every float tensor in one dtype: how a left side is prepared."""
    tensors = {
        name: rounded(array, dtype) if is_float(array) else array
        for name, array in model.tensors.items()
    }
    return model._replace(tensors=tensors)


def write(model: Model, folder: Path) -> Path:
    """Write a model into a folder of its own; return the file that difflens is asked about."""
    folder.mkdir(parents=True)
    if model.config is not None:
        (folder / "config.json").write_text(json.dumps(model.config, indent=1))
    if model.tokens is not None:
        (folder / "vocab.json").write_text(json.dumps(model.tokens))
    if model.state is not None:
        return _write_checkpoint(model, folder / "checkpoint.pt")
    path = folder / "model.safetensors"
    path.write_bytes(safetensors_bytes(model.tensors))
    return path


def safetensors_bytes(tensors: Arrays) -> bytes:
    """Return the file that holds these arrays."""
    header: dict[str, Any] = {}
    pieces, end = [], 0
    for name, array in tensors.items():
        piece = np.ascontiguousarray(array).tobytes()
        start, end = end, end + len(piece)
        header[name] = {
            "dtype": dtype_of(array), "shape": list(array.shape), "data_offsets": [start, end],
        }  # fmt: skip
        pieces.append(piece)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return b"".join((struct.pack("<Q", len(text)), text, *pieces))


def _write_checkpoint(model: Model, path: Path) -> Path:
    import torch

    weights = {name: torch.from_numpy(array.copy()) for name, array in model.tensors.items()}
    torch.save({"model": weights, **(model.state or {})}, path)
    return path
