"""Strict JSON for headers and indexes: what two readers could interpret differently is refused.

Refused beyond the grammar: a duplicate name in an object, lone surrogates, a byte-order mark, NaN,
numbers over 63 bits, fractions unless allowed, and nesting that is too deep. The C scanner of the
standard library parses; only what it accepts is checked again.
"""

import gc
import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

from difflens.core.errors import CorruptFile, LimitExceeded
from difflens.core.escape import for_terminal
from difflens.core.limits import LARGEST

_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")

Pairs = list[tuple[str, Any]]


def parse(
    data: bytes,
    where: str,
    *,
    depth: int,
    floats: bool = False,
    make: Callable[[dict[str, Any]], Any] = lambda value: value,
) -> Any:
    """Read strict JSON.

    `make` converts each object to something smaller, innermost first. It must return an object
    that it does not fully understand unchanged; what it converts is not checked again.

    >>> parse(b'{"a": [1]}', "x", depth=8)
    {'a': [1]}
    """

    def no_float(text: str) -> NoReturn:
        raise CorruptFile(where, f"the number {for_terminal(text, 40)} is not an integer")

    def gather(pairs: Pairs) -> Any:
        value = dict(pairs)
        if len(value) != len(pairs):
            name = for_terminal(_first_duplicate(pairs))
            raise CorruptFile(where, f"the name '{name}' stands twice in one object")
        return make(value)

    has_surrogates = b"\\u" in data and bool(_SURROGATE.search(data))
    text = _text(data, where)
    del data  # 85 MB for a million tensors, if the caller has no reference
    decoder = json.JSONDecoder(
        object_pairs_hook=gather, parse_float=None if floats else no_float, parse_constant=no_float
    )
    with _no_collector(), _our_errors(where, depth):
        value = decoder.decode(text)
    _check(value, where, depth, strings=has_surrogates)
    return value


def _text(data: bytes, where: str) -> str:
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        byte = data[error.start]
        reason = f"byte {error.start} of the JSON is {byte:#04x}, which is not UTF-8"
        raise CorruptFile(where, reason) from error
    if text.startswith("\ufeff"):
        raise CorruptFile(where, "the JSON begins with a byte-order mark")
    return text


@contextmanager
def _no_collector() -> Iterator[None]:
    """Disable the cycle collector, which doubles the time: a document has no cycles."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


@contextmanager
def _our_errors(where: str, depth: int) -> Iterator[None]:
    try:
        yield
    except json.JSONDecodeError as error:
        what = error.msg.lower().replace("invalid", "malformed").removesuffix(" at")
        reason = f"not JSON: {for_terminal(what)} at character {error.pos}"
        raise CorruptFile(where, reason) from error
    except RecursionError as error:
        raise _too_deep(where, depth) from error
    except ValueError as error:  # Python refuses to convert a number of more than 4300 digits
        raise CorruptFile(where, "a number overflows 63 bits") from error


def _too_deep(where: str, depth: int) -> LimitExceeded:
    reason = f"the JSON is nested deeper than {depth} levels"
    return LimitExceeded(where, reason, hint="raise it with --limit json_depth=N")


def _first_duplicate(pairs: Pairs) -> str:
    seen = set()
    for name, _ in pairs:
        if name in seen:
            return name
        seen.add(name)
    return ""


def _check(document: Any, where: str, depth: int, *, strings: bool) -> None:
    """Check the document level by level, without recursion; skip what `make` converted."""
    level, deep = [document], 0
    while level:
        if strings:
            _check_strings(level, where)
        for number in level:
            if type(number) is int and abs(number) > LARGEST:
                text = for_terminal(str(number), 40)
                raise CorruptFile(where, f"the number {text} overflows 63 bits")
        nodes = [node for node in level if type(node) is dict or type(node) is list]
        if nodes and deep >= depth:
            raise _too_deep(where, depth)
        level = [
            child for node in nodes for child in (node.values() if type(node) is dict else node)
        ]
        deep += 1


def _check_strings(level: list[Any], where: str) -> None:
    for node in level:
        for text in node if type(node) is dict else (node,):
            if type(text) is str and not _is_unicode(text):
                raise CorruptFile(where, f"'{for_terminal(text)}' holds a lone surrogate")


def _is_unicode(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
