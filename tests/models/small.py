"""Models for tests: made in the test that needs them, written by hand."""

import json
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st
from strategies import BITS, NUMPY, buffers, dtypes

# A tensor as a test writes it down: dtype, shape, encoded bytes.
Encoded = tuple[str, tuple[int, ...], bytes]
Model = dict[str, Encoded]


def write(path: Path, model: Mapping[str, Encoded], metadata: Any = None) -> Path:
    """Write a safetensors file, tensors in the order given."""
    header: dict[str, Any] = {"__metadata__": metadata} if metadata else {}
    place = 0
    for name, (dtype, shape, data) in model.items():
        end = place + len(data)
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [place, end]}
        place = end
    text = json.dumps(header).encode()
    body = b"".join(data for _, _, data in model.values())
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(struct.pack("<Q", len(text)) + text + body)
    return path


def tensor(values: Any, dtype: str = "F32") -> Encoded:
    """Encode an array of numbers."""
    array = np.asarray(values)
    return dtype, array.shape, array.astype(NUMPY[dtype]).tobytes()


def arrays(**values: Any) -> Model:
    """Make a model of F32 tensors: `arrays(w=[1, 2])`."""
    return {name: tensor(value) for name, value in values.items()}


@st.composite
def tensors(draw: st.DrawFn) -> Encoded:
    """Draw a small tensor of any dtype."""
    dtype = draw(dtypes)
    step = 2 if dtype in {"F4", "C64"} else 1
    rows, columns = draw(st.integers(0, 3)), draw(st.integers(1, 4)) * step
    data = draw(buffers(dtype, rows * columns))
    width = columns // 2 if dtype == "C64" else columns
    assert len(data) * 8 == rows * columns * BITS[dtype]
    return dtype, (rows, width), data


NAMES = st.sampled_from(
    ["a.weight", "b.weight", "model.c.weight", "c.weight", "layers.2.w", "layers.10.w", "é\x1b[1m"]
)


@st.composite
def models(draw: st.DrawFn) -> Model:
    """Draw a small model."""
    return draw(st.dictionaries(NAMES, tensors(), max_size=5))


@st.composite
def model_pairs(draw: st.DrawFn) -> tuple[Model, Model]:
    """Draw two models that share some tensors and not others."""
    left, right = draw(models()), draw(models())
    for name in left:
        if draw(st.booleans()):
            right[name] = left[name]
        elif draw(st.booleans()):
            dtype, shape, data = left[name]
            right[name] = (dtype, shape, data[::-1])
    return left, right
