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
def read_gradients(parameters: list[Any], dtypes: list[Any], table: Any, out: Any, /) -> bool: ...
def read_weights(parameters: list[Any], versions: Any, table: Any, out: Any, /) -> bool: ...
def are_as_read(parameters: list[Any], versions: Any, /) -> bool: ...
def bytes_of(tensor: Any, dtype: Any, count: int, size: int, /) -> bytes | None: ...
