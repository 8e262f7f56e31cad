# The compiled sketch; `reference.py` has the same names.

from typing import TypeAlias

Buffer: TypeAlias = bytes | bytearray | memoryview

NAME: str

def add(data: Buffer, form: str, row: int, table: Buffer, sums: bytearray, /) -> None: ...
