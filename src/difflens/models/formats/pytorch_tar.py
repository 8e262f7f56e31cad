"""PyTorch's format of 2016: a tar archive that keeps tensors and storages apart from the pickle.

storages   pickle: how many; for each a pickle (key, location, class), its count, its elements;
           pickle: views of storages (key, key of the whole, offset, count)
tensors    pickle: how many; for each a pickle (key, key of its storage, class),
           rank, 4 bytes of nothing, shape, strides, offset
pickle     the object; tensors and storages stand in it by their keys
sys_info   about the machine
"""

from __future__ import annotations

from struct import unpack
from typing import Any

from difflens.core.addresses import Location
from difflens.core.errors import INCOMPLETE, CorruptFile
from difflens.core.escape import for_terminal, visible
from difflens.core.protocols import ModelFile

from ..containers.inner_files import Part
from ..containers.pickle_nodes import Persistent
from ..containers.pickles import unpickle
from ..torch.make import Maker, dotted, is_known
from ..torch.read import Place
from ..torch.source import TorchSource, name_all
from ..torch.tensors import Storage, Storages, Tensor, Unread, size_of, storage_type
from ..torch.walk import walk
from . import source

_NAMES = ("storages", "tensors", "pickle", "sys_info")
_FIRST = tuple(name.encode() for name in _NAMES)


def recognise(head: bytes, _path: Location) -> bool:
    """Is this a tar archive whose first member is one of torch's?"""
    while head.startswith(b"ustar", 257) and head[156:157] in EXTENDED:
        digits = head[124:136].strip(b"\0 ")
        if not digits.isdigit() or digits.strip(b"01234567"):
            return False
        head = head[512 - int(digits, 8) // -512 * 512 :]
    return head.startswith(b"ustar", 257) and head[:100].rstrip(b"\0") in _FIRST


@source(recognise=recognise, suffixes=(".pt", ".pth", ".tar"))
def pytorch_tar(file: ModelFile) -> TorchSource:
    """PyTorch checkpoints of 2016: a tar archive of storages, tensors and a pickle."""
    return _Tar(file).open()


class _Tar:
    """The archive, its members found."""

    def __init__(self, file: ModelFile) -> None:
        self._file = file
        self._where = visible(str(file.path))
        self._members = tar_members(file, _NAMES)
        for name in _NAMES[:3]:
            if name not in self._members:
                raise CorruptFile(self._where, f"there is no '{name}' in the tar")
        self._places: dict[str, Place] = {}
        self._kept = _Kept(file)
        self._storages = self._kept.storages

    def open(self) -> TorchSource:
        """Read storages, then tensors, then the object that names them."""
        self._read_storages(self._members["storages"])
        self._read_tensors(self._members["tensors"])
        pickle = self._members["pickle"]
        value, end, names = unpickle(pickle, 0, Maker(self._kept))
        if end != pickle.size:
            raise CorruptFile(self._where, f"bytes follow the end of the pickle at byte {end}")
        refused = [dotted(name) for name in names if not is_known(name)]
        named = name_all(walk(value, self._kept), self._where)
        return TorchSource("pytorch-tar", self._file, named, self._places, refused, pickle)

    def _read_storages(self, file: Part) -> None:
        count, place = self._pickle(file, 0)
        for _ in range(self._count(count)):
            entry, place = self._pickle(file, place)
            key, _, kind = _three(entry)
            dtype = storage_type(kind)
            width = size_of(dtype) if dtype else None
            if dtype is None or width is None or not _is_key(key) or key in self._storages:
                raise CorruptFile(self._where, "a storage's entry is none that torch wrote")
            (said,) = unpack("<q", self._bytes(file, place, 8))
            place += 8
            if said < 0 or place + said * width > file.size:
                reason = f"storage {key} has {said} elements, the tar has {file.size - place} bytes"
                raise CorruptFile(self._where, reason)
            offset = file.start + place
            self._places[str(key)] = Place(self._file, offset, said * width)
            self._storages[key] = (Storage(str(key), said * width), dtype)
            place += said * width
        views, place = self._pickle(file, place)
        self._end(file, place, "storages")
        for view in views if type(views) is list else ():
            self._read_view(view)

    def _read_view(self, view: Any) -> None:
        right = type(view) is tuple and len(view) == 4 and all(map(_is_key, view))
        if not right or view[1] not in self._storages:
            raise CorruptFile(self._where, "a view of a storage is none that torch wrote")
        whole, dtype = self._storages[view[1]]
        width = size_of(dtype) or 1
        start, size = whole.start + view[2] * width, view[3] * width
        if start + size > whole.size:
            reason = f"a view ends at byte {start + size} of {whole.size} of its storage"
            raise CorruptFile(self._where, reason)
        self._storages[view[0]] = (Storage(whole.key, size, start), dtype)

    def _read_tensors(self, file: Part) -> None:
        count, place = self._pickle(file, 0)
        for _ in range(self._count(count)):
            entry, place = self._pickle(file, place)
            key, home, _ = _three(entry)
            kept = self._storages.get(home) if type(home) is int else None
            if not _is_key(key) or key in self._kept.tensors or kept is None:
                raise CorruptFile(self._where, "a tensor's entry is none that torch wrote")
            (rank,) = unpack("<i", self._bytes(file, place, 8)[:4])
            if not 0 <= rank <= self._file.limit("rank"):
                raise CorruptFile(self._where, f"tensor {key} has rank {rank}")
            numbers = unpack(f"<{2 * rank + 1}q", self._bytes(file, place + 8, 16 * rank + 8))
            place += 16 * rank + 16
            storage, dtype = kept
            self._kept.tensors[key] = self._kept.tensor(
                storage, dtype, numbers[-1], numbers[:rank], numbers[rank : 2 * rank]
            )
        self._end(file, place, "tensors")

    def _pickle(self, file: Part, place: int) -> tuple[Any, int]:
        value, end, _ = unpickle(file, place)
        return value, end

    def _bytes(self, file: Part, place: int, length: int) -> bytes:
        if place + length > file.size:
            raise CorruptFile(self._where, f"a member of the tar ends within {length} bytes wanted")
        return file.read(place, place + length)

    def _count(self, value: Any) -> int:
        if type(value) is not int or not 0 <= value <= self._file.size:
            raise CorruptFile(self._where, "a count in the tar is no count")
        return value

    def _end(self, file: Part, place: int, name: str) -> None:
        if place != file.size:
            raise CorruptFile(self._where, f"bytes follow the end of '{name}' at byte {place}")


class _Kept(Storages):
    """Tensors and storages by their keys."""

    def __init__(self, file: ModelFile) -> None:
        super().__init__(file)
        self.storages: dict[int, tuple[Storage, str]] = {}
        self.tensors: dict[int, Tensor | Unread] = {}

    def keeps(self, id: Any) -> bool:  # noqa: A002  pickle's own word
        """Is this the key of something in the archive?"""
        return type(id) is not tuple

    def flat(self, value: Persistent) -> Tensor | Unread:
        """Return the tensor, or the storage as a vector, that a key stands for."""
        key = value.id
        number = int(key) if type(key) is str and key.isdecimal() and len(key) < 30 else key
        if type(number) is int and number in self.tensors:
            return self.tensors[number]
        if type(number) is int and number in self.storages:
            storage, dtype = self.storages[number]
            count = storage.size // (size_of(dtype) or 1)
            return self.tensor(storage, dtype, 0, (count,), (1,))
        raise self.broken("the pickle speaks of a tensor that is not in the tar")


def _is_key(value: Any) -> bool:
    return type(value) is int and 0 <= value < 1 << 64


def _three(entry: Any) -> tuple[Any, ...]:
    return entry if type(entry) is tuple and len(entry) == 3 else (None, None, None)


# 512 bytes of header (name, size in octal, checksum, kind), the file, zeros up to 512 again
# at the end two blocks of zeros or more

EXTENDED = (b"x", b"g")  # headers that hold long names and times

_BLOCK = 512
_PLAIN = (b"0", b"\0")
_KINDS = {
    b"1": "a hard link",
    b"2": "a link",
    b"3": "a device",
    b"4": "a device",
    b"5": "a folder",
    b"6": "a pipe",
}
_HARMLESS = frozenset({"mtime", "atime", "ctime", "uid", "gid", "uname", "gname", "comment"})
_LARGEST_EXTENDED = 1 << 16


def tar_members(file: ModelFile, names: tuple[str, ...]) -> dict[str, Part]:
    """Return the members by name; each must be a plain file of one of these names."""
    where = visible(str(file.path))
    found: dict[str, Part] = {}
    place = 0
    if file.size % _BLOCK:
        reason = f"a tar is made of blocks of {_BLOCK} bytes, the file has {file.size}"
        raise CorruptFile(where, reason, hint=INCOMPLETE)
    while True:
        if place + _BLOCK > file.size:
            raise CorruptFile(where, "the tar does not end", hint=INCOMPLETE)
        header = file.read(place, place + _BLOCK)
        if not any(header):
            break
        name, kind, size = _header(header, where)
        begin, place = place + _BLOCK, place + _BLOCK + -(-size // _BLOCK) * _BLOCK
        if place > file.size:
            reason = f"member '{for_terminal(name)}' ends at byte {place}, the file has {file.size}"
            raise CorruptFile(where, reason, hint=INCOMPLETE)
        if kind in EXTENDED:
            _check_extended(file, begin, size, where)
            continue
        _check_member(name, kind, names, where)
        if name in found:
            raise CorruptFile(where, f"the tar holds '{name}' twice")
        found[name] = Part(file, begin, size)
    _check_end(file, place, where)
    return found


def _header(header: bytes, where: str) -> tuple[str, bytes, int]:
    """Read a header whose checksum is right."""
    said = _octal(header[148:156], where)
    if said != sum(header[:148]) + 8 * 0x20 + sum(header[156:]):
        raise CorruptFile(where, "a header of the tar has another checksum than it says")
    prefix = header[345:500].rstrip(b"\0") if header[257:263] == b"ustar\0" else b""
    name = (prefix + b"/" if prefix else b"") + header[:100].rstrip(b"\0")
    return name.decode("latin-1"), header[156:157], _octal(header[124:136], where)


def _octal(field: bytes, where: str) -> int:
    if field[:1] == b"\x80":  # more than eight gigabytes
        return int.from_bytes(field[1:], "big")
    digits = field.strip(b"\0 ")
    if not digits or digits.strip(b"01234567"):
        raise CorruptFile(where, "a header of the tar holds a number that is none")
    return int(digits, 8)


def _check_member(name: str, kind: bytes, names: tuple[str, ...], where: str) -> None:
    if kind not in _PLAIN:
        what = _KINDS.get(kind, "no plain file")
        raise CorruptFile(where, f"member '{for_terminal(name)}' of the tar is {what}")
    if name not in names:
        reason = f"member '{for_terminal(name)}' of the tar is none of torch's: {', '.join(names)}"
        raise CorruptFile(where, reason)


def _check_extended(file: ModelFile, begin: int, size: int, where: str) -> None:
    """Look through an extended header: times are harmless, names and sizes are not."""
    if size > _LARGEST_EXTENDED:
        raise CorruptFile(where, f"an extended header of the tar has {size} bytes")
    rest = file.read(begin, begin + size)
    while rest:
        length, space, _ = rest.partition(b" ")
        end = int(length) if space and length.isdigit() and len(length) < 6 else 0
        key = rest[len(length) + 1 : end].partition(b"=")[0].decode("latin-1")
        if not len(length) + 2 < end <= len(rest) or key not in _HARMLESS:
            reason = f"an extended header of the tar sets '{for_terminal(key, 40)}'"
            raise CorruptFile(where, reason)
        rest = rest[end:]


def _check_end(file: ModelFile, place: int, where: str) -> None:
    """Hold that nothing but zeros follows the last member."""
    if place + 2 * _BLOCK > file.size:
        raise CorruptFile(where, "the tar does not end in two blocks of zeros", hint=INCOMPLETE)
    while place < file.size:
        stop = min(place + (1 << 16), file.size)
        if any(file.read(place, stop)):
            raise CorruptFile(where, f"trailing bytes follow the end of the tar at byte {place}")
        place = stop
