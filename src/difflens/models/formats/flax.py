"""Flax checkpoints: MessagePack maps whose leaves are arrays, as `flax.serialization` writes them.

    {"params": {"dense": {"kernel": extension 1, ...}}, "step": 7}
    extension 1    an array: [shape, dtype's name, bytes]; 3 a scalar, the same; 2 a complex number
    {"__msgpack_chunked_array__": true, "shape": {"0": n}, "chunks": {"0": array, ...}}
                   an array of more than a gigabyte, cut into flat pieces

Names are the keys joined with dots; what is no array is metadata.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate
from math import prod
from typing import Any, NamedTuple

from difflens.core.addresses import Location
from difflens.core.dtypes import BITS, BY_NUMPY_NAME
from difflens.core.errors import CorruptFile, LimitExceeded, ModelError
from difflens.core.escape import for_terminal, visible
from difflens.core.limits import LARGEST
from difflens.core.protocols import ModelFile
from difflens.core.records import TensorInfo

from ..containers.encodings import EncodedSource, Encoding, Stacked, Straight
from ..containers.msgpack import Blob, Scanner
from . import source

_DTYPES = {**BY_NUMPY_NAME, "complex128": "F64"}
_CHUNKED = "__msgpack_chunked_array__"
_ARRAY, _COMPLEX, _SCALAR = 1, 2, 3


class _Array(NamedTuple):
    """An array in the file; `dtype` is NumPy's name of it."""

    dtype: str
    shape: tuple[int, ...]
    start: int
    length: int


class _Head:
    """The first bytes of a file as one; what lies behind them is not looked at."""

    def __init__(self, head: bytes, path: Location) -> None:
        self.path = path
        self.size = 1 << 62
        self._head = head

    def read(self, start: int, stop: int) -> bytes:
        return self._head[start:stop]

    def limit(self, name: str) -> int:
        del name
        return 1000


def recognise(head: bytes, path: Location) -> bool:
    """Is this a map of texts that leads to an array within the first bytes?"""
    first = head[:1]
    if not (b"\x81" <= first <= b"\x8f" or first in (b"\xde", b"\xdf")):
        return False
    found: list[_Array] = []

    def make(blob: Blob) -> None:
        if blob.code in (_ARRAY, _SCALAR):
            found.append(_array(Scanner(beginning, "", blob.start, blob.start + blob.length)))
            raise StopIteration

    beginning: Any = _Head(head, path)
    try:
        Scanner(beginning, "").value(make)
    except (ModelError, IndexError, StopIteration):
        return bool(found)
    return False


@source(recognise=recognise, suffixes=(".msgpack",))
def flax(file: ModelFile) -> EncodedSource:
    """Flax and JAX: MessagePack with arrays, as flax.serialization writes it."""
    model = EncodedSource(file, "flax")
    where = visible(str(file.path))
    scanner = Scanner(file, where)
    tree = scanner.value(lambda blob: _leaf(file, blob, where))
    if not isinstance(tree, dict):
        raise CorruptFile(where, f"it holds {_brief(tree)}, a map of names is wanted")
    if scanner.place != file.size:
        reason = f"trailing bytes: the map ends at byte {scanner.place}, the file has {file.size}"
        raise CorruptFile(where, reason)
    texts: dict[str, str] = {}
    opaque: list[str] = []
    for name, leaf in _leaves(tree, ""):
        if name in model.tensors or name in texts:
            raise CorruptFile(where, f"it holds '{for_terminal(name)}' twice")
        if isinstance(leaf, Blob):
            opaque.append(f"{name}: {leaf.length} bytes")
        elif not isinstance(leaf, _Array | dict):
            texts[name] = leaf if isinstance(leaf, str) else f"{leaf!r}"
        else:
            _add(model, name, leaf, opaque, where)
    model.metadata = texts
    model.warn("no tensors, left out", opaque)
    return model


def _leaf(file: ModelFile, blob: Blob, where: str) -> Any:
    """Look into an extension; leave bytes where they are."""
    scanner = Scanner(file, where, blob.start, blob.start + blob.length)
    if blob.code == _COMPLEX:
        parts = scanner.value()
        if isinstance(parts, list) and len(parts) == 2:
            return f"{parts[0]}{parts[1]:+}j" if all(type(p) is float for p in parts) else blob
    if blob.code not in (_ARRAY, _SCALAR):
        return blob
    array = _array(scanner)
    if scanner.place != scanner.stop:
        scanner.fail("an array's extension is longer than the array")
    return array


def _array(scanner: Scanner) -> _Array:
    """Read the head of an array: shape and dtype."""
    found = scanner.value()
    if not isinstance(found, list) or len(found) != 3:
        scanner.fail("an array is no list of shape, dtype and bytes")
    shape, dtype, data = found
    sizes = isinstance(shape, list) and all(type(n) is int and 0 <= n <= LARGEST for n in shape)
    if not sizes or not isinstance(dtype, str) or not isinstance(data, Blob):
        scanner.fail("an array is no list of shape, dtype and bytes")
    return _Array(dtype, tuple(shape), data.start, data.length)


def _leaves(tree: Any, prefix: str) -> Iterator[tuple[str, Any]]:
    """Yield what the maps and lists end in, by name; an array in chunks is one leaf."""
    parts = enumerate(tree) if isinstance(tree, list) else tree.items()
    for key, value in parts:
        name = f"{prefix}.{key}" if prefix else str(key)
        if isinstance(value, list) or (isinstance(value, dict) and _CHUNKED not in value):
            yield from _leaves(value, name)
        else:
            yield name, value


def _add(model: EncodedSource, name: str, leaf: Any, opaque: list[str], where: str) -> None:
    """Add an array, or one in chunks, once its bytes are what shape and dtype take."""
    shape, pieces = _pieces(leaf, name, where)
    numpy_name = pieces[0].dtype if pieces else "float32"
    dtype = _DTYPES.get(numpy_name)
    about = f"tensor '{for_terminal(name)}'"
    if dtype is None:
        opaque.append(f"{name}: {numpy_name}")
        return
    width = BITS[dtype] // 8 * (2 if numpy_name == "complex128" else 1)
    if len(shape) > model.file.limit("rank"):
        limit = model.file.limit("rank")
        raise LimitExceeded(where, f"{about} has rank {len(shape)}, the limit is {limit}")
    if prod(filter(None, shape)) * width > LARGEST:
        raise CorruptFile(where, f"{about}: its shape {list(shape)} overflows 63 bits")
    length = sum(piece.length for piece in pieces)
    if prod(shape) * width != length or any(piece.length % width for piece in pieces):
        said = f"{about}: {numpy_name} {list(shape)} takes {prod(shape) * width} bytes"
        raise CorruptFile(where, f"{said}, it has {length}")
    stored = numpy_name if numpy_name == "complex128" else None
    shape = (*shape, 2) if stored else shape
    encodings: list[Encoding] = [Straight(model.file, piece.start) for piece in pieces]
    ends = tuple(accumulate(piece.length for piece in pieces))
    encoding = encodings[0] if len(encodings) == 1 else Stacked(tuple(encodings), ends)
    model.add(TensorInfo(name, dtype, shape, stored), encoding)


def _pieces(leaf: Any, name: str, where: str) -> tuple[tuple[int, ...], list[_Array]]:
    if isinstance(leaf, _Array):
        return leaf.shape, [leaf]
    shape, chunks = (_row(leaf.get(key)) for key in ("shape", "chunks"))
    sizes = shape is not None and all(type(n) is int and 0 <= n <= LARGEST for n in shape)
    if not sizes or not chunks or not all(isinstance(each, _Array) for each in chunks):
        reason = f"tensor '{for_terminal(name)}' is in chunks, and has no shape or no arrays"
        raise CorruptFile(where, reason)
    if len({chunk.dtype for chunk in chunks}) > 1:
        raise CorruptFile(where, f"tensor '{for_terminal(name)}' has chunks of several dtypes")
    return tuple(shape or ()), chunks


def _row(found: Any) -> list[Any] | None:
    """Return the values of {"0": a, "1": b} in order."""
    if not isinstance(found, dict) or [*found] != [str(at) for at in range(len(found))]:
        return None
    return list(found.values())


def _brief(value: Any) -> str:
    return for_terminal(f"{value!r}", 80)
