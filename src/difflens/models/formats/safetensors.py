"""Safetensors, read strictly.

    byte 0       n, the length of the header: 8 bytes, little-endian
    byte 8       the header: n bytes of JSON, padded with spaces
                 {"__metadata__": {"key": "text"},
                  "name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [begin, end]}}
    byte 8 + n   the data: the tensors one after another, no hole, no overlap, to the end

A file that two readers could read in two ways is refused.
"""

import json
import re
from math import prod
from typing import Any, NamedTuple

from difflens.core.addresses import Location
from difflens.core.dtypes import BITS
from difflens.core.errors import INCOMPLETE, CorruptFile, LimitExceeded
from difflens.core.escape import for_terminal, visible
from difflens.core.limits import LARGEST
from difflens.core.protocols import ModelFile
from difflens.core.records import TensorInfo

from .. import strict_json
from ..containers.encodings import EncodedSource, Encoding, Straight
from ..refusals import looks_like
from . import source

_DTYPES = {name: name for name in BITS}  # one string a dtype, however many tensors
_KEYS = {"dtype", "shape", "data_offsets"}
_BLANK = b" \t\r\n"

# dtype, shape, begin, end: what `_entry` vouches for. JSON itself never makes a tuple.
Entry = tuple[str, tuple[int, ...], int, int]

# A header as the known writers write it: nothing escaped, no space or one, keys in this order.
_METADATA = re.compile(rb'"__metadata__": ?(\{[^{}]*\})(?:, ?(?=")|(?=\}))')
_TENSOR = re.compile(
    rb'"([^"\\\x00-\x1f]*)": ?'
    rb'\{("dtype": ?"[A-Z0-9_]+", ?"shape": ?\[[0-9, ]*\]), ?'
    rb'"data_offsets": ?\[(0|[1-9][0-9]*), ?(0|[1-9][0-9]*)\]\}(?:, ?(?=")|(?=\}))'
)


class Header(NamedTuple):
    """A checked header: the tensors in the order of their bytes, and where in the data each is."""

    metadata: dict[str, str]
    tensors: dict[str, TensorInfo]
    begins: dict[str, int]
    end: int  # of the last tensor


def recognise(head: bytes, path: Location) -> bool:
    """Are these the first bytes of a safetensors file, or is it called one and nothing else?"""
    if head[4:8] == bytes(4) and head[8:].lstrip(b" \t\r\n")[:1] == b"{":
        return True
    # A damaged file keeps its name: its reader can say best what is wrong with it.
    return path.suffix == ".safetensors" and (len(head) < 8 or looks_like(head) is None)


@source(recognise=recognise, suffixes=(".safetensors",))
def safetensors(file: ModelFile) -> "Safetensors":
    """Safetensors: a JSON header, then the raw tensors."""
    return Safetensors(file)


class Safetensors(EncodedSource):
    """An open safetensors file."""

    def __init__(self, file: ModelFile) -> None:
        """Read and check the header; touch no tensor."""
        super().__init__(file, "safetensors")
        where = visible(str(file.path))
        self.data = 8 + _header_length(file, where)
        header = parse_header(
            file.read(8, self.data), where, depth=file.limit("json_depth"), rank=file.limit("rank")
        )
        self.metadata, self.tensors = header.metadata, header.tensors
        self.encodings = _Places(file, self.data, header.begins)
        self._check_end(self.data + header.end, where)

    def header(self) -> bytes:
        """Read the header as it is in the file."""
        return self.file.read(8, self.data)

    def _check_end(self, end: int, where: str) -> None:
        """Raise unless the tensors end where the file does."""
        size = self.file.size
        if end > size:
            last = for_terminal(next(reversed(self.tensors)))
            reason = f"tensor '{last}' ends at byte {end}, the file has {size}"
            raise CorruptFile(where, reason, hint=INCOMPLETE)
        if end < size:
            reason = f"trailing bytes: the tensors end at byte {end}, the file has {size}"
            raise CorruptFile(where, reason)


class _Places(dict[str, Encoding]):
    """The encodings, made as they are asked for: a million of them would take 80 MB."""

    def __init__(self, file: ModelFile, data: int, begins: dict[str, int]) -> None:
        super().__init__()
        self._file, self._data, self._begins = file, data, begins

    def __missing__(self, name: str) -> Encoding:
        return Straight(self._file, self._data + self._begins[name])


def parse_header(data: bytes, where: str, *, depth: int, rank: int) -> Header:
    """Read a header, and check every entry, and that they follow each other without hole."""
    return _parse_usual(data, where, depth, rank) or _parse_any(data, where, depth, rank)


def _parse_usual(data: bytes, where: str, depth: int, rank: int) -> Header | None:
    """Read a header in the usual spelling, entry by entry: a tree of a million takes 300 MB.

    Return None where anything is unusual: `_parse_any` reads it, or says what is wrong with it.
    """
    metadata: dict[str, str] = {}
    tensors: dict[str, TensorInfo] = {}
    begins: dict[str, int] = {}
    kinds: dict[bytes, tuple[str, tuple[int, ...], int]] = {}
    at, end, number, last = 1, 0, 0, b"0"
    try:
        if match := _METADATA.match(data, at):
            beside = strict_json.parse(match[1], where, depth=depth - 1)
            metadata, at = _metadata({"__metadata__": beside}, where), match.end()
        while match := _TENSOR.match(data, at):
            name, head, begin, stop = match.groups()
            dtype, shape, size = kinds.get(head) or kinds.setdefault(head, _kind(head, rank))
            if begin != last or int(stop) != end + size:
                return None
            text = name.decode()
            tensors[text] = TensorInfo(text, dtype, shape)
            begins[text] = end
            at, end, number, last = match.end(), end + size, number + 1, stop
    except (CorruptFile, LimitExceeded, LookupError, ValueError):
        return None
    is_complete = (
        data[:1] == b"{" and data[at : at + 1] == b"}" and not data[at + 1 :].strip(_BLANK)
    )
    is_plain = number == len(tensors) and "__metadata__" not in tensors and end <= LARGEST
    return Header(metadata, tensors, begins, end) if is_complete and is_plain else None


def _kind(head: bytes, rank: int) -> tuple[str, tuple[int, ...], int]:
    """Return the dtype, the shape and the size that many entries share; raise if it is unusual."""
    entry = json.loads(b"{%b}" % head)
    dtype, shape = _DTYPES[entry["dtype"]], tuple(entry["shape"])
    bits = prod(shape) * BITS[dtype]
    # Readers multiply before they see the zero, so a zero-size shape may overflow as well.
    if bits % 8 or len(shape) > rank or BITS[dtype] * prod(filter(None, shape)) > LARGEST:
        raise ValueError
    return dtype, shape, bits // 8


def _parse_any(data: bytes, where: str, depth: int, rank: int) -> Header:
    """Read a header in any spelling: the whole tree first, then each entry of it."""
    header = strict_json.parse(data, where, depth=depth, make=_entry)
    del data
    if type(header) is not dict:
        kind = "one tensor's entry" if type(header) is tuple else _brief(header)
        raise CorruptFile(where, f"the header is {kind}, an object of tensors is wanted")
    metadata = _metadata(header, where)
    for name, entry in header.items():
        _check(name, entry, rank, where)
    end, tensors, begins = 0, {}, {}
    for name, (dtype, shape, begin, stop) in sorted(header.items(), key=_place):
        if begin != end:
            raise CorruptFile(where, _misplaced(name, begin, end))
        tensors[name] = TensorInfo(name, dtype, shape)
        begins[name] = begin
        end = stop
    return Header(metadata, tensors, begins, end)


def _header_length(file: ModelFile, where: str) -> int:
    """Return the header's length once it is known to fit the file and the limit."""
    size, limit = file.size, file.limit("json_header")
    if size < 8:
        reason = f"too short: the file has {size} bytes, the length of its header alone takes 8"
        raise CorruptFile(where, reason, hint=INCOMPLETE)
    length = int.from_bytes(file.read(0, 8), "little")
    if 8 + length > size:
        reason = f"the header ends at byte {8 + length}, the file has {size}"
        raise CorruptFile(where, reason, hint=INCOMPLETE if length <= limit else "")
    if length > limit:
        reason = f"header too large: {length} bytes, the limit is {limit}"
        raise LimitExceeded(where, reason, hint="raise it with --limit json_header=N")
    return length


def _entry(found: dict[str, Any]) -> Any:
    """Make an entry of an object that is one beyond doubt; leave any other as it is."""
    try:
        dtype, shape, (begin, end) = found["dtype"], found["shape"], found["data_offsets"]
        dtype = _DTYPES[dtype]
    except (KeyError, TypeError, ValueError):
        return found
    if len(found) != 3 or type(shape) is not list or type(found["data_offsets"]) is not list:
        return found
    for number in (begin, end, *shape):
        if type(number) is not int or not 0 <= number <= LARGEST:
            return found
    return dtype, tuple(shape), begin, end


def _place(item: tuple[str, Entry]) -> tuple[int, int]:
    return item[1][2:]


def _metadata(header: dict[str, Any], where: str) -> dict[str, str]:
    """Remove the metadata from the header and return them."""
    metadata = header.pop("__metadata__", {})
    if type(metadata) is not dict:
        kind = "a tensor" if type(metadata) is tuple else _brief(metadata)
        raise CorruptFile(where, f"__metadata__ is {kind}, an object is wanted")
    for key, value in metadata.items():
        if type(value) is not str:
            said = f"__metadata__ '{for_terminal(key)}' is {_brief(value)}"
            raise CorruptFile(where, f"{said}, a string is wanted")
    return metadata


def _misplaced(name: str, begin: int, end: int) -> str:
    what = f"a hole of {begin - end} bytes" if begin > end else "an overlap"
    place = f"tensor '{for_terminal(name)}' begins at byte {begin} of the data"
    return f"{place}, the one before it ends at {end}: {what}"


def _check(name: str, entry: Any, rank: int, where: str) -> None:
    """Raise unless the entry is one, and its shape and dtype take just the bytes it claims."""
    if type(entry) is not tuple:
        raise CorruptFile(where, f"tensor '{for_terminal(name)}' {_fault(entry)}")
    dtype, shape, begin, end = entry
    bits = prod(shape) * BITS[dtype]
    if end - begin << 3 == bits and 0 < bits <= LARGEST and len(shape) <= rank:
        return
    about = f"tensor '{for_terminal(name)}'"
    if len(shape) > rank:
        raise LimitExceeded(where, f"{about} has rank {len(shape)}, the limit is {rank}")
    # Readers multiply before they see the zero, so a zero-size shape may overflow as well.
    if BITS[dtype] * prod(filter(None, shape)) > LARGEST:
        raise CorruptFile(where, f"{about}: its shape {_brief(shape)} overflows 63 bits")
    if begin > end:
        raise CorruptFile(where, f"{about}: its data_offsets [{begin}, {end}] run backwards")
    if bits % 8:
        raise CorruptFile(where, f"{about} takes {bits} bits, not a whole number of bytes")
    if end - begin != bits // 8:
        takes = f"{dtype} {_brief(shape)} takes {bits // 8} bytes"
        raise CorruptFile(where, f"{about}: {takes}, its data_offsets span {end - begin}")


def _fault(entry: Any) -> str:
    """Say what keeps this from being an entry."""
    if type(entry) is not dict:
        return f"is {_brief(entry)}, an object is wanted"
    if entry.keys() != _KEYS:
        unknown, missing = entry.keys() - _KEYS, _KEYS - entry.keys()
        return f"has an unknown key {_brief(min(unknown))}" if unknown else f"has no {min(missing)}"
    dtype, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if type(dtype) is not str or dtype not in BITS:
        return f"has dtype {_brief(dtype)}, which is none of safetensors'"
    if type(shape) is not list:
        return f"has shape {_brief(shape)}, a list is wanted"
    if type(offsets) is not list or len(offsets) != 2:
        return f"has data_offsets {_brief(offsets)}, a list of two is wanted"
    key, numbers = ("shape", shape) if not all(map(_is_size, shape)) else ("data_offsets", offsets)
    wrong = next(number for number in numbers if not _is_size(number))
    return f"has {_brief(wrong)} in its {key}: these are integers of at least 0"


def _is_size(value: Any) -> bool:
    return type(value) is int and 0 <= value <= LARGEST


def _brief(value: Any) -> str:
    """Show a value of the header: short, harmless, tuples as the lists they were."""
    value = list(value) if type(value) is tuple else value
    return for_terminal(f"{value!r}", 80)
