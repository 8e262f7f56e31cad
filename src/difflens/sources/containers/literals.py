"""Python literals, as NumPy writes them in its headers: read by hand, never by evaluation."""

from __future__ import annotations

import re
from typing import Any, NoReturn

_TOKEN = re.compile(
    r"\s*(?:(?P<text>'[^'\\\n\0]*'|\"[^\"\\\n\0]*\")|(?P<number>-?[0-9]{1,20})L?(?![\w.])"
    r"|(?P<word>True|False|None)(?!\w)|(?P<mark>[\[\](){}:,]))"
)
_WORDS = {"True": True, "False": False, "None": None}
_CLOSING = {"(": ")", "[": "]", "{": "}"}
_DEEPEST = 16


class NoLiteral(ValueError):
    """The text is something else; says at which character."""


def parse(text: str) -> Any:
    """Give texts, whole numbers, True, False, None, tuples, lists and maps; a key stands once.

    >>> parse("{'descr': '<f4', 'shape': (3, 4), }")
    {'descr': '<f4', 'shape': (3, 4)}
    """
    parser = _Parser(text)
    value = parser.value(0)
    if text[parser.place :].strip():
        parser.fail("something follows")
    return value


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.place = 0

    def fail(self, what: str) -> NoReturn:
        raise NoLiteral(f"{what} at character {self.place}")

    def next(self) -> tuple[str, str]:
        found = _TOKEN.match(self.text, self.place)
        if not found:
            self.fail("neither text nor number nor bracket")
        self.place = found.end()
        return found.lastgroup or "", found[found.lastgroup or 0]

    def is_next(self, mark: str) -> bool:
        """Is this mark the next one? Then it is passed."""
        found = _TOKEN.match(self.text, self.place)
        if not found or found["mark"] != mark:
            return False
        self.place = found.end()
        return True

    def value(self, depth: int) -> Any:
        kind, word = self.next()
        if kind == "text":
            return word[1:-1]
        if kind == "number":
            return int(word)
        if kind == "word":
            return _WORDS[word]
        if word not in _CLOSING:
            self.fail(f"a stray {word!r}")
        if depth >= _DEEPEST:
            self.fail(f"nested more than {_DEEPEST} deep")
        return self.map(depth + 1) if word == "{" else self.row(word, depth + 1)

    def row(self, opening: str, depth: int) -> Any:
        items: list[Any] = []
        comma = False
        while not self.is_next(_CLOSING[opening]):
            if items and not comma:
                self.fail("a missing comma")
            items.append(self.value(depth))
            comma = self.is_next(",")
        if opening == "[":
            return items
        # One value in parentheses is that value; a tuple of one has a comma.
        return items[0] if len(items) == 1 and not comma else tuple(items)

    def map(self, depth: int) -> dict[str, Any]:
        items: dict[str, Any] = {}
        comma = True
        while not self.is_next("}"):
            key = self.value(depth) if comma else self.fail("a missing comma")
            if not isinstance(key, str) or key in items or not self.is_next(":"):
                self.fail("no key, or one that stands twice,")
            items[key] = self.value(depth)
            comma = self.is_next(",")
        return items
