"""What the `.metadata` of a distributed checkpoint says: tensors, their pieces, where these lie."""

from __future__ import annotations

from math import prod
from typing import Any, NamedTuple

from difflens.core.errors import CorruptFile
from difflens.core.escape import for_terminal, visible
from difflens.core.limits import LARGEST
from difflens.core.protocols import ModelFile

from ..containers.pickle_nodes import Call, Dict
from ..containers.pickles import unpickle
from .make import Maker, dotted, is_known
from .tensors import Storages, torch_dtype

_HOME = "torch.distributed.checkpoint."
_KNOWN = frozenset(
    f"{_HOME}{name}"
    for name in tuple(
        """
    metadata.Metadata metadata.TensorStorageMetadata metadata.TensorProperties
    metadata.ChunkStorageMetadata metadata.BytesStorageMetadata metadata.MetadataIndex
    metadata.StorageMeta metadata._MEM_FORMAT_ENCODING filesystem._StorageInfo
""".split()
    )
)


class Range(NamedTuple):
    """Where something is kept: a file beside `.metadata`, and a range of it."""

    file: str
    begin: int
    length: int
    packed: bool


class Piece(NamedTuple):
    """A box of a tensor, and where it is kept."""

    offsets: tuple[int, ...]
    sizes: tuple[int, ...]
    range: Range


class Whole(NamedTuple):
    """A tensor and its pieces."""

    dtype: str | None
    shape: tuple[int, ...]
    pieces: tuple[Piece, ...]


class About(NamedTuple):
    """All that is in `.metadata`."""

    tensors: dict[str, Whole]
    values: dict[str, Range]
    refused: list[str]


def read_metadata(file: ModelFile) -> About:
    """Read `.metadata`, and hold it to its own word."""
    return _Reader(file).read()


class _Reader:
    def __init__(self, file: ModelFile) -> None:
        self._file = file
        self._where = visible(str(file.path))
        self._rank = file.limit("rank")
        self._ranges: dict[tuple[str, tuple[int, ...] | None], Range] = {}

    def read(self) -> About:
        root, end, names = unpickle(self._file, 0, Maker(Storages(self._file)))
        if end != self._file.size:
            raise self._broken(f"bytes follow the end of the pickle at byte {end}")
        about = _state(root, f"{_HOME}metadata.Metadata")
        entries, kept = about.get("state_dict_metadata"), about.get("storage_data")
        if type(entries) is not Dict or type(kept) is not Dict:
            raise self._broken("it is no metadata of a distributed checkpoint")
        for index, info in zip(kept.flat[::2], kept.flat[1::2], strict=True):
            self._add_range(index, info)
        tensors, values = {}, {}
        for name, entry in zip(entries.flat[::2], entries.flat[1::2], strict=True):
            if type(name) is not str or name in tensors or name in values:
                raise self._broken("a name in the metadata is there twice, or is no text")
            if dotted(getattr(entry, "function", None)) == f"{_HOME}metadata.TensorStorageMetadata":
                tensors[name] = self._read_entry(name, entry)
            else:
                values[name] = self._range(name, None)
        refused = [dotted(each) for each in names if not is_known(each)]
        return About(tensors, values, sorted(name for name in refused if name not in _KNOWN))

    def _add_range(self, index: Any, info: Any) -> None:
        key, kept = _state(index), _state(info)
        name, offset = _values(key, "fqn", "offset")
        path, begin, length = _values(kept, "relative_path", "offset", "length")
        fits = type(name) is str and (offset is None or _is_shape(offset, self._rank))
        if not fits or not _is_count(begin) or not _is_count(length) or type(path) is not str:
            raise self._broken("a piece's entry is none that torch writes")
        if not path or path in (".", "..") or set(path) & set("/\\:\0"):
            reason = f"a piece is kept in '{for_terminal(path)}', a file of the folder is wanted"
            raise self._broken(reason)
        packed = bool(kept.get("transform_descriptors"))
        self._ranges[name, offset] = Range(path, begin, length, packed)

    def _range(self, name: str, offset: tuple[int, ...] | None) -> Range:
        try:
            return self._ranges[name, offset]
        except KeyError:
            reason = f"a piece of '{for_terminal(name)}' is kept nowhere"
            raise self._broken(reason) from None

    def _read_entry(self, name: str, entry: Call) -> Whole:
        state = _state(entry)
        properties, shape, chunks = _values(state, "properties", "size", "chunks")
        about = getattr(properties, "state", None)
        dtype = about[0] if type(about) is tuple and about else None
        if not _is_shape(shape, self._rank) or type(chunks) is not list:
            raise self._broken(f"tensor '{for_terminal(name)}' has a shape or pieces that are none")
        if prod(filter(None, shape)) * 16 > LARGEST:
            raise self._broken(f"tensor '{for_terminal(name)}': its shape overflows 63 bits")
        pieces = tuple(self._piece(name, shape, chunk) for chunk in chunks)
        there = sum(prod(piece.sizes) for piece in pieces)
        if there != prod(shape):
            said = f"the pieces of '{for_terminal(name)}' hold {there} elements"
            raise self._broken(f"{said}, the tensor has {prod(shape)}")
        return Whole(torch_dtype(dtype), shape, pieces)

    def _piece(self, name: str, shape: tuple[int, ...], chunk: Any) -> Piece:
        state = _state(chunk, f"{_HOME}metadata.ChunkStorageMetadata")
        offsets, sizes = _values(state, "offsets", "sizes")
        rank = len(shape)
        fits = _is_shape(offsets, self._rank) and _is_shape(sizes, self._rank)
        if not fits or len(offsets) != rank or len(sizes) != rank:
            raise self._broken(f"a piece of '{for_terminal(name)}' has no place in it")
        ends = zip(offsets, sizes, shape, strict=True)
        if any(offset + size > length for offset, size, length in ends):
            raise self._broken(f"a piece of '{for_terminal(name)}' ends outside of it")
        return Piece(offsets, sizes, self._range(name, offsets))

    def _broken(self, reason: str) -> CorruptFile:
        return CorruptFile(self._where, reason)


def _state(value: Any, kind: str | None = None) -> dict[str, Any]:
    """Return the attributes of an object, of that class if one is wanted."""
    if type(value) is not Call or type(value.state) is not Dict:
        return {}
    return value.state.named() if kind is None or dotted(value.function) == kind else {}


def _values(state: dict[str, Any], *keys: str) -> tuple[Any, ...]:
    return tuple(state.get(key) for key in keys)


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value <= LARGEST


def _is_shape(value: Any, rank: int) -> bool:
    if type(value) is not tuple or not all(map(_is_count, value)):
        return False
    return len(value) <= rank
