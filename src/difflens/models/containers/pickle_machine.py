"""The machine a pickle is a program for: a stack, a memo, and the bytes to come."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from difflens.core.errors import INCOMPLETE, CorruptFile, LimitExceeded
from difflens.core.escape import for_terminal, visible
from difflens.core.protocols import ModelFile

from .pickle_nodes import Blob, Call, Dict, Global, Persistent, Set

_WINDOW = 1 << 16  # bytes read at a time: what follows a pickle may be large
_LONGEST_LINE = 1 << 20
_LONGEST_STRING = 1 << 20  # longer ones are left in the file

# What a state may not set: an unpickler would then make one object look like another.
_SLY = frozenset({"__class__", "__reduce__", "__reduce_ex__", "__setstate__", "__getattribute__"})

Make = Callable[[Any, tuple[Any, ...]], Any]


class Machine:
    """The stack, the memo, and the bytes to come."""

    def __init__(self, file: ModelFile, start: int, make: Make | None) -> None:
        """Begin at that byte with nothing on the stack."""
        self.stack: list[Any] = []
        self.marks: list[int] = []
        self.memo: dict[int, Any] = {}
        self.names: set[Global] = set()
        self.make = make
        self.fence = 0  # what is below the last mark is out of reach
        self.base = start  # where in the file the window begins
        self.window = b""
        self.place = 0
        self.stop = 0
        self._file = file
        self._most_nodes = file.limit("pickle_nodes")
        self._nodes = self._most_nodes

    def hurry(self, limit: int) -> int:
        """Do what most opcodes are, the memo's and small numbers, without a call for each.

        Stops at any other, and wherever one of these is not as it should be: their own functions
        say what is wrong.
        """
        window, place, last = self.window, self.place, self.stop - 5
        stack, memo, fence = self.stack, self.memo, self.fence
        begun = limit
        while place < last and limit > 0:
            code = window[place]
            if code == 113 and len(stack) > fence:  # q
                memo[window[place + 1]] = stack[-1]
                place += 2
            elif code == 114 and len(stack) > fence:  # r
                memo[int.from_bytes(window[place + 1 : place + 5], "little")] = stack[-1]
                place += 5
            elif code == 104 and window[place + 1] in memo:  # h
                stack.append(memo[window[place + 1]])
                place += 2
            elif code == 75:  # K
                stack.append(window[place + 1])
                place += 2
            elif code == 40:  # (
                fence = len(stack)
                self.marks.append(fence)
                place += 1
            else:
                break
            limit -= 1
        if limit != begun:
            self.place, self.fence = place, fence
        return limit

    def broken(self, reason: str, hint: str = "") -> CorruptFile:
        """Make the error that says so, and where."""
        at = f" (byte {self.base + self.place})"
        return CorruptFile(visible(str(self._file.path)), reason + at, hint=hint)

    def exceeded(self, what: str, name: str, limit: int) -> LimitExceeded:
        """Make the error for a limit."""
        reason = f"the pickle has more {what} than {limit}, the limit"
        hint = f"raise it with --limit {name}=N"
        return LimitExceeded(visible(str(self._file.path)), reason, hint=hint)

    def node(self) -> None:
        """Count one more object."""
        if not self._nodes:
            raise self.exceeded("objects", "pickle_nodes", self._most_nodes)
        self._nodes -= 1

    def fill(self, wanted: int) -> bool:
        """Have so many bytes in the window; are there so many?"""
        self.base += self.place
        left = self._file.size - self.base
        self.place = 0
        if wanted > left:
            self.window = b""
            self.stop = 0
            return False
        self.window = self._file.read(self.base, self.base + min(max(wanted, _WINDOW), left))
        self.stop = len(self.window)
        return True

    def read(self, length: int) -> bytes:
        """Return the next bytes, once it is known that they are there."""
        place = self.place
        if length > self.stop - place:
            self.left(length)
            self.fill(length)
            place = 0
        self.place = place + length
        return self.window[place : self.place]

    def left(self, length: int) -> None:
        """Raise unless so many bytes are left in the file."""
        left = self._file.size - self.base - self.place
        if length > left:
            reason = f"the pickle asks for {length} bytes, {left} are left"
            raise self.broken(reason, hint=INCOMPLETE)

    def number(self, length: int) -> int:
        """Return the next bytes as a whole number."""
        return int.from_bytes(self.read(length), "little")

    def string(self, length: int, *, text: bool) -> Any:
        """Return a string, or where in the file it is if it is long."""
        self.left(length)
        if length <= _LONGEST_STRING:
            taken = self.read(length)
            return self.decoded(taken) if text else taken
        blob = Blob(self.base + self.place, length, text)
        self.base += self.place + length
        self.window, self.place, self.stop = b"", 0, 0
        self.node()
        return blob

    def decoded(self, taken: bytes) -> str:
        """Decode as pickle does, lone surrogates and all."""
        try:
            return taken.decode("utf-8", "surrogatepass")
        except UnicodeDecodeError:
            raise self.broken("a text of the pickle is no UTF-8") from None

    def line(self) -> bytes:
        """Return the bytes up to the end of the line."""
        end = self.window.find(b"\n", self.place)
        if end < 0:
            left = self._file.size - self.base - self.place
            self.fill(min(left, _LONGEST_LINE))
            end = self.window.find(b"\n")
            if end < 0:
                raise self.broken("a line of the pickle does not end", hint=INCOMPLETE)
        taken = self.window[self.place : end]
        self.place = end + 1
        return taken

    def integer(self, taken: bytes) -> int:
        """Read a whole number as protocol 0 writes it."""
        digits = taken.removeprefix(b"-")
        if not digits.isdigit() or len(digits) > 4000:
            shown = for_terminal(taken[:40].decode("latin-1"))
            raise self.broken(f"'{shown}' stands where the pickle wants a whole number")
        return int(taken)

    def pop(self) -> Any:
        """Remove the top of the stack and return it."""
        if len(self.stack) <= self.fence:
            raise self.broken("the pickle takes an object from an empty stack")
        return self.stack.pop()

    def top(self) -> Any:
        """Look at the top of the stack."""
        if len(self.stack) <= self.fence:
            raise self.broken("the pickle looks at an empty stack")
        return self.stack[-1]

    def mark(self) -> None:
        """Remember the height of the stack."""
        self.fence = len(self.stack)
        self.marks.append(self.fence)

    def since_mark(self) -> list[Any]:
        """Remove everything since the last mark, and the mark; return what was removed."""
        if not self.marks:
            raise self.broken("the pickle goes back to a mark that it never set")
        begin = self.marks.pop()
        taken = self.stack[begin:]
        del self.stack[begin:]
        self.fence = self.marks[-1] if self.marks else 0
        return taken

    def remember(self, slot: int) -> None:
        """Put the top of the stack into the memo."""
        self.memo[slot] = self.top()

    def recall(self, slot: int) -> None:
        """Push what the memo holds."""
        try:
            self.stack.append(self.memo[slot])
        except KeyError:
            raise self.broken(f"the pickle's memo holds nothing at {slot}") from None

    def name(self, module: Any, name: Any) -> None:
        """Push a name."""
        if type(module) is not str or type(name) is not str or len(module) + len(name) > 5000:
            raise self.broken("the pickle names a class by something that is no name")
        found = Global(module, name)
        self.names.add(found)
        self.node()
        self.stack.append(found)

    def call(self, function: Any, arguments: Any) -> None:
        """Push what a call would have made."""
        if type(arguments) is not tuple:
            raise self.broken("the pickle calls with arguments that are no tuple")
        self.node()
        made = self.make(function, arguments) if self.make else None
        self.stack.append(Call(function, arguments) if made is None else made)

    def outside(self, id: Any) -> None:  # noqa: A002  pickle's own word
        """Push an object that is kept outside."""
        self.node()
        self.stack.append(Persistent(id))

    def build(self, state: Any) -> None:
        """Set the state of the object on top of the stack."""
        target = self.top()
        if type(state) is Dict and any(type(key) is str and key in _SLY for key in state.flat[::2]):
            raise self.broken("the pickle changes the class of an object it made")
        if type(target) is not Call and type(target) is not Dict:
            raise self.broken("the pickle gives a state to an object that has none")
        target.state = state

    def extend(self, items: list[Any]) -> None:
        """Append to the list or object on top of the stack."""
        target = self.top()
        if type(target) is list:
            target.extend(items)
        elif type(target) is Call:
            target.items.extend(items)
        else:
            raise self.broken("the pickle appends to an object that is no list")

    def unite(self, items: list[Any]) -> None:
        """Add to the set or object on top of the stack."""
        target = self.top()
        if type(target) is Set:
            target.elements.extend(items)
        elif type(target) is Call:
            target.items.extend(items)
        else:
            raise self.broken("the pickle adds to an object that is no set")

    def set_items(self, flat: list[Any]) -> None:
        """Set keys and values in the dictionary or object on top of the stack."""
        target = self.top()
        if len(flat) % 2:
            raise self.broken("the pickle sets a key without a value")
        if type(target) is not Dict and type(target) is not Call:
            raise self.broken("the pickle sets a key in an object that is no dictionary")
        target.flat.extend(flat)
