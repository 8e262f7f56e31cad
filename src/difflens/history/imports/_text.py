"""Lines and numbers of foreign logs, read with limits."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import Any

from ...errors import RunError
from ...escape import for_terminal

LONGEST_LINE = 1 << 26  # characters


class Lines:
    """The lines of a UTF-8 text; `number` is that of the last one, `whole` whether it ended."""

    def __init__(self, path: Path) -> None:
        """Name the file; it is opened when lines are asked for."""
        self.path = path
        self.number, self.whole = 0, True

    def __iter__(self) -> Generator[str, None, None]:
        """Yield line by line, none of them longer than the limit."""
        try:
            with self.path.open(encoding="utf-8-sig", newline="") as file:
                while line := file.readline(LONGEST_LINE):
                    self.number += 1
                    if len(line) == LONGEST_LINE:
                        said = f"line {self.number} has more than {LONGEST_LINE} characters"
                        raise RunError(self.path, said)
                    self.whole = line.endswith(("\n", "\r"))
                    yield line
        except UnicodeDecodeError as error:
            raise RunError(self.path, f"line {self.number + 1} or later is not UTF-8") from error
        except OSError as error:
            raise RunError(self.path, (error.strerror or str(error)).lower()) from error


def number_of(value: Any) -> float | None:
    """Give a number, finite or not; None where it is none.

    >>> number_of("1e-3"), number_of("Infinity"), number_of("1_0"), number_of(True)
    (0.001, inf, None, None)
    """
    if isinstance(value, str):
        if "_" in value or len(value) > 400:
            return None
    elif type(value) not in (int, float):
        return None
    try:
        return float(value)
    except (ValueError, OverflowError):
        return None


def step_of(value: Any, path: Path, where: str) -> int:
    """Give a step: a whole number of 64 bits, also where it is written as 12.0."""
    if isinstance(value, str) and value.strip().lstrip("+-").isdecimal() and len(value) < 30:
        value = int(value)
    number = value if type(value) is int else number_of(value)
    if number is not None and -(2**63) <= number < 2**63 and number == int(number):
        return int(number)
    said = for_terminal(str(value), 40)
    raise RunError(path, f"{where}: the step {said!r} is no whole number of 64 bits")
