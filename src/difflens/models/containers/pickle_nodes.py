"""What a pickle is made of once it is read and nothing was made: plain data and these nodes.

None of them hashes or compares its content, so keys that cannot be hashed, structures that hold
themselves and a million levels do no harm.
"""

from __future__ import annotations

from typing import Any, NamedTuple


class Global(NamedTuple):
    """The name of a class or function; what bears that name is never looked for."""

    module: str
    name: str

    def __str__(self) -> str:
        """Write it as Python does."""
        return f"{self.module}.{self.name}"


class Dict:
    """A dictionary: its keys and values in order, one after another."""

    __slots__ = ("flat", "state")

    def __init__(self, flat: list[Any] | None = None) -> None:
        """Store the items as key, value, key, value."""
        self.flat: list[Any] = flat if flat is not None else []
        self.state: Any = None

    def get(self, key: str, default: Any = None) -> Any:
        """Return the value of a key that is text; the last one, as Python would."""
        flat = self.flat
        for at in range(len(flat) - 2, -1, -2):
            if flat[at] == key and type(flat[at]) is str:
                return flat[at + 1]
        return default

    def named(self) -> dict[str, Any]:
        """Return the values whose keys are text."""
        pairs = zip(self.flat[::2], self.flat[1::2], strict=True)
        return {key: value for key, value in pairs if type(key) is str}


class Set:
    """A set or a frozen one: its elements, in the order they came."""

    __slots__ = ("elements",)

    def __init__(self, elements: list[Any] | None = None) -> None:
        """Store the elements."""
        self.elements: list[Any] = elements if elements is not None else []


class Call:
    """Something a program would have made by calling: the function, arguments, state and items."""

    __slots__ = ("arguments", "flat", "function", "items", "state")

    def __init__(self, function: Any, arguments: Any) -> None:
        """Store the function that would have been called, and its arguments."""
        self.function = function
        self.arguments = arguments
        self.state: Any = None
        self.items: list[Any] = []  # what was appended or added to it
        self.flat: list[Any] = []  # the keys and values that were set in it


class Persistent:
    """An object kept outside the pickle, by its id."""

    __slots__ = ("id",)

    def __init__(self, id: Any) -> None:  # noqa: A002  pickle's own word
        """Store the id."""
        self.id = id


class Blob(NamedTuple):
    """A long string that was left where it is: bytes [start, start + length) of its file."""

    start: int
    length: int
    text: bool
