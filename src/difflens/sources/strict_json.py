"""JSON for headers and indexes, read so that two readers cannot disagree about it.

Refused beyond the grammar: a name twice in one object, lone surrogates, a
byte-order mark, NaN, numbers over 63 bits, fractions unless asked for, depth.
The C scanner of the standard library does the work; only what it lets through
is looked at again.
"""

import gc
import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

from ..errors import CorruptFile, LimitExceeded
from ..escape import for_terminal

LARGEST = 2**63 - 1
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")

Pairs = list[tuple[str, Any]]


def parse(
    data: bytes,
    where: str,
    *,
    depth: int,
    floats: bool = False,
    make: Callable[[dict[str, Any]], Any] = lambda found: found,
) -> Any:
    """Read strict JSON.

    `make` turns each object into something smaller, innermost first; it must hand back objects it
    does not fully understand, and vouches for what it makes.

    >>> parse(b'{"a": [1]}', "x", depth=8)
    {'a': [1]}
    """

    def no_float(text: str) -> NoReturn:
        raise CorruptFile(where, f"the number {for_terminal(text, 40)} is not a whole one")

    def gather(pairs: Pairs) -> Any:
        found = dict(pairs)
        if len(found) != len(pairs):
            twice = for_terminal(_first_double(pairs))
            raise CorruptFile(where, f"the name '{twice}' stands twice in one object")
        return make(found)

    has_surrogates = b"\\u" in data and bool(_SURROGATE.search(data))
    text = _text(data, where)
    del data  # 85 MB for a million tensors, where the caller kept none
    decoder = json.JSONDecoder(
        object_pairs_hook=gather, parse_float=None if floats else no_float, parse_constant=no_float
    )
    with _no_collector(), _our_errors(where, depth):
        found = decoder.decode(text)
    _check(found, where, depth, strings=has_surrogates)
    return found


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
    """Hold the cycle collector: a parsed document has no cycles, and looking doubles the time."""
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
    except ValueError as error:  # Python converts no number of more than 4300 digits
        raise CorruptFile(where, "a number overflows 63 bits") from error


def _too_deep(where: str, depth: int) -> LimitExceeded:
    reason = f"the JSON is nested deeper than {depth} levels"
    return LimitExceeded(where, reason, hint="raise it with --limit json_depth=N")


def _first_double(pairs: Pairs) -> str:
    seen = set()
    for name, _ in pairs:
        if name in seen:
            return name
        seen.add(name)
    return ""


def _check(found: Any, where: str, depth: int, *, strings: bool) -> None:
    """Look at everything level by level: no recursion, and nothing `make` already vouched for."""
    level, deep = [found], 0
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
