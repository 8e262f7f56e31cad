"""Tensors as a torch pickle describes them: a storage, and where in it the elements lie."""

from __future__ import annotations

from math import prod
from typing import Any, NamedTuple

from difflens.core.errors import CorruptFile, LimitExceeded
from difflens.core.escape import for_terminal, visible
from difflens.core.limits import LARGEST
from difflens.core.protocols import ModelFile

from ..containers.pickle_nodes import Blob, Global, Persistent


class Encoding(NamedTuple):
    """How elements are stored: `numpy` is the type that reads them, `dtype` the type shown.

    `wide` elements of `dtype` are given out for one stored; `stored` names what is not as it lies.
    """

    dtype: str
    size: int
    numpy: str
    wide: int = 1
    stored: str | None = None


# Numbers come out as they lie in the file; complex ones of other widths as the next exact thing.
ENCODINGS: dict[str, Encoding] = {
    "bool": Encoding("BOOL", 1, "u1"),
    "uint8": Encoding("U8", 1, "u1"),
    "int8": Encoding("I8", 1, "u1"),
    "uint16": Encoding("U16", 2, "u2"),
    "int16": Encoding("I16", 2, "u2"),
    "uint32": Encoding("U32", 4, "u4"),
    "int32": Encoding("I32", 4, "u4"),
    "uint64": Encoding("U64", 8, "u8"),
    "int64": Encoding("I64", 8, "u8"),
    "float16": Encoding("F16", 2, "u2"),
    "bfloat16": Encoding("BF16", 2, "u2"),
    "float32": Encoding("F32", 4, "u4"),
    "float64": Encoding("F64", 8, "u8"),
    "float8_e4m3fn": Encoding("F8_E4M3", 1, "u1"),
    "float8_e5m2": Encoding("F8_E5M2", 1, "u1"),
    "float8_e4m3fnuz": Encoding("F8_E4M3FNUZ", 1, "u1"),
    "float8_e5m2fnuz": Encoding("F8_E5M2FNUZ", 1, "u1"),
    "float8_e8m0fnu": Encoding("F8_E8M0", 1, "u1"),
    "float4_e2m1fn_x2": Encoding("F4", 1, "u1", 2),
    "complex64": Encoding("C64", 8, "f4"),
    "complex32": Encoding("C64", 4, "f2", 1, "complex32"),
    "complex128": Encoding("F64", 16, "f8", 2, "complex128"),
    "qint8": Encoding("F32", 1, "i1", 1, "qint8"),
    "quint8": Encoding("F32", 1, "u1", 1, "quint8"),
    "qint32": Encoding("F32", 4, "i4", 1, "qint32"),
}

QUANTISED = frozenset({"qint8", "quint8", "qint32"})
COMPLEX = frozenset({"complex64", "complex32", "complex128"})

# The class of a storage names the type of its elements; an untyped one counts bytes.
STORAGES: dict[str, str] = {
    "FloatStorage": "float32", "DoubleStorage": "float64", "HalfStorage": "float16",
    "BFloat16Storage": "bfloat16", "LongStorage": "int64", "IntStorage": "int32",
    "ShortStorage": "int16", "CharStorage": "int8", "ByteStorage": "uint8", "BoolStorage": "bool",
    "ComplexFloatStorage": "complex64", "ComplexDoubleStorage": "complex128",
    "QInt8Storage": "qint8", "QUInt8Storage": "quint8", "QInt32Storage": "qint32",
    "QUInt4x2Storage": "quint4x2", "QUInt2x4Storage": "quint2x4", "UntypedStorage": "uint8",
}  # fmt: skip

# Bytes of an element we cannot decode, so that the storage's size can still be checked.
SIZES: dict[str, int] = {"quint4x2": 1, "quint2x4": 1}

# Other names of the same types, as torch itself exports them.
_ALIASES = {
    "float": "float32",
    "double": "float64",
    "half": "float16",
    "long": "int64",
    "int": "int32",
    "short": "int16",
    "cfloat": "complex64",
    "cdouble": "complex128",
    "chalf": "complex32",
}


def dtype_name(name: str) -> str:
    """Return the one name of a torch dtype.

    >>> dtype_name("half")
    'float16'
    """
    return _ALIASES.get(name, name)


def size_of(dtype: str) -> int | None:
    """Return the bytes of one element, or None if the type is unknown."""
    encoding = ENCODINGS.get(dtype)
    return encoding.size if encoding else SIZES.get(dtype)


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
    """The storages that one pickle refers to, and the tensors that it makes of them."""

    def __init__(self, file: ModelFile, folder: str = "") -> None:
        """Use the file's name, size and limits alone; the folder distinguishes the keys."""
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
        """Return the storage behind a persistent id, and the type of its elements."""
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
        """Return a storage that stands for itself, as a vector."""
        storage, dtype = self.of(value)
        count = storage.size // (size_of(dtype) or 1)
        return self.tensor(storage, dtype, 0, (count,), (1,))

    def tensor(  # noqa: PLR0917  torch's own arguments
        self,
        storage: Storage,
        dtype: str,
        offset: Any,
        shape: Any,
        stride: Any,
        marks: Any = None,
        quantiser: Quantiser | None = None,
    ) -> Tensor | Unread:
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
        if prod(filter(None, shape)) * 16 > LARGEST:
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
    """Return the type of the elements a class of storages holds."""
    if type(kind) is Global and kind.module in _STORAGE_HOMES:
        return STORAGES.get(kind.name)
    return None


def torch_dtype(value: Any) -> str | None:
    """Return the name of a dtype that a pickle names."""
    if type(value) is Global and value.module == "torch":
        return dtype_name(value.name)
    return None


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value <= LARGEST


def _numbers(value: Any) -> tuple[int, ...] | None:
    if type(value) is list:
        value = tuple(value)
    return value if type(value) is tuple and all(map(_is_count, value)) else None


def _marks(marks: Any) -> tuple[bool, bool]:
    """Read the bits torch keeps beside a tensor: conjugate, negative."""
    get = getattr(marks, "get", None)
    return (bool(get("conj")), bool(get("neg"))) if get else (False, False)
