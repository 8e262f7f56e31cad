r"""Pickles, read without making anything: names stay names, calls stay descriptions of calls.

    opcode [argument] opcode [argument] ... .   a program for a machine with a stack and a memo
    c module\n name\n, R, b, Q ...               give Global, Call, the state of a Call, Persistent

Python's own unpickler imports and calls what a file names; there is no safe way to use it. This
loop imports nothing, calls nothing out of the file, never recurses, and takes no length on trust.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from difflens.core.errors import INCOMPLETE
from difflens.core.protocols import ModelFile

from .pickle_machine import Machine, Make
from .pickle_nodes import Dict, Global, Set
from .pickle_scalars import OPCODES, Opcode, does, pushes

_NEWEST = 5


def _refused(what: str) -> Opcode:
    def refuse(machine: Machine) -> None:
        raise machine.broken(f"the pickle uses {what}, which no model file needs")

    return refuse


for _code, _value in ((b"N", None), (b"\x88", True), (b"\x89", False), (b")", ())):
    pushes(_code, _value)

OPCODES[ord("(")] = Machine.mark
for _code in (b"\x82", b"\x83", b"\x84"):
    OPCODES[_code[0]] = _refused("a registered extension")
OPCODES[ord("P")] = _refused("a persistent id as text")
for _code in (b"\x97", b"\x98"):
    OPCODES[_code[0]] = _refused("a buffer outside the file")


@does(b"\x80")
def _protocol(machine: Machine) -> None:
    version = machine.read(1)[0]
    if version > _NEWEST:
        raise machine.broken(f"the pickle is of protocol {version}, {_NEWEST} is the newest")


@does(b"\x95")
def _frame(machine: Machine) -> None:
    machine.left(machine.number(8))


@does(b"0")
def _pop(machine: Machine) -> None:
    if machine.marks and machine.marks[-1] == len(machine.stack):
        machine.since_mark()
    else:
        machine.pop()


@does(b"2")
def _duplicate(machine: Machine) -> None:
    machine.stack.append(machine.top())


OPCODES[ord("1")] = Machine.since_mark


@does(b"]")
def _empty_list(machine: Machine) -> None:
    machine.node()
    machine.stack.append([])


@does(b"}")
def _empty_dict(machine: Machine) -> None:
    machine.node()
    machine.stack.append(Dict())


@does(b"\x8f")
def _empty_set(machine: Machine) -> None:
    machine.node()
    machine.stack.append(Set())


@does(b"l")
def _list(machine: Machine) -> None:
    machine.node()
    machine.stack.append(machine.since_mark())


@does(b"d")
def _dict(machine: Machine) -> None:
    machine.node()
    flat = machine.since_mark()
    machine.stack.append(Dict())
    machine.set_items(flat)


@does(b"\x91")
def _frozen_set(machine: Machine) -> None:
    machine.node()
    machine.stack.append(Set(machine.since_mark()))


@does(b"t")
def _tuple(machine: Machine) -> None:
    machine.node()
    machine.stack.append(tuple(machine.since_mark()))


def _tuple_of(length: int) -> Opcode:
    def push(machine: Machine) -> None:
        machine.node()
        stack = machine.stack
        if len(stack) - machine.fence < length:
            raise machine.broken("the pickle takes an object from an empty stack")
        stack[-length:] = [tuple(stack[-length:])]

    return push


for _length in (1, 2, 3):
    OPCODES[0x84 + _length] = _tuple_of(_length)


@does(b"a")
def _append(machine: Machine) -> None:
    item = machine.pop()
    machine.extend([item])


OPCODES[ord("e")] = lambda machine: machine.extend(machine.since_mark())
OPCODES[ord("u")] = lambda machine: machine.set_items(machine.since_mark())
OPCODES[0x90] = lambda machine: machine.unite(machine.since_mark())


@does(b"s")
def _set_item(machine: Machine) -> None:
    value, key = machine.pop(), machine.pop()
    machine.set_items([key, value])


@does(b"q")
def _put(machine: Machine) -> None:
    machine.remember(machine.read(1)[0])


OPCODES[ord("r")] = lambda machine: machine.remember(machine.number(4))
OPCODES[ord("p")] = lambda machine: machine.remember(machine.integer(machine.line()))
OPCODES[0x94] = lambda machine: machine.remember(len(machine.memo))


@does(b"h")
def _get(machine: Machine) -> None:
    machine.recall(machine.read(1)[0])


OPCODES[ord("j")] = lambda machine: machine.recall(machine.number(4))
OPCODES[ord("g")] = lambda machine: machine.recall(machine.integer(machine.line()))


@does(b"c")
def _global(machine: Machine) -> None:
    module, name = machine.decoded(machine.line()), machine.decoded(machine.line())
    machine.name(module, name)


@does(b"\x93")
def _stack_global(machine: Machine) -> None:
    name, module = machine.pop(), machine.pop()
    machine.name(module, name)


@does(b"i")
def _instance(machine: Machine) -> None:
    _global(machine)
    function = machine.pop()
    machine.call(function, tuple(machine.since_mark()))


@does(b"o")
def _object(machine: Machine) -> None:
    taken = machine.since_mark()
    if not taken:
        raise machine.broken("the pickle makes an object of no class")
    machine.call(taken[0], tuple(taken[1:]))


@does(b"R")
def _reduce(machine: Machine) -> None:
    arguments, function = machine.pop(), machine.pop()
    machine.call(function, arguments)


OPCODES[0x81] = _reduce  # NEWOBJ: a class and its arguments


@does(b"\x92")
def _new_with_names(machine: Machine) -> None:
    named, arguments, function = machine.pop(), machine.pop(), machine.pop()
    if type(arguments) is tuple and not (type(named) is Dict and not named.flat):
        arguments = (arguments, named)
    machine.call(function, arguments)


@does(b"b")
def _build(machine: Machine) -> None:
    machine.build(machine.pop())


@does(b"Q")
def _persistent(machine: Machine) -> None:
    machine.outside(machine.pop())


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
            raise machine.broken("the pickle does not end", hint=INCOMPLETE)
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
