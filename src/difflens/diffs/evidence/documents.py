"""JSON and other documents given as evidence, read within limits."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from itertools import chain
from math import isfinite
from typing import Any, NoReturn

from difflens.core.addresses import Location, locate
from difflens.core.errors import EvidenceError, ModelError
from difflens.core.escape import for_terminal, visible

Limits = Mapping[str, int] | None

_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_CONSTANT = re.compile(r'"(?:[^"\\]|\\.)*"|NaN|-?Infinity', re.DOTALL)
_WORDS = {dict: "an object", list: "a list", str: "text", bool: "true or false", type(None): "null"}


class Fault(Exception):
    """A fault found while JSON is parsed, before its place is known."""


def broken(path: object, reason: str, hint: str = "") -> EvidenceError:
    """Make the error about one file."""
    return EvidenceError(visible(str(path)), reason, hint=hint)


def content(path: str | Location, limits: Limits = None) -> bytes:
    """Read a whole file, after its size was held against the limit."""
    from difflens.storage.places import open_small

    if not str(path):
        raise broken("''", "the path is empty")
    try:
        file = open_small(locate(path), limits)
        try:
            most = file.limit("evidence_bytes")
            if file.size > most:
                reason = f"too large: {file.size} bytes, the limit is {most}"
                raise broken(path, reason, "raise it with --limit evidence_bytes=N")
            data = file.read(0, file.size)
            file.confirm()
        finally:
            file.close()
    except ModelError as error:
        raise broken(path, error.reason, error.hint) from error
    return data


def text(path: str | Location, limits: Limits = None) -> str:
    """Read a text; a byte-order mark in front, as spreadsheets write it, is no part of it."""
    data = content(path, limits)
    if data.startswith(_UTF16):
        raise broken(path, "it is UTF-16, UTF-8 is wanted", "save it as UTF-8")
    try:
        decoded = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        found = f"byte {error.start}, in line {line}, is {data[error.start]:#04x}"
        raise broken(path, f"{found}, which is not UTF-8") from error
    if not decoded.strip():
        raise broken(path, "it is empty")
    return decoded


def json_object(
    path: str | Location, limits: Limits = None, *, lenient: bool = False
) -> dict[str, Any]:
    """Read a file that holds one JSON object.

    `lenient` lets NaN and infinities pass, which Python writes into logs.
    """
    found = json_value(path, text(path, limits), limits, lenient=lenient)
    if type(found) is not dict:
        raise broken(path, f"it holds {kind_of(found)}, an object is wanted")
    return found


def json_value(
    path: object,
    whole: str,
    limits: Limits = None,
    *,
    lenient: bool = False,
    line: int = 1,
    hint: str = "",
) -> Any:
    """Parse JSON; `line` is where in the file it begins, `hint` helps where it is none."""
    decoder = json.JSONDecoder(
        object_pairs_hook=_gathered, parse_constant=float if lenient else _constant
    )
    deepest = (limits or {}).get("json_depth", _default_depth())
    try:
        found = decoder.decode(whole)
        _check_depth(found, deepest)
    except json.JSONDecodeError as error:
        what = error.msg.lower().replace("invalid", "malformed").removesuffix(" at")
        place = f"line {error.lineno + line - 1}, column {error.colno}"
        raise broken(path, f"{place}: not JSON: {for_terminal(what)}", hint) from error
    except RecursionError as error:
        hint = "raise it with --limit json_depth=N"
        raise broken(path, f"the JSON is nested deeper than {deepest} levels", hint) from error
    except Fault as error:
        place = f"line {line}: " if line > 1 else ""
        raise broken(path, f"{place}{error}") from error
    except _Constant as error:
        raise broken(path, f"{_place_of_constant(whole, line)}: {error} is no number") from error
    except ValueError as error:  # Python converts no number of more than 4300 digits
        raise broken(path, "a number has more than 4300 digits") from error
    return found


def number(value: Any, path: object, where: str, *, written: bool = False) -> float:
    """Return a finite number; `where` says which one, such as "line 3, column 'score'".

    `written` ones stand as text, as in CSV; in JSON a text is no number.
    """
    if written and type(value) is str:
        value = _parsed(value, path, where)
    if type(value) is bool:
        raise broken(
            path, f"{where}: {str(value).lower()} where a number is wanted", "write 1 or 0"
        )
    if type(value) not in (int, float):
        raise broken(path, f"{where}: {kind_of(value)} where a number is wanted")
    try:
        finite = float(value)
    except OverflowError:
        raise broken(path, f"{where}: a number too large for a float64") from None
    if not isfinite(finite):
        hint = "leave out what has no value"
        raise broken(path, f"{where}: {value} where a finite number is wanted", hint)
    return finite


def kind_of(value: Any) -> str:
    """Name the kind of a JSON value.

    >>> kind_of([1]), kind_of("x"), kind_of(None)
    ('a list', "the text 'x'", 'null')
    """
    if type(value) is str:
        return f"the text '{for_terminal(value, 40)}'"
    return _WORDS.get(type(value), "a number")


def twice_in(names: Iterable[str]) -> str:
    """Return the first name that was there before, nothing if each stands once.

    >>> twice_in("abca"), twice_in("abc")
    ('a', '')
    """
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return ""


def is_unicode(value: str) -> bool:
    """Can it be written as UTF-8? JSON can spell a lone surrogate, which cannot."""
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


class _Constant(Exception):
    """NaN or an infinity, which are no JSON."""


def _constant(word: str) -> NoReturn:
    raise _Constant(word)


def _parsed(cell: str, path: object, where: str) -> float:
    """Read a cell as Python reads a float, without its underscores."""
    try:
        if "_" in cell:
            raise ValueError(cell)
        return float(cell)
    except ValueError:
        said = kind_of(cell) if cell.strip() else "nothing"
        raise broken(path, f"{where}: {said} where a number is wanted") from None


def _gathered(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        twice = twice_in(name for name, _ in pairs)
        raise Fault(f"the name '{for_terminal(twice, 80)}' stands twice in one object")
    return found


def _check_depth(found: Any, deepest: int) -> None:
    """Look at everything level by level: no recursion; no text that cannot be written again."""
    level, deep = [found], 0
    while level:
        nodes = [node for node in level if type(node) in (dict, list)]
        keys = (key for node in nodes if type(node) is dict for key in node)
        for each in chain(level, keys):
            if type(each) is str and not each.isascii() and not is_unicode(each):
                raise Fault(f"'{for_terminal(each, 80)}' holds a lone surrogate")
        if nodes and deep >= deepest:
            raise RecursionError
        level = [part for node in nodes for part in (node.values() if type(node) is dict else node)]
        deep += 1


def _place_of_constant(whole: str, line: int) -> str:
    found = next(each for each in _CONSTANT.finditer(whole) if each[0][0] != '"')
    before = whole[: found.start()]
    column = found.start() - (before.rfind("\n") + 1) + 1
    return f"line {before.count(chr(10)) + line}, column {column}"


def _default_depth() -> int:
    from difflens.core.limits import DEFAULTS

    return DEFAULTS["json_depth"]


NESTED = ("text_config", "llm_config", "language_config")


def config(path: str | Location, limits: Limits = None) -> dict[str, Any]:
    """Read the settings; what only the nested model says is said of the whole.

    A model of images and text keeps its layers and heads in `text_config`.
    """
    found = json_object(path, limits)
    if not found:
        raise broken(path, "it has no setting")
    for name in NESTED:
        inner = found.get(name)
        if type(inner) is dict:
            return {**inner, **found}
    return found
