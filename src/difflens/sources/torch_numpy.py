"""NumPy's arrays and scalars within a pickle, as tensors and numbers."""

from __future__ import annotations

from math import prod
from struct import unpack
from typing import Any, NamedTuple

from .containers.pickle_nodes import Blob, Call
from .torch_dtypes import ENCODINGS
from .torch_make import dotted
from .torch_tensors import Storage, Storages, Unread

_DTYPES = {
    "b1": "bool", "i1": "int8", "u1": "uint8", "i2": "int16", "u2": "uint16", "i4": "int32",
    "u4": "uint32", "i8": "int64", "u8": "uint64", "f2": "float16", "f4": "float32",
    "f8": "float64", "c8": "complex64", "c16": "complex128",
}  # fmt: skip
_CODES = {"b1": "?", "i1": "b", "u1": "B", "i2": "h", "u2": "H", "i4": "i", "u4": "I", "i8": "q",
          "u8": "Q", "f2": "e", "f4": "f", "f8": "d", "c8": "2f", "c16": "2d"}  # fmt: skip
_MOST_AXES = 64  # of NumPy itself
_HOMES = ("numpy.core.", "numpy._core.")


class _Dtype(NamedTuple):
    """A NumPy dtype we know: its code without, and the order of its bytes."""

    code: str
    big: bool


def from_numpy(call: Call, storages: Storages) -> Any:
    """Give the tensor or number a call of NumPy's stands for; None where it is no such call."""
    name = dotted(call.function)
    if not name.startswith(_HOMES):
        return None
    name = name.removeprefix(_HOMES[0]).removeprefix(_HOMES[1])
    if name == "multiarray.scalar":
        return _scalar(call.arguments, storages)
    if name == "multiarray._reconstruct" and type(call.state) is tuple and len(call.state) == 5:
        _, shape, dtype, fortran, data = call.state
        return _array(shape, dtype, data, storages, fortran=fortran is True)
    if name == "numeric._frombuffer" and len(call.arguments) == 4:
        data, dtype, shape, order = call.arguments
        return _array(shape, dtype, data, storages, fortran=order == "F")
    return Unread("numpy array") if name == "multiarray._reconstruct" else None


def _dtype(call: Any) -> _Dtype | None:
    if type(call) is not Call or dotted(call.function) != "numpy.dtype" or not call.arguments:
        return None
    code, state = call.arguments[0], call.state
    order = state[1] if type(state) is tuple and len(state) > 3 else "<"
    structured = type(state) is tuple and len(state) > 3 and state[3] is not None
    if type(code) is not str or code not in _DTYPES or structured:
        return None
    return _Dtype(code, big=order == ">")


def _array(shape: Any, dtype: Any, data: Any, storages: Storages, *, fortran: bool) -> Any:
    known = _dtype(dtype)
    if type(data) is str:  # Python 2's strings are bytes
        storages.charge(len(data))
        data = data.encode("utf-8", "surrogatepass")
    text = type(data) is Blob and data.text
    if known is None or text or type(data) not in (bytes, Blob):
        return Unread("numpy array of objects, text or more than a megabyte in protocol 2")
    name = _DTYPES[known.code]
    size = len(data) if type(data) is bytes else data.length
    sizes = type(shape) is tuple and all(type(n) is int and 0 <= n < 2**40 for n in shape)
    if not sizes or len(shape) > _MOST_AXES:
        raise storages.broken("a numpy array's shape holds what is no count")
    wanted = prod(shape) * ENCODINGS[name].size
    if wanted != size:
        raise storages.broken(f"a numpy array of {wanted} bytes has {size} in the pickle")
    storage = Storage("", size, content=data, big=known.big)
    stride = _stride(shape[::-1])[::-1] if fortran else _stride(shape)
    return storages.tensor(storage, name, 0, shape, stride)


def _stride(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Give the strides of C order."""
    strides, step = [], 1
    for length in reversed(shape):
        strides.append(step)
        step *= max(length, 1)
    return tuple(reversed(strides))


def _scalar(arguments: tuple[Any, ...], storages: Storages) -> Any:
    known = _dtype(arguments[0]) if len(arguments) == 2 else None
    if known is None:
        return Unread("numpy scalar")
    data = arguments[1]
    if type(data) is str:
        storages.charge(len(data))
        data = data.encode("utf-8", "surrogatepass")
    width = ENCODINGS[_DTYPES[known.code]].size
    if type(data) is not bytes or len(data) != width:
        raise storages.broken(f"a numpy scalar of {width} bytes has others in the pickle")
    numbers = unpack((">" if known.big else "<") + _CODES[known.code], data)
    return numbers[0] if len(numbers) == 1 else complex(*numbers)
