"""Models that are not in a file: mappings of names to arrays, as a framework hands them out.

Arrays are recognised by what they offer (the buffer protocol, `numpy()`), never
by importing the framework they come from.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import ModelError
from ..records import TensorInfo

_DTYPES = {
    "bool": "BOOL", "uint8": "U8", "int8": "I8", "uint16": "U16", "int16": "I16", "uint32": "U32",
    "int32": "I32", "uint64": "U64", "int64": "I64", "float16": "F16", "bfloat16": "BF16",
    "float32": "F32", "float64": "F64", "complex64": "C64", "float8_e4m3fn": "F8_E4M3",
    "float8_e5m2": "F8_E5M2", "float8_e4m3fnuz": "F8_E4M3FNUZ", "float8_e5m2fnuz": "F8_E5M2FNUZ",
    "float8_e8m0fnu": "F8_E8M0",
}  # fmt: skip


class Memory:
    """A mapping of names to arrays, read like any other model."""

    format = "memory"

    def __init__(self, arrays: Mapping[str, Any]) -> None:
        """Look at every array's type and shape; copy only what is not contiguous."""
        self.metadata: dict[str, str] = {}
        self.warnings: list[str] = []
        self.tensors: dict[str, TensorInfo] = {}
        self._bytes: dict[str, memoryview] = {}
        for name, array in arrays.items():
            if str(name) in self.tensors:
                raise ModelError(str(name), "two arrays go by this name", hint="1 and '1' are one")
            dtype, shape, view = _described(str(name), array)
            self.tensors[str(name)] = TensorInfo(str(name), dtype, shape)
            self._bytes[str(name)] = view

    def read_into(self, name: str, start: int, stop: int, buffer: memoryview) -> int:
        """Copy bytes [start, stop) of the array."""
        part = self._bytes[name][start:stop]
        buffer[: len(part)] = part
        return len(part)

    def confirm(self) -> None:
        """Memory has no identity to check."""

    def close(self) -> None:
        """Let go of the arrays."""
        self._bytes.clear()


def _described(name: str, array: Any) -> tuple[str, tuple[int, ...], memoryview]:
    import numpy as np

    kind = str(getattr(array, "dtype", type(array).__name__)).removeprefix("torch.")
    dtype = _DTYPES.get(kind)
    if dtype is None:
        known = ", ".join(sorted(_DTYPES))
        raise ModelError(name, f"an array of {kind} cannot be compared", hint=f"known: {known}")
    if hasattr(array, "detach"):  # a torch tensor: numpy knows neither its BF16 nor its F8
        array = array.detach().cpu().contiguous()
        shape = tuple(int(length) for length in array.shape)
        flat = array.reshape(-1).view(_torch_bytes(array)).numpy()
    else:
        array = np.asarray(array)
        shape = array.shape
        flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    return dtype, shape, memoryview(flat).cast("B")


def _torch_bytes(tensor: Any) -> Any:
    import sys

    return sys.modules[type(tensor).__module__.partition(".")[0]].uint8
