"""What a checkpoint holds, found without recursion: tensors and plain values with their paths."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any, NamedTuple

from ..escape import for_terminal
from .containers.pickle_nodes import Blob, Call, Dict, Global, Persistent, Set
from .torch_make import dotted, is_parameter
from .torch_numpy import from_numpy
from .torch_tensors import Storages, Tensor, Unread

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
    """Give what a node stands for, where it stands for a tensor or a number."""
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
    """Write a key that is no text, so that its type can be told.

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
