"""An open PyTorch file of any format: names for what was found in it, and bytes on demand.

Names are paths with dots, without the wrapper around the weights:

    {"state_dict": {"conv.weight": ...}, "optimizer": {"state": {0: {"exp_avg": ...}}}, "epoch": 3}

has the tensors `conv.weight` and `optimizer.state.0.exp_avg`, and the metadata `epoch` 3.
"""

from __future__ import annotations

import threading
import zlib
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from difflens.core.encodings import encoding_of, extents_of
from difflens.core.errors import CorruptFile, LimitExceeded
from difflens.core.escape import for_terminal, visible
from difflens.core.protocols import Encoding, Extent, ModelFile
from difflens.core.records import TensorInfo

from ..containers.encodings import EncodedSource, Straight
from ..containers.inner_files import BytesPart
from ..containers.pickle_nodes import Blob
from ..folders.listing import listed
from .read import Place, block_elements, decode, element_bytes, given_shape, lies_as_wanted
from .tensors import ENCODINGS, Quantiser, Storage, Tensor
from .walk import DEEPEST, Found, Path, value_text

if TYPE_CHECKING:
    import numpy as np

_MOST_CHARACTERS = 1 << 26  # of all names together
_MOST_VALUES = 10_000

# What training scripts call the weights within a checkpoint, and averaged copies of them.
_WRAPPERS = tuple(
    """
    state_dict model_state_dict model_state model module net network weights params
    generator model_weights net_state_dict student
""".split()
)
_AVERAGED = ("ema", "model_ema", "state_dict_ema", "ema_state_dict", "params_ema", "teacher")


class Named(NamedTuple):
    """Tensors and metadata by name, what to warn of, and which wrapper was taken off."""

    tensors: dict[str, Tensor]
    metadata: dict[str, str]
    warnings: list[str]


def name_all(found: Found, where: str) -> Named:
    """Return every tensor and value its name."""
    namer = _Namer(where, _wrapper(found.tensors))
    tensors: dict[str, Tensor] = {}
    twice = []
    for path, tensor in found.tensors:
        name = namer.name(path, "tensor")
        if name in tensors:
            twice.append(name)
            name = _another(name, tensors)
        tensors[name] = tensor
    warnings = [f"{namer.name(path, 'it')}: a {kind} was left out" for path, kind in found.unread]
    metadata = _metadata(found.values, namer, warnings)
    if twice:
        warnings.append(f"two tensors have one name, the second was numbered: {listed(twice)}")
    if found.too_deep:
        said = f"{found.too_deep} objects nested deeper than {DEEPEST} levels"
        warnings.append(f"{said} were left out")
    if namer.wrapper:
        metadata.setdefault("state dict", namer.wrapper)
    return Named(tensors, metadata, warnings)


def refusal_warning(refused: list[str]) -> list[str]:
    """Say once what was named and not made."""
    if not refused:
        return []
    count = len(refused)
    kinds = "a kind of object was" if count == 1 else f"{count} kinds of objects were"
    return [f"{kinds} named and not made: {listed(refused)}"]


class _Namer:
    """Writes paths, and counts the characters it has written."""

    def __init__(self, where: str, wrapper: str | None) -> None:
        self.wrapper = wrapper
        self._where = where
        self._left = _MOST_CHARACTERS

    def name(self, path: Path, nameless: str) -> str:
        """Join the keys of a path; what has none is called `nameless`."""
        parts = path.parts()
        if len(parts) > 1 and parts[0] == self.wrapper:
            del parts[0]
        self._left -= sum(map(len, parts))
        if self._left < 0:
            reason = f"its names take more than {_MOST_CHARACTERS} characters"
            raise LimitExceeded(self._where, reason)
        return ".".join(parts) if parts else nameless


def _wrapper(tensors: Iterable[tuple[Path, Tensor]]) -> str | None:
    """Return the one key that holds the model; None if tensors are at the top or it is unclear."""
    tops = set()
    for path, _ in tensors:
        if path.depth < 2:
            if path.key in (*_WRAPPERS, *_AVERAGED):
                return None  # a tensor of that name, no dictionary
            continue
        at = path
        while at.before and at.before.before:
            at = at.before
        tops.add(at.key)
    for names in (_WRAPPERS, _AVERAGED):
        here = [name for name in names if name in tops]
        if here:
            return here[0] if len(here) == 1 else None
    return None


def _another(name: str, taken: dict[str, Any]) -> str:
    number = 2
    while f"{name} ({number})" in taken:
        number += 1
    return f"{name} ({number})"


def _metadata(values: list[tuple[Path, Any]], namer: _Namer, warnings: list[str]) -> dict[str, str]:
    """Write the plain values; there may be a whole vocabulary among them."""
    metadata: dict[str, str] = {}
    for path, value in values[:_MOST_VALUES]:
        metadata.setdefault(namer.name(path, "value"), value_text(value))
    if len(values) > _MOST_VALUES:
        left = len(values) - _MOST_VALUES
        warnings.append(f"of {len(values)} plain values the last {left} were left out")
    return metadata


def about(name: str) -> str:
    """Write a tensor's name for a message."""
    return f"tensor '{for_terminal(name)}'"


_LARGEST_CHECKED = 1 << 16  # bytes of a storage whose checksum is looked at when it is read whole


class Checked(NamedTuple):
    """The encoding of a small tensor that lies in the file as it is, with its checksum."""

    plain: Straight
    size: int
    checksum: int
    about: str

    def read_into(self, start: int, buffer: memoryview) -> int:
        """Read once; check the checksum if the complete tensor is asked for."""
        count = self.plain.read_into(start, buffer)
        if len(buffer) == self.size:
            actual = zlib.crc32(buffer[:count])
            if actual != self.checksum:
                reason = f"{self.about} has checksum {actual:08x}, the file says"
                where = visible(str(self.plain.file.path))
                raise CorruptFile(where, f"{reason} {self.checksum:08x}")
        return count

    def extents(self, start: int, stop: int) -> Iterable[Extent]:
        """Return the range, of a remote file."""
        return extents_of(self.plain, start, stop)


class Decoded(NamedTuple):
    """The encoding of a tensor whose bytes are decoded block by block."""

    source: TorchSource
    name: str
    tensor: Tensor
    place: Place

    def __reduce__(self) -> tuple[Any, ...]:
        """Look it up in another process, where the archive is opened once."""
        return encoding_of, (self.source, self.name)

    def read_into(self, start: int, buffer: memoryview) -> int:
        """Decode the blocks that the range touches."""
        block_bytes = block_elements(self.tensor) * element_bytes(self.tensor)
        done = 0
        while done < len(buffer):
            number, skipped = divmod(start + done, block_bytes)
            block = self.source.block(self, number)
            part = block.data[skipped : skipped + len(buffer) - done]
            buffer[done : done + len(part)] = part
            done += len(part)
        return done


class TorchSource(EncodedSource):
    """Tensors of a checkpoint; `refused` names the objects in it that were not made."""

    def __init__(  # noqa: PLR0917  the parts of a source
        self,
        form: str,
        file: ModelFile,
        named: Named,
        places: Mapping[str, Place],
        refused: Iterable[str],
        pickle: ModelFile | None = None,
    ) -> None:
        """Plan how each tensor will be read; reads none. `pickle` holds long strings."""
        super().__init__(file, form)
        self.metadata = named.metadata
        self.refused = sorted(set(refused))
        self.warnings = [*named.warnings, *refusal_warning(self.refused)]
        self.opened += [place.file for place in places.values() if place.file is not file]
        self._pickle = pickle or file
        self._places = places
        self._scales: dict[str, Quantiser] = {}
        self._last_block = threading.local()
        self._describe(named.tensors)

    def block(self, decoded: Decoded, number: int) -> np.ndarray[Any, Any]:
        """Decode a block of a tensor, or return it if this thread decoded it last."""
        key = decoded.name, number
        last: Any = getattr(self._last_block, "value", None)
        if last is None or last[0] != key:
            tensor = decoded.tensor
            first = number * block_elements(tensor)
            stop = min(first + block_elements(tensor), tensor.elements)
            scales = self._quantiser(decoded.name, tensor)
            last = key, decode(tensor, decoded.place, first, stop, scales)
            self._last_block.value = last
        return last[1]

    def _describe(self, tensors: Mapping[str, Tensor]) -> None:
        """Describe every tensor; names on one view of one storage are aliases."""
        seen: dict[tuple[Any, ...], str] = {}
        total = 0
        for name, tensor in tensors.items():
            encoding = ENCODINGS[tensor.dtype]
            info = TensorInfo(name, encoding.dtype, given_shape(tensor), encoding.stored)
            place = self._place(tensor.storage)
            self.add(info, self._encoding(info, tensor, place))
            size = info.size_bytes
            if tensor.storage.content is None and size:
                first = seen.setdefault(_view(tensor), name)
                if first != name:
                    self.aliases[name] = first
                    continue
            total += size
        self._weigh(total)

    def _encoding(self, info: TensorInfo, tensor: Tensor, place: Place) -> Encoding:
        if not lies_as_wanted(tensor, place):
            return Decoded(self, info.name, tensor, place)
        begin = tensor.storage.start + tensor.offset * ENCODINGS[tensor.dtype].size
        plain = Straight(place.file, place.offset + begin)
        if place.checksum is None or not info.size_bytes == place.size <= _LARGEST_CHECKED:
            return plain
        about = f"tensor '{for_terminal(info.name)}'"
        return Checked(plain, place.size, place.checksum, about)

    def _place(self, storage: Storage) -> Place:
        content = storage.content
        if content is None:
            return self._places[storage.key]
        if type(content) is Blob:
            return Place(self._pickle, content.start, content.length, storage.big)
        return Place(BytesPart(self.file, bytes(content)), 0, storage.size, storage.big)

    def _weigh(self, total: int) -> None:
        """Refuse views that stand for far more bytes than there are: strides make them cheap."""
        most, ratio = self.file.limit("zip_bytes"), self.file.limit("zip_ratio")
        there = sum(place.size for place in self._places.values()) + self.file.size
        if total > most and total > ratio * there:
            reason = f"its tensors take {total} bytes out of {there}, the limit is {ratio} times"
            hint = "raise it with --limit zip_ratio=N if you trust the file"
            raise LimitExceeded(visible(str(self.file.path)), reason, hint=hint)

    def _quantiser(self, name: str, tensor: Tensor) -> Quantiser | None:
        """Return the scales as arrays, read once."""
        quantiser = tensor.quantiser
        if quantiser is None or quantiser.axis is None:
            return quantiser
        if name not in self._scales:
            import numpy as np

            with np.errstate(over="ignore"):
                scale = self._numbers(quantiser.scale).astype(np.float32)
            zero = self._numbers(quantiser.zero)
            self._scales[name] = Quantiser(scale, zero, quantiser.axis)
        return self._scales[name]

    def _numbers(self, value: Any) -> np.ndarray[Any, Any]:
        """Read a small tensor whole, or a list."""
        import numpy as np

        if type(value) is not Tensor:
            return np.asarray(value)
        kind = {"float32": "<f4", "float64": "<f8", "int64": "<i8", "int32": "<i4"}[value.dtype]
        place = self._place(value.storage)
        return decode(value, place, 0, value.shape[0], None).view(kind)


def _view(tensor: Tensor) -> tuple[Any, ...]:
    """Say which bytes a tensor is, and as what."""
    return (
        tensor.storage.key,
        tensor.storage.start,
        tensor.dtype,
        tensor.offset,
        tensor.shape,
        tensor.stride,
        tensor.conjugated,
        tensor.negated,
        tensor.quantiser is None,
    )
