"""Tensors as a torch pickle describes them: a storage, and where in it the elements lie."""

from __future__ import annotations

from math import prod
from typing import Any, NamedTuple

from ..errors import CorruptFile, LimitExceeded
from ..escape import for_terminal, visible
from ..protocols import ModelFile
from .containers.pickle_nodes import Blob, Global, Persistent
from .torch_dtypes import COMPLEX, ENCODINGS, QUANTISED, STORAGES, dtype_name, size_of

_LARGEST = 2**63 - 1
_MOST_COPIED = 1 << 28  # bytes
_STORAGE_HOMES = frozenset({"torch", "torch.storage", "torch.cuda", "torch.sparse"})


class Storage(NamedTuple):
    """Bytes that tensors share: kept by the file under a key, or within its pickle."""

    key: str
    size: int
    start: int = 0  # where in what is kept it begins: old files hold views of storages
    content: bytes | Blob | None = None
    big: bool = False  # within a pickle each array has its own order of bytes


class Quantiser(NamedTuple):
    """What turns stored whole numbers into values: (q - zero) * scale, for all or a channel."""

    scale: Any
    zero: Any
    axis: int | None = None


class Tensor(NamedTuple):
    """A view of a storage; `offset` and `stride` count elements."""

    storage: Storage
    dtype: str
    offset: int
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    conjugated: bool = False
    negated: bool = False
    quantiser: Quantiser | None = None

    @property
    def elements(self) -> int:
        """Count the stored elements."""
        return prod(self.shape)

    @property
    def contiguous(self) -> bool:
        """Do the elements lie one after another, in C order?"""
        wanted = 1
        for length, step in zip(reversed(self.shape), reversed(self.stride), strict=True):
            if length != 1 and step != wanted:
                return not prod(self.shape)
            wanted *= length
        return True


class Unread(NamedTuple):
    """A tensor of a kind that is not decoded, and what kind that is."""

    kind: str


class Storages:
    """The storages one pickle speaks of, and the tensors it makes of them."""

    def __init__(self, file: ModelFile, folder: str = "") -> None:
        """Look at the file's name, size and limits alone; keys are told apart by their folder."""
        self.sizes: dict[str, int] = {}
        self.absent: set[str] = set()  # on the meta device: no bytes were written
        self.counts: dict[str, int] = {}
        self._where = visible(str(file.path))
        self._folder = folder
        self._rank = file.limit("rank")
        self._copies = min(file.size, _MOST_COPIED) + file.limit("pickle_opcodes")
        self._visits = file.limit("pickle_opcodes")
        self._entered = file.limit("pickle_nodes")

    def broken(self, reason: str) -> CorruptFile:
        """Make the error that says so."""
        return CorruptFile(self._where, reason)

    def charge(self, length: int) -> None:
        """Count what is copied: a pickle may ask for the same text a million times."""
        self._copies -= length
        if self._copies < 0:
            raise self._repeats()

    def visit(self, count: int, entered: int = 0) -> None:
        """Count what is looked at: a few shared levels may stand for more than a machine holds."""
        self._visits -= count
        self._entered -= entered
        if self._visits < 0 or self._entered < 0:
            raise self._repeats()

    def _repeats(self) -> LimitExceeded:
        reason = "the pickle repeats itself more often than its limits allow"
        hint = "raise them with --limit pickle_opcodes=N --limit pickle_nodes=N"
        return LimitExceeded(self._where, reason, hint=hint)

    def of(self, value: Any) -> tuple[Storage, str]:
        """Give the storage behind a persistent id, and the type of its elements."""
        found = value.id if type(value) is Persistent else None
        if type(found) is not tuple or len(found) not in (5, 6) or found[0] not in _STORAGE:
            raise self.broken("a tensor's storage is none that the file keeps")
        _, kind, key, location, count = found[:5]
        if type(key) is bytes:
            key = key.decode("latin-1")
        dtype = storage_type(kind)
        width = size_of(dtype) if dtype else None
        if dtype is None or width is None or type(key) is not str or not _is_count(count):
            shown = for_terminal(f"{kind if type(kind) is Global else '?'} '{key}'", 80)
            raise self.broken(f"storage {shown} has a type or size that torch does not write")
        size = count * width
        key = self._folder + key
        if self.sizes.setdefault(key, size) != size:
            said = f"storage '{for_terminal(key)}' has {self.sizes[key]} bytes in one place"
            raise self.broken(f"{said}, {size} in another")
        self.counts.setdefault(key, count)
        if location == "meta":
            self.absent.add(key)
        return self._view(Storage(key, size), found[5:], width), dtype

    def _view(self, whole: Storage, view: tuple[Any, ...], width: int) -> Storage:
        """Cut a part of a storage out, as files before 2017 wrote them."""
        if not view or view[0] is None:
            return whole
        if type(view[0]) is not tuple or len(view[0]) != 3 or not all(map(_is_count, view[0][1:])):
            raise self.broken("a view of a storage is none that torch writes")
        start, size = view[0][1] * width, view[0][2] * width
        if start + size > whole.size:
            raise self.broken(f"a view ends at byte {start + size} of {whole.size} of its storage")
        return Storage(whole.key, size, start)

    def keeps(self, id: Any) -> bool:  # noqa: A002  pickle's own word
        """Is this the id of a storage?"""
        return type(id) is tuple and len(id) in (5, 6)

    def flat(self, value: Persistent) -> Tensor | Unread:
        """Give a storage that stands for itself, as a vector."""
        storage, dtype = self.of(value)
        count = storage.size // (size_of(dtype) or 1)
        return self.tensor(storage, dtype, 0, (count,), (1,))

    def tensor(  # noqa: PLR0917  torch's own arguments
        self, storage: Storage, dtype: str, offset: Any, shape: Any, stride: Any,
        marks: Any = None, quantiser: Quantiser | None = None,
    ) -> Tensor | Unread:  # fmt: skip
        """Make a tensor once every element is known to lie in the storage."""
        width = size_of(dtype)
        shape, stride = _numbers(shape), _numbers(stride)
        if shape is None or stride is None or len(shape) != len(stride) or not _is_count(offset):
            raise self.broken("a tensor's shape, stride or offset holds what is no count")
        if len(shape) > self._rank:
            reason = f"a tensor has rank {len(shape)}, the limit is {self._rank}"
            raise LimitExceeded(self._where, reason, hint="raise it with --limit rank=N")
        if width is None or dtype not in ENCODINGS:
            return Unread(f"{for_terminal(dtype, 40)} tensor")
        if prod(filter(None, shape)) * 16 > _LARGEST:
            raise self.broken(f"a tensor's shape {for_terminal(str(shape), 80)} overflows 63 bits")
        if prod(shape):
            last = offset + sum((n - 1) * step for n, step in zip(shape, stride, strict=True))
            if (last + 1) * width > storage.size:
                said = f"a tensor of shape {for_terminal(str(shape), 80)} ends at byte"
                end = (last + 1) * width
                raise self.broken(f"{said} {end} of its storage, which has {storage.size}")
        if (dtype in QUANTISED) != (quantiser is not None):
            return Unread(f"{dtype} tensor without its scale")
        if dtype == "float4_e2m1fn_x2" and not (shape and stride[-1] == 1):
            return Unread("strided float4_e2m1fn_x2 tensor")
        conjugated, negated = _marks(marks)
        if (negated and dtype not in _SIGNED) or (conjugated and dtype not in COMPLEX):
            return Unread(f"{dtype} tensor marked as negative or conjugate")
        return Tensor(storage, dtype, offset, shape, stride, conjugated, negated, quantiser)


_STORAGE = ("storage", b"storage")
_SIGNED = COMPLEX | {"float16", "bfloat16", "float32", "float64"}


def storage_type(kind: Any) -> str | None:
    """Give the type of the elements a class of storages holds."""
    if type(kind) is Global and kind.module in _STORAGE_HOMES:
        return STORAGES.get(kind.name)
    return None


def torch_dtype(value: Any) -> str | None:
    """Give the name of a dtype that a pickle names."""
    if type(value) is Global and value.module == "torch":
        return dtype_name(value.name)
    return None


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value <= _LARGEST


def _numbers(value: Any) -> tuple[int, ...] | None:
    if type(value) is list:
        value = tuple(value)
    return value if type(value) is tuple and all(map(_is_count, value)) else None


def _marks(marks: Any) -> tuple[bool, bool]:
    """Read the bits torch keeps beside a tensor: conjugate, negative."""
    get = getattr(marks, "get", None)
    return (bool(get("conj")), bool(get("neg"))) if get else (False, False)
