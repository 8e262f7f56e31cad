from typing import Any

NAME: str

def scan(
    left: bytes | bytearray | memoryview,
    right: bytes | bytearray | memoryview,
    left_dtype: str,
    right_dtype: str,
    epsilon: float,
    state: bytearray,
    /,
) -> None: ...
def scan_files(
    left: tuple[int, int, str],
    right: tuple[int, int, str],
    count: int,
    epsilon: float,
    looking: bool,
    state: bytearray,
    /,
) -> bool: ...
def merge(state: bytearray, later: bytes | bytearray | memoryview, /) -> None: ...
def same_bytes(
    left: bytes | bytearray | memoryview, right: bytes | bytearray | memoryview, /
) -> bool: ...
def read(table: Any, out: Any, /) -> None: ...
