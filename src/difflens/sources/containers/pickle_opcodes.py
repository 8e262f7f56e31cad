"""The opcodes of pickle, protocols 0 to 5: what each does to the machine."""

from __future__ import annotations

import codecs
from collections.abc import Callable
from struct import unpack
from typing import Any

from .pickle_nodes import Dict, Set
from .pickles import Machine

Opcode = Callable[[Machine], Any]

_NEWEST = 5


def _unknown(code: int) -> Opcode:
    def refuse(machine: Machine) -> None:
        raise machine.broken(f"0x{code:02x} is no opcode of pickle")

    return refuse


def _refused(what: str) -> Opcode:
    def refuse(machine: Machine) -> None:
        raise machine.broken(f"the pickle uses {what}, which no model file needs")

    return refuse


OPCODES: list[Opcode] = [_unknown(code) for code in range(256)]


def _does(code: bytes) -> Callable[[Opcode], Opcode]:
    def register(opcode: Opcode) -> Opcode:
        OPCODES[code[0]] = opcode
        return opcode

    return register


def _pushes(code: bytes, value: Any) -> None:
    OPCODES[code[0]] = lambda machine: machine.stack.append(value)


for _code, _value in ((b"N", None), (b"\x88", True), (b"\x89", False), (b")", ())):
    _pushes(_code, _value)

OPCODES[ord("(")] = Machine.mark
for _code in (b"\x82", b"\x83", b"\x84"):
    OPCODES[_code[0]] = _refused("a registered extension")
OPCODES[ord("P")] = _refused("a persistent id as text")
for _code in (b"\x97", b"\x98"):
    OPCODES[_code[0]] = _refused("a buffer outside the file")


@_does(b"\x80")
def _protocol(machine: Machine) -> None:
    version = machine.take(1)[0]
    if version > _NEWEST:
        raise machine.broken(f"the pickle is of protocol {version}, {_NEWEST} is the newest")


@_does(b"\x95")
def _frame(machine: Machine) -> None:
    machine.left(machine.number(8))


@_does(b"0")
def _pop(machine: Machine) -> None:
    if machine.marks and machine.marks[-1] == len(machine.stack):
        machine.since_mark()
    else:
        machine.pop()


@_does(b"2")
def _duplicate(machine: Machine) -> None:
    machine.stack.append(machine.top())


OPCODES[ord("1")] = Machine.since_mark


@_does(b"K")
def _one_byte(machine: Machine) -> None:
    machine.stack.append(machine.take(1)[0])


@_does(b"M")
def _two_bytes(machine: Machine) -> None:
    machine.stack.append(machine.number(2))


@_does(b"J")
def _four_bytes(machine: Machine) -> None:
    machine.stack.append(int.from_bytes(machine.take(4), "little", signed=True))


@_does(b"I")
def _integer_line(machine: Machine) -> None:
    taken = machine.line()
    truth = {b"00": False, b"01": True}.get(taken)
    machine.stack.append(machine.integer(taken) if truth is None else truth)


@_does(b"L")
def _long_line(machine: Machine) -> None:
    machine.stack.append(machine.integer(machine.line().removesuffix(b"L")))


def _long(machine: Machine, length: int) -> None:
    if length > 1 << 16:
        machine.left(length)
        raise machine.broken(f"the pickle holds a whole number of {length} bytes")
    machine.stack.append(int.from_bytes(machine.take(length), "little", signed=True))


OPCODES[0x8A] = lambda machine: _long(machine, machine.number(1))
OPCODES[0x8B] = lambda machine: _long(machine, machine.number(4))


@_does(b"G")
def _double(machine: Machine) -> None:
    machine.stack.append(unpack(">d", machine.take(8))[0])


@_does(b"F")
def _double_line(machine: Machine) -> None:
    taken = machine.line()
    try:
        machine.stack.append(float(taken.replace(b"_", b"?")))
    except ValueError:
        raise machine.broken("a line of the pickle is no number") from None


def _text(width: int) -> Opcode:
    def push(machine: Machine) -> None:
        machine.stack.append(machine.string(machine.number(width), text=True))

    return push


def _bytes(width: int) -> Opcode:
    def push(machine: Machine) -> None:
        machine.stack.append(machine.string(machine.number(width), text=False))

    return push


def _old_string(width: int) -> Opcode:
    def push(machine: Machine) -> None:
        machine.stack.append(_python_2(machine.string(machine.number(width), text=False)))

    return push


def _python_2(taken: Any) -> Any:
    """Decode what Python 2 called a string, where it is text."""
    try:
        return taken.decode("utf-8") if type(taken) is bytes else taken
    except UnicodeDecodeError:
        return taken


for _code, _width in ((b"\x8c", 1), (b"X", 4), (b"\x8d", 8)):
    OPCODES[_code[0]] = _text(_width)
for _code, _width in ((b"C", 1), (b"B", 4), (b"\x8e", 8), (b"\x96", 8)):
    OPCODES[_code[0]] = _bytes(_width)
for _code, _width in ((b"U", 1), (b"T", 4)):
    OPCODES[_code[0]] = _old_string(_width)


@_does(b"S")
def _string_line(machine: Machine) -> None:
    taken = machine.line().strip()
    if len(taken) < 2 or taken[:1] not in (b"'", b'"') or taken[:1] != taken[-1:]:
        raise machine.broken("a string of the pickle has no quotes around it")
    try:
        machine.stack.append(_python_2(codecs.escape_decode(taken[1:-1])[0]))
    except ValueError:
        raise machine.broken("a string of the pickle cannot be read") from None


@_does(b"V")
def _text_line(machine: Machine) -> None:
    try:
        machine.stack.append(machine.line().decode("raw-unicode-escape"))
    except UnicodeDecodeError:
        raise machine.broken("a text of the pickle cannot be read") from None


@_does(b"]")
def _empty_list(machine: Machine) -> None:
    machine.node()
    machine.stack.append([])


@_does(b"}")
def _empty_dict(machine: Machine) -> None:
    machine.node()
    machine.stack.append(Dict())


@_does(b"\x8f")
def _empty_set(machine: Machine) -> None:
    machine.node()
    machine.stack.append(Set())


@_does(b"l")
def _list(machine: Machine) -> None:
    machine.node()
    machine.stack.append(machine.since_mark())


@_does(b"d")
def _dict(machine: Machine) -> None:
    machine.node()
    flat = machine.since_mark()
    machine.stack.append(Dict())
    machine.set_items(flat)


@_does(b"\x91")
def _frozen_set(machine: Machine) -> None:
    machine.node()
    machine.stack.append(Set(machine.since_mark()))


@_does(b"t")
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


@_does(b"a")
def _append(machine: Machine) -> None:
    item = machine.pop()
    machine.extend([item])


OPCODES[ord("e")] = lambda machine: machine.extend(machine.since_mark())
OPCODES[ord("u")] = lambda machine: machine.set_items(machine.since_mark())
OPCODES[0x90] = lambda machine: machine.unite(machine.since_mark())


@_does(b"s")
def _set_item(machine: Machine) -> None:
    value, key = machine.pop(), machine.pop()
    machine.set_items([key, value])


@_does(b"q")
def _put(machine: Machine) -> None:
    machine.remember(machine.take(1)[0])


OPCODES[ord("r")] = lambda machine: machine.remember(machine.number(4))
OPCODES[ord("p")] = lambda machine: machine.remember(machine.integer(machine.line()))
OPCODES[0x94] = lambda machine: machine.remember(len(machine.memo))


@_does(b"h")
def _get(machine: Machine) -> None:
    machine.recall(machine.take(1)[0])


OPCODES[ord("j")] = lambda machine: machine.recall(machine.number(4))
OPCODES[ord("g")] = lambda machine: machine.recall(machine.integer(machine.line()))


@_does(b"c")
def _global(machine: Machine) -> None:
    module, name = machine.decoded(machine.line()), machine.decoded(machine.line())
    machine.name(module, name)


@_does(b"\x93")
def _stack_global(machine: Machine) -> None:
    name, module = machine.pop(), machine.pop()
    machine.name(module, name)


@_does(b"i")
def _instance(machine: Machine) -> None:
    _global(machine)
    function = machine.pop()
    machine.call(function, tuple(machine.since_mark()))


@_does(b"o")
def _object(machine: Machine) -> None:
    taken = machine.since_mark()
    if not taken:
        raise machine.broken("the pickle makes an object of no class")
    machine.call(taken[0], tuple(taken[1:]))


@_does(b"R")
def _reduce(machine: Machine) -> None:
    arguments, function = machine.pop(), machine.pop()
    machine.call(function, arguments)


OPCODES[0x81] = _reduce  # NEWOBJ: a class and its arguments


@_does(b"\x92")
def _new_with_names(machine: Machine) -> None:
    named, arguments, function = machine.pop(), machine.pop(), machine.pop()
    if type(arguments) is tuple and not (type(named) is Dict and not named.flat):
        arguments = (arguments, named)
    machine.call(function, arguments)


@_does(b"b")
def _build(machine: Machine) -> None:
    machine.build(machine.pop())


@_does(b"Q")
def _persistent(machine: Machine) -> None:
    machine.outside(machine.pop())
