"""The opcodes of pickle that push numbers and strings, and the table of all opcodes."""

from __future__ import annotations

import codecs
from collections.abc import Callable
from struct import unpack
from typing import Any

from .pickle_machine import Machine

Opcode = Callable[[Machine], Any]


def _unknown(code: int) -> Opcode:
    def refuse(machine: Machine) -> None:
        raise machine.broken(f"0x{code:02x} is no opcode of pickle")

    return refuse


OPCODES: list[Opcode] = [_unknown(code) for code in range(256)]


def does(code: bytes) -> Callable[[Opcode], Opcode]:
    """Register what an opcode does."""

    def register(opcode: Opcode) -> Opcode:
        OPCODES[code[0]] = opcode
        return opcode

    return register


def pushes(code: bytes, value: Any) -> None:
    """Register an opcode that pushes a constant."""
    OPCODES[code[0]] = lambda machine: machine.stack.append(value)


@does(b"K")
def _one_byte(machine: Machine) -> None:
    machine.stack.append(machine.read(1)[0])


@does(b"M")
def _two_bytes(machine: Machine) -> None:
    machine.stack.append(machine.number(2))


@does(b"J")
def _four_bytes(machine: Machine) -> None:
    machine.stack.append(int.from_bytes(machine.read(4), "little", signed=True))


@does(b"I")
def _integer_line(machine: Machine) -> None:
    taken = machine.line()
    truth = {b"00": False, b"01": True}.get(taken)
    machine.stack.append(machine.integer(taken) if truth is None else truth)


@does(b"L")
def _long_line(machine: Machine) -> None:
    machine.stack.append(machine.integer(machine.line().removesuffix(b"L")))


def _long(machine: Machine, length: int) -> None:
    if length > 1 << 16:
        machine.left(length)
        raise machine.broken(f"the pickle holds a whole number of {length} bytes")
    machine.stack.append(int.from_bytes(machine.read(length), "little", signed=True))


OPCODES[0x8A] = lambda machine: _long(machine, machine.number(1))
OPCODES[0x8B] = lambda machine: _long(machine, machine.number(4))


@does(b"G")
def _double(machine: Machine) -> None:
    machine.stack.append(unpack(">d", machine.read(8))[0])


@does(b"F")
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


@does(b"S")
def _string_line(machine: Machine) -> None:
    taken = machine.line().strip()
    if len(taken) < 2 or taken[:1] not in (b"'", b'"') or taken[:1] != taken[-1:]:
        raise machine.broken("a string of the pickle has no quotes around it")
    try:
        machine.stack.append(_python_2(codecs.escape_decode(taken[1:-1])[0]))
    except ValueError:
        raise machine.broken("a string of the pickle cannot be read") from None


@does(b"V")
def _text_line(machine: Machine) -> None:
    try:
        machine.stack.append(machine.line().decode("raw-unicode-escape"))
    except UnicodeDecodeError:
        raise machine.broken("a text of the pickle cannot be read") from None
