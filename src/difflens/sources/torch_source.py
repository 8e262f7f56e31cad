"""An open PyTorch file, of whichever format: names, and bytes on demand."""

from __future__ import annotations

import threading
import zlib
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from ..errors import CorruptFile, LimitExceeded, UnknownName
from ..escape import for_terminal, visible
from ..protocols import ModelFile
from ..records import TensorInfo
from .containers.pickle_nodes import Blob
from .torch_dtypes import ENCODINGS
from .torch_names import Named, refusal_warning
from .torch_read import (
    Memory,
    Place,
    block_elements,
    decode,
    element_bytes,
    given_shape,
    lies_as_wanted,
)  # fmt: skip
from .torch_tensors import Quantiser, Storage, Tensor

if TYPE_CHECKING:
    import numpy as np

_LARGEST_CHECKED = 1 << 16  # bytes of a storage whose checksum is looked at when it is read whole


class Straight(NamedTuple):
    """A tensor whose bytes lie in a file as they are wanted."""

    file: ModelFile
    offset: int
    size: int
    checksum: int | None


class Blocks(NamedTuple):
    """A tensor whose bytes are decoded block by block."""

    tensor: Tensor
    place: Place
    size: int


class TorchSource:
    """Tensors of a checkpoint; `refused` names the objects in it that were not made."""

    def __init__(  # noqa: PLR0917  the parts of a source
        self,
        format: str,  # noqa: A002  the word of the contract
        file: ModelFile,
        named: Named,
        places: Mapping[str, Place],
        refused: Iterable[str],
        pickle: ModelFile | None = None,
    ) -> None:
        """Plan how each tensor will be read; reads none. `pickle` holds long strings."""
        self.format = format
        self.metadata: Mapping[str, str] = named.metadata
        self.refused = sorted(set(refused))
        self.warnings = [*named.warnings, *refusal_warning(self.refused)]
        self.aliases: dict[str, str] = {}
        self.tensors: dict[str, TensorInfo] = {}
        self._file = file
        self._pickle = pickle or file
        self._places = places
        self._plans: dict[str, Straight | Blocks] = {}
        self._scales: dict[str, Quantiser] = {}
        self._memory = threading.local()
        self._take(named.tensors)

    def read_into(self, name: str, start: int, stop: int, buffer: memoryview) -> int:
        """Fill the buffer with bytes [start, stop) of the tensor and say how many."""
        try:
            plan = self._plans[name]
        except KeyError:
            raise UnknownName("tensor", name, self.tensors) from None
        if not 0 <= start <= stop <= plan.size or stop - start > len(buffer):
            wanted = f"[{start}, {stop}) of {plan.size} bytes into a buffer of {len(buffer)}"
            raise ValueError(f"tensor {name!r}: cannot read {wanted}")
        if type(plan) is Straight:
            got = plan.file.read_into(plan.offset + start, buffer[: stop - start])
            if plan.checksum is not None and stop - start == plan.size:
                self._check(name, plan.checksum, buffer[:got])
            return got
        return self._decoded(name, plan, start, stop, buffer)  # type: ignore[arg-type]

    def confirm(self) -> None:
        """Raise `ChangedWhileReading` if the file is not the one that was opened."""
        self._file.confirm()

    def close(self) -> None:
        """Give the descriptor back."""
        self._memory = threading.local()
        for place in self._places.values():
            place.file.close()
        self._file.close()

    def _take(self, tensors: Mapping[str, Tensor]) -> None:
        """Describe every tensor; names on one view of one storage are aliases."""
        seen: dict[tuple[Any, ...], str] = {}
        total = 0
        for name, tensor in tensors.items():
            encoding = ENCODINGS[tensor.dtype]
            info = TensorInfo(name, encoding.dtype, given_shape(tensor), encoding.stored)
            self.tensors[name] = info
            place = self._place(tensor.storage)
            size = info.size_bytes
            if lies_as_wanted(tensor, place):
                offset = tensor.storage.start + tensor.offset * encoding.size
                whole = size == place.size <= _LARGEST_CHECKED
                checksum = place.checksum if whole else None
                self._plans[name] = Straight(place.file, place.offset + offset, size, checksum)
            else:
                self._plans[name] = Blocks(tensor, place, size)
            if tensor.storage.content is None and size:
                first = seen.setdefault(_view(tensor), name)
                if first != name:
                    self.aliases[name] = first
                    continue
            total += size
        self._weigh(total)

    def _place(self, storage: Storage) -> Place:
        content = storage.content
        if content is None:
            return self._places[storage.key]
        if type(content) is Blob:
            return Place(self._pickle, content.start, content.length, storage.big)
        return Place(Memory(bytes(content), self._file), 0, storage.size, storage.big)

    def _weigh(self, total: int) -> None:
        """Refuse views that stand for far more bytes than there are: strides make them cheap."""
        most, ratio = self._file.limit("zip_bytes"), self._file.limit("zip_ratio")
        there = sum(place.size for place in self._places.values()) + self._file.size
        if total > most and total > ratio * there:
            reason = f"its tensors take {total} bytes out of {there}, the limit is {ratio} times"
            hint = "raise it with --limit zip_ratio=N if you trust the file"
            raise LimitExceeded(visible(str(self._file.path)), reason, hint=hint)

    def _check(self, name: str, checksum: int, content: memoryview) -> None:
        found = zlib.crc32(content)
        if found != checksum:
            said = f"tensor '{for_terminal(name)}' has checksum {found:08x}"
            where = visible(str(self._file.path))
            raise CorruptFile(where, f"{said}, the file says {checksum:08x}")

    def _decoded(self, name: str, plan: Blocks, start: int, stop: int, buffer: memoryview) -> int:
        each, width = block_elements(plan.tensor), element_bytes(plan.tensor)
        done = start
        while done < stop:
            number, skipped = divmod(done, each * width)
            block = self._block(name, plan, number, each)
            part = block.data[skipped : skipped + stop - done]
            buffer[done - start : done - start + len(part)] = part
            done += len(part)
        return stop - start

    def _block(self, name: str, plan: Blocks, number: int, each: int) -> np.ndarray[Any, Any]:
        """Decode a block, or give the one this thread decoded last."""
        kept = getattr(self._memory, "block", None)
        if kept and kept[0] == (name, number):
            return kept[1]  # type: ignore[no-any-return]
        count = plan.tensor.elements
        last = min((number + 1) * each, count)
        scales = self._quantiser(name, plan.tensor)
        block = decode(plan.tensor, plan.place, number * each, last, scales)
        self._memory.block = ((name, number), block)
        return block

    def _quantiser(self, name: str, tensor: Tensor) -> Quantiser | None:
        """Give the scales as arrays, read once."""
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
        tensor.storage.key, tensor.storage.start, tensor.dtype, tensor.offset, tensor.shape,
        tensor.stride, tensor.conjugated, tensor.negated, tensor.quantiser is None,
    )  # fmt: skip
