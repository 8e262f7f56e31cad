"""PyTorch's format before 1.6: pickles one after another, then the raw storages.

    pickle: the magic number   pickle: 1001   pickle: about the machine
    pickle: the object; storages stand in it as ('storage', class, key, location, count, view)
    pickle: the keys, in the order of what follows
    for each key: count, 8 bytes, then so many elements

Storages are little-endian whatever machine wrote them: torch swaps on writing.
"""

from __future__ import annotations

from typing import Any

from difflens.core.addresses import Location
from difflens.core.errors import INCOMPLETE, CorruptFile
from difflens.core.escape import for_terminal, visible
from difflens.core.protocols import ModelFile

from ..containers.pickle_machine import Make
from ..containers.pickle_nodes import Global
from ..containers.pickles import unpickle
from ..torch.make import Maker, dotted, is_known
from ..torch.read import Place
from ..torch.source import TorchSource, name_all
from ..torch.tensors import Storages
from ..torch.walk import walk
from . import source

_MAGIC = 0x1950A86A20F9469CFC6C
_BYTES = _MAGIC.to_bytes(10, "little")
_PROTOCOL = 1001


def recognise(head: bytes, _path: Location) -> bool:
    """Does the file begin with a pickle of the magic number?"""
    if head[:1] == b"\x80":
        return _BYTES in head[:24]
    return head.startswith(b"L%dL\n." % _MAGIC)


@source(recognise=recognise, suffixes=(".pt", ".pth", ".bin", ".ckpt"))
def pytorch_legacy(file: ModelFile) -> TorchSource:
    """PyTorch checkpoints of torch before 1.6: a stream of pickles and raw storages."""
    return _Stream(file).open()


def root(file: ModelFile) -> Any:
    """Return what the file's object is made of; its storages are not looked for."""
    return _Stream(file).read()[0]


class _Stream:
    """A place in the stream."""

    def __init__(self, file: ModelFile) -> None:
        self._file = file
        self._where = visible(str(file.path))
        self._place = 0

    def open(self) -> TorchSource:
        """Read the pickles, and find the storages behind them."""
        value, names, storages = self.read()
        found = walk(value, storages)
        keys, _ = self._next(None)
        places = self._places(keys, storages)
        found.leave_out(set(storages.absent))
        refused = [dotted(name) for name in names if not is_known(name)]
        named = name_all(found, self._where)
        return TorchSource("pytorch-legacy", self._file, named, places, refused)

    def read(self) -> tuple[Any, set[Global], Storages]:
        """Read up to the object: what it is made of, the names in it, the storages it needs."""
        self._expect("magic number", _MAGIC)
        self._expect("protocol", _PROTOCOL)
        self._next(None)
        storages = Storages(self._file)
        value, names = self._next(Maker(storages))
        return value, names, storages

    def _next(self, make: Make | None) -> Any:
        value, self._place, names = unpickle(self._file, self._place, make)
        return value, names

    def _expect(self, what: str, wanted: int) -> None:
        value, _ = self._next(None)
        if type(value) is not int or value != wanted:
            shown = f"{value:#x}" if type(value) is int else "no number"
            reason = f"its {what} is {for_terminal(shown, 40)}, {wanted:#x} is wanted"
            raise CorruptFile(self._where, reason)

    def _places(self, keys: Any, storages: Storages) -> dict[str, Place]:
        """Find each storage; the keys must be those that the object refers to."""
        listed = keys if type(keys) is list and all(type(key) is str for key in keys) else []
        if sorted(listed) != sorted(storages.sizes):
            reason = "the storages in the file are not those that its object speaks of"
            raise CorruptFile(self._where, reason)
        places = {}
        for key in listed:
            places[key] = self._storage(key, storages)
        if self._place != self._file.size:
            left = self._file.size - self._place
            raise CorruptFile(self._where, f"{left} trailing bytes follow the last storage")
        return places

    def _storage(self, key: str, storages: Storages) -> Place:
        begin = self._place + 8
        size, count = storages.sizes[key], storages.counts[key]
        about = f"storage '{for_terminal(key)}'"
        if begin + size > self._file.size:
            reason = f"{about} ends at byte {begin + size}, the file has {self._file.size}"
            raise CorruptFile(self._where, reason, hint=INCOMPLETE)
        said = int.from_bytes(self._file.read(self._place, begin), "little", signed=True)
        if said != count:
            raise CorruptFile(self._where, f"{about} has {said} elements, the pickle says {count}")
        self._place = begin + size
        return Place(self._file, begin, size)
