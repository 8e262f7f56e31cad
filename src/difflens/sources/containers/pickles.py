r"""Pickles, read without making anything: names stay names, calls stay descriptions of calls.

    opcode [argument] opcode [argument] ... .   a program for a machine with a stack and a memo
    c module\n name\n, R, b, Q ...               give Global, Call, the state of a Call, Persistent

Python's own unpickler imports and calls what a file names; there is no safe way to use it. This
loop imports nothing, calls nothing out of the file, never recurses, and takes no length on trust.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ...protocols import ModelFile
from .pickle_machine import CUT, Machine, Make
from .pickle_nodes import Global
from .pickle_opcodes import OPCODES

__all__ = ["Make", "Unpickled", "unpickle"]


class Unpickled(NamedTuple):
    """What a pickle holds, where it ends, and every name it would have imported."""

    value: Any
    end: int
    names: set[Global]


def unpickle(file: ModelFile, start: int = 0, make: Make | None = None) -> Unpickled:
    """Read one pickle from byte `start` on.

    `make(function, arguments)` may turn a call into a value of its own; None leaves it a `Call`.
    """
    machine = Machine(file, start, make)
    limit = most = file.limit("pickle_opcodes")
    while True:
        limit = machine.hurry(limit)
        if machine.place == machine.stop and not machine.fill(1):
            raise machine.broken("the pickle does not end", hint=CUT)
        code = machine.window[machine.place]
        machine.place += 1
        if code == 46:  # '.'
            break
        if limit <= 0:
            raise machine.exceeded("opcodes", "pickle_opcodes", most)
        limit -= 1
        OPCODES[code](machine)
    if machine.marks or len(machine.stack) != 1:
        reason = f"the pickle ends with {len(machine.stack)} objects on its stack, one is wanted"
        raise machine.broken(reason)
    return Unpickled(machine.stack[0], machine.base + machine.place, machine.names)
