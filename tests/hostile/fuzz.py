"""A seeded mutator of model files: flips, cuts, repeats, and numbers where headers keep them."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator

_NUMBERS = (0, 1, -1, 2**31, 2**32, 2**53, 2**63 - 1, 2**63, 2**64 - 1, 10**30)
_TOKENS = (b"{", b"}", b"[", b"]", b'"', b",", b":", b"null", b"true", b"NaN", b"1e9", b"\\ud800",
           b"\x00", b"\xff", b'"F32"', b'"__metadata__"', b"-1", b"   ")  # fmt: skip


def mutants(good: bytes, seed: int, count: int) -> Iterator[bytes]:
    """Yield damaged copies, the same ones for the same seed."""
    chance = random.Random(seed)
    for _ in range(count):
        data = bytearray(good)
        for _ in range(chance.choice((1, 1, 1, 2, 3, 8))):
            data = chance.choice(_WAYS)(data, chance)
        yield bytes(data)


def _flip(data: bytearray, chance: random.Random) -> bytearray:
    if data:
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    return data


def _set(data: bytearray, chance: random.Random) -> bytearray:
    if data:
        data[chance.randrange(len(data))] = chance.choice((0, 1, 0x7F, 0x80, 0xFF, 0x22, 0x7B))
    return data


def _cut(data: bytearray, chance: random.Random) -> bytearray:
    begin, end = sorted(chance.randrange(len(data) + 1) for _ in range(2))
    del data[begin : chance.choice((end, min(begin + 8, len(data)), len(data)))]
    return data


def _repeat(data: bytearray, chance: random.Random) -> bytearray:
    begin, end = sorted(chance.randrange(len(data) + 1) for _ in range(2))
    data[begin:begin] = data[begin : min(end, begin + 200)]
    return data


def _token(data: bytearray, chance: random.Random) -> bytearray:
    at = chance.randrange(len(data) + 1)
    data[at : at + chance.choice((0, 1, 4))] = chance.choice(_TOKENS)
    return data


def _number(data: bytearray, chance: random.Random) -> bytearray:
    found = list(re.finditer(rb"[0-9]+", bytes(data)))
    if found:
        place = chance.choice(found)
        data[place.start() : place.end()] = str(chance.choice(_NUMBERS)).encode()
    return data


def _length(data: bytearray, chance: random.Random) -> bytearray:
    """Change the header's length by little, or altogether."""
    old = int.from_bytes(data[:8], "little")
    new = chance.choice((old + chance.randint(-9, 9), *_NUMBERS)) & (2**64 - 1)
    data[:8] = new.to_bytes(8, "little")
    return data


_WAYS = (_flip, _flip, _set, _cut, _repeat, _token, _number, _number, _length)
