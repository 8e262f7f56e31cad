"""What a checkpoint holds, found without recursion: tensors and plain values with their paths."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from math import prod
from struct import unpack
from typing import Any, NamedTuple

from difflens.core.escape import for_terminal

from ..containers.pickle_nodes import Blob, Call, Dict, Global, Persistent, Set
from .make import dotted, is_parameter
from .tensors import ENCODINGS, Storage, Storages, Tensor, Unread

DEEPEST = 256  # levels; checkpoints have a dozen
_FEW = 32  # values of a list that are shown
_LONGEST = 100  # characters of each

_PLAIN = (type(None), bool, int, float, complex, str, bytes, Global, Blob)
_LEAVE = object()


class Path(NamedTuple):
    """The way to a value: a key, and the way before it."""

    before: Path | None
    key: str
    depth: int

    def parts(self) -> list[str]:
        """List the keys, outermost first."""
        keys, at = [], self
        while at.before:
            keys.append(at.key)
            at = at.before
        return keys[::-1]


class Found:
    """Everything worth naming, in the order of the file."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self.tensors: list[tuple[Path, Tensor]] = []
        self.values: list[tuple[Path, Any]] = []
        self.unread: list[tuple[Path, str]] = []
        self.too_deep = 0

    def leave_out(self, absent: set[str]) -> None:
        """Leave out the tensors whose storages were on the meta device: they have no bytes."""
        if absent:
            there = [(path, each) for path, each in self.tensors if each.storage.key not in absent]
            gone = [path for path, each in self.tensors if each.storage.key in absent]
            self.tensors, self.unread = (
                there,
                self.unread + [(path, "meta tensor") for path in gone],
            )


def walk(root: Any, storages: Storages) -> Found:
    """Visit all there is; what holds itself is entered once on each way, what is deep not at all.

    Shared parts are visited on every way to them, since each has its own name, and every visit is
    charged: a few shared levels could stand for more than any machine can hold.
    """
    found = Found()
    entered: set[int] = set()
    stack: list[tuple[Any, Path, bool]] = [(root, Path(None, "", 0), False)]
    while stack:
        value, path, quiet = stack.pop()
        if value is _LEAVE:
            entered.discard(path.depth)
            continue
        value = _resolved(value, storages)
        kind = type(value)
        if kind is Tensor:
            found.tensors.append((path, value))
        elif kind is Unread:
            found.unread.append((path, value.kind))
        elif kind in _PLAIN or (kind in (list, tuple, Set) and _is_plain(value, storages)):
            if not quiet:
                found.values.append((path, value))
        elif id(value) not in entered:
            if path.depth >= DEEPEST:
                found.too_deep += 1
                continue
            children = _children(value)
            storages.visit(len(children), entered=1)
            entered.add(id(value))
            stack.append((_LEAVE, Path(None, "", id(value)), quiet))
            quiet = quiet or _is_module(value)
            deeper = path.depth + 1
            stack.extend((each, Path(path, key, deeper), quiet) for key, each in reversed(children))
    return found


def _resolved(value: Any, storages: Storages) -> Any:
    """Return what a node stands for, where it stands for a tensor or a number."""
    if type(value) is Persistent:
        return storages.flat(value) if storages.keeps(value.id) else value
    if type(value) is not Call:
        return value
    if is_parameter(value.function) and type(value.state) is tuple and value.state:
        return _resolved(value.state[0], storages) if type(value.state[0]) is not Call else value
    made = from_numpy(value, storages)
    return value if made is None else made


def _is_plain(value: Any, storages: Storages) -> bool:
    """Are these plain values and nothing else?"""
    elements = value.elements if type(value) is Set else value
    storages.visit(len(elements))
    return all(type(each) in _PLAIN for each in elements)


def _is_module(value: Any) -> bool:
    """Is this a module of a network, whose plain attributes are no news?"""
    if type(value) is not Call or type(value.state) is not Dict:
        return False
    if dotted(value.function).startswith("__torch__."):
        return True
    keys = {key for key in value.state.flat[::2] if type(key) is str}
    return "_modules" in keys and "_parameters" in keys


def _children(value: Any) -> list[tuple[str, Any]]:
    """List what a container holds, each with its key as text."""
    if type(value) is Dict:
        return list(_keyed(value.flat))
    if type(value) in (list, tuple):
        return [(str(at), each) for at, each in enumerate(value)]
    if type(value) is Set:
        return [(str(at), each) for at, each in enumerate(value.elements)]
    if type(value) is Persistent:
        return []
    return list(_parts(value))


def _keyed(flat: list[Any]) -> Iterator[tuple[str, Any]]:
    for at in range(0, len(flat), 2):
        key = flat[at]
        yield key if type(key) is str else key_text(key, at // 2), flat[at + 1]


def _parts(call: Call) -> Iterator[tuple[str, Any]]:
    """Yield the parts of an object: a module's as its state_dict names them."""
    state = call.state
    if _is_module(call):
        later = []
        for key, each in _keyed(state.flat):
            if key in ("_parameters", "_buffers", "_modules") and type(each) is Dict:
                yield from _keyed(each.flat)
            else:
                later.append((key, each))
        yield from later
        return
    if call.arguments:
        yield "arguments", call.arguments
    yield from _keyed(call.flat)
    yield from ((str(at), each) for at, each in enumerate(call.items))
    if type(state) is Dict:
        yield from _keyed(state.flat)
    elif type(state) is tuple and len(state) == 2 and type(state[1]) is Dict:
        yield from _keyed(state[0].flat if type(state[0]) is Dict else [])
        yield from _keyed(state[1].flat)
    elif state is not None:
        yield "state", state


def key_text(key: Any, place: int) -> str:
    """Write a key that is no text, so that its type can be seen.

    >>> key_text(3, 0), key_text(b"w", 0), key_text((1, "a"), 0), key_text(None, 0)
    ('3', "b'w'", "(1, 'a')", 'None')
    """
    if type(key) is int:
        return value_text(key)
    if type(key) in (tuple, bytes) or key is None:
        return value_text(key)
    if type(key) in (bool, float, complex):
        return f"{key} ({type(key).__name__})"
    if type(key) is Global:
        return f"<{for_terminal(str(key))}>"
    return f"<key {place}>"


def value_text(value: Any) -> str:
    """Write a plain value as people would, lists of a few whole, longer ones counted."""
    if type(value) is str:
        return value
    if type(value) in (list, tuple, Set):
        elements = value.elements if type(value) is Set else value
        begin, end = "()" if type(value) is tuple else "[]" if type(value) is list else "{}"
        if len(elements) > _FEW:
            return f"{begin}{len(elements)} values{end}"
        comma = "," if type(value) is tuple and len(elements) == 1 else ""
        return begin + ", ".join(map(_brief, islice(elements, _FEW))) + comma + end
    return _brief(value)


def _brief(value: Any) -> str:
    if type(value) is int and value.bit_length() > 4096:
        return f"a whole number of {value.bit_length()} bits"
    if type(value) is Blob:
        return f"{value.length} {'bytes of text' if value.text else 'bytes'}"
    if type(value) is bytes:
        return repr(value) if len(value) <= _LONGEST else f"{len(value)} bytes"
    if type(value) is str:
        return repr(value) if len(value) <= _LONGEST else repr(value[:_LONGEST]) + "…"
    if type(value) is Global:
        return for_terminal(str(value))
    return str(value) if type(value) in _PLAIN else "…"


_DTYPES = {
    "b1": "bool",
    "i1": "int8",
    "u1": "uint8",
    "i2": "int16",
    "u2": "uint16",
    "i4": "int32",
    "u4": "uint32",
    "i8": "int64",
    "u8": "uint64",
    "f2": "float16",
    "f4": "float32",
    "f8": "float64",
    "c8": "complex64",
    "c16": "complex128",
}
_CODES = {
    "b1": "?",
    "i1": "b",
    "u1": "B",
    "i2": "h",
    "u2": "H",
    "i4": "i",
    "u4": "I",
    "i8": "q",
    "u8": "Q",
    "f2": "e",
    "f4": "f",
    "f8": "d",
    "c8": "2f",
    "c16": "2d",
}
_MOST_AXES = 64  # of NumPy itself
_HOMES = ("numpy.core.", "numpy._core.")


class _Dtype(NamedTuple):
    """A NumPy dtype we know: its code without, and the order of its bytes."""

    code: str
    big: bool


def from_numpy(call: Call, storages: Storages) -> Any:
    """Return the tensor or number a call of NumPy's stands for; None if it is no such call."""
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
    """Return the strides of C order."""
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
