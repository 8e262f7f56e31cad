"""MATLAB files whose elements lie about type, length, shape or nesting."""

import io
import random
import struct
import time
import zlib

import numpy as np
import pytest
import scipy.io
from hostile.survival import MANY, cut, damaged, survive, values
from models.formats.test_mat import element, file, matrix

from difflens.core.errors import DifflensError, LimitExceeded
from difflens.models.formats import open_model

ONE = matrix("w", (1, 2), [(9, bytes(16))], 6)


def packed(data: bytes) -> bytes:
    body = zlib.compress(data)
    return struct.pack("<2I", 15, len(body)) + body


def nested(depth: int) -> bytes:
    inner = matrix("", (1, 1), [(9, bytes(8))], 6)
    for _ in range(depth):
        inner = matrix("", (1, 1), [(14, inner[8:])], 1)
    return matrix("c", (1, 1), [(14, inner[8:])], 1)


def struct_of(names: bytes, width: int, *parts: bytes) -> bytes:
    body = [(5, struct.pack("<i", width)), (1, names), *((14, part[8:]) for part in parts)]
    return matrix("s", (1, 1), body, 2)


LONG = packed(ONE)
REFUSED = {
    "an element past the end": (struct.pack("<2I", 14, 2**32 - 1) + ONE[8:], "ends at byte"),
    "a tag cut short": (ONE + b"\x0e\0\0\0", "a variable begins at byte"),
    "one byte more": (ONE + b"\0", "a variable begins at byte"),
    "no matrix": (element(9, bytes(16)), "a matrix is wanted"),
    "a class nobody knows": (matrix("w", (1, 2), [(9, bytes(16))], 77), "class 77"),
    "numbers of a type nobody knows": (matrix("w", (1, 2), [(8, bytes(16))], 6), "type 8"),
    "too few numbers": (matrix("w", (1, 3), [(9, bytes(16))], 6), "takes 24 bytes"),
    "a shape below zero": (matrix("w", (-1, 2), [(9, b"")], 6), "below zero"),
    "a shape that overflows": (matrix("w", (2**31 - 1,) * 3, [(9, b"")], 6), "overflows"),
    "rank 100": (matrix("w", (1,) * 100, [(9, bytes(8))], 6), "up to 64"),
    "doubles as integers": (matrix("w", (1, 2), [(9, bytes(16))], 12), "loses bits"),
    "a part too many": (matrix("w", (1, 1), [(9, bytes(8)), (9, bytes(8))], 6), "followed by"),
    "no imaginary part": (matrix("w", (1, 1), [(9, bytes(8))], 6, flags=0x800), "begins at byte"),
    "4 billion cells": (matrix("c", (2**31 - 1, 2), [], 1), "bytes are left"),
    "cells nested 1,000 deep": (nested(1000), "nested"),
    "a field twice": (struct_of(b"a\0a\0", 2, ONE, ONE), "two fields of one name"),
    "names of no width": (struct_of(b"a\0", 0, ONE), "names of fields"),
    "a packed one that is cut": (
        LONG[:4] + struct.pack("<I", len(LONG) - 20) + LONG[8:-12],
        "ends before",
    ),
    "a packed one in a packed one": (packed(LONG), "holds no matrix"),
    "two in a packed one": (packed(ONE + ONE), "goes on after|more than one"),
    "nothing packed": (packed(b""), "a tag takes 8"),
    "damaged zlib": (struct.pack("<2I", 15, 16) + bytes(16), "damaged"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_file_that_lies_is_refused_at_once(case, tmp_path):
    data, said = REFUSED[case]
    path = tmp_path / "m.mat"
    path.write_bytes(file(data))
    began = time.monotonic()

    with pytest.raises(DifflensError, match=said):
        read_all(path)
    assert time.monotonic() - began < 5


def read_all(path) -> None:
    model = open_model(path)
    try:
        for name, info in model.tensors.items():
            model.read_into(name, 0, info.size_bytes, memoryview(bytearray(info.size_bytes)))
        model.confirm()
    finally:
        model.close()


def test_a_packed_bomb_is_told(tmp_path):
    data = matrix("w", (1, 1 << 20), [(9, bytes(8 << 20))], 6)
    (tmp_path / "m.mat").write_bytes(file(packed(data)))

    with pytest.raises(LimitExceeded, match="the limit is 250 times"):
        open_model(tmp_path / "m.mat", limits={"compressed_bytes": 1 << 20})


def good(*, packed: bool) -> bytes:
    stream = io.BytesIO()
    tree = {"w": np.arange(6.0).reshape(2, 3), "s": {"b": np.ones((1, 2), "i2"), "t": "hi"}}
    scipy.io.savemat(stream, tree, do_compression=packed)
    return stream.getvalue()


def structured(data: bytes, seed: int, count: int):
    """Yield copies with other numbers where tags, flags and dimensions are."""
    chance = random.Random(seed)
    for _ in range(count):
        copy = bytearray(data)
        for _ in range(chance.choice((1, 1, 2))):
            at = 128 + 4 * chance.randrange((len(data) - 128) // 4)
            number = chance.choice((0, 1, 5, 9, 14, 15, 16, 255, 2**16 + 1, 2**31, 2**32 - 1))
            copy[at : at + 4] = struct.pack("<I", number)
        yield bytes(copy)


@pytest.mark.parametrize("packed", [False, True])
def test_a_file_cut_at_any_byte_is_refused_or_whole_so_far(packed, tmp_path):
    """A file ends where its last variable ends: cut between two, it is a file of fewer."""
    data = good(packed=packed)
    (tmp_path / "whole.mat").write_bytes(data)
    whole = values(tmp_path / "whole.mat")

    opened = survive(cut(data), tmp_path / "m.mat", lambda _, found: found.items() <= whole.items())

    assert opened <= 2


@pytest.mark.parametrize("packed", [False, True])
def test_hundreds_of_mutants_give_clean_errors(packed, tmp_path):
    """There is no reference: scipy 1.17 dies of a signal on some of these."""
    data = good(packed=packed)

    survive(damaged(data, 1, 300), tmp_path / "m.mat")
    survive(structured(data, 1, 700), tmp_path / "m.mat")


@pytest.mark.slow
def test_thousands_of_mutants(tmp_path):
    survive(damaged(good(packed=False), 2, MANY), tmp_path / "m.mat")
    survive(structured(good(packed=False), 2, MANY), tmp_path / "m.mat")
