# The compiled codec; `reference.py` has the same names.

from typing import TypeAlias

Kind: TypeAlias = tuple[int, int, int]
Buffer: TypeAlias = bytes | bytearray | memoryview

NAME: str

def encode(base: Buffer | None, target: Buffer, kind: Kind, back: int, /) -> bytes: ...
def decode(
    data: Buffer, base: Buffer | None, out: Buffer, kind: Kind, backwards: bool, /
) -> None: ...
def scale(
    base: Buffer,
    out: Buffer,
    kinds: tuple[Kind, Kind],
    factor: tuple[float, int],
    backwards: bool,
    /,
) -> None: ...
def add_product(
    base: Buffer,
    out: Buffer,
    kind: Kind,
    place: tuple[int, int, bool],
    factors: tuple[Buffer, Buffer],
    /,
) -> None: ...
def crc32c(data: Buffer, before: int = ..., /) -> int: ...
