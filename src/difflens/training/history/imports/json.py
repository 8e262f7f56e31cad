"""JSON: what `export --to json` wrote, read as it streams; nothing of the run is lost.

    {"schema_version":1,"info":{…},
    "frames":[
    {…},                                 a frame per line
    {…}
    ],
    "notes":[…],"damage":[…],"tail_bytes":0}

Read line by line, as it was written: a run may be larger than memory, and no line may be longer
than what the info promises. A file that another program laid out anew is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NoReturn, TypeVar

import msgspec
import numpy as np

from difflens.core.errors import RunError
from difflens.core.escape import for_terminal

from ...records.runs import Note, RunInfo
from ..foreign import Lines
from ..format import LARGEST_INFO, MOST_OBJECTS, info_of
from ..frame import MISSING, MISSING_SCALAR, Frame, is_any_recorded
from . import importer

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .. import FrameSource

_SCHEMA = 1
_HEAD = re.compile(r'\{"schema_version":(\d{1,9}),"info":')
_HINT = "only what `difflens export --to json` wrote can be read, line for line"
# The most characters of a frame: its own words, a number, and a letter of a name, escaped.
_FRAME, _NUMBER, _LETTER = 400, 32, 12

_Number = float | Literal["NaN", "Infinity", "-Infinity"] | None
_Any = TypeVar("_Any")


class _Frame(msgspec.Struct, forbid_unknown_fields=True):
    """One line of the frames."""

    sequence: int
    step: int
    wall_time: _Number
    monotonic_time: _Number
    scalars: dict[str, _Number]
    layers: dict[str, list[_Number]]


class _Rest(msgspec.Struct, forbid_unknown_fields=True):
    """What stands behind the frames."""

    notes: list[Note]
    damage: list[str]
    tail_bytes: int


def _recognise(_path: Path, head: bytes) -> bool:
    """Does it begin as an exported run does?"""
    return _HEAD.match(head[:64].decode("utf-8", "replace")) is not None


@importer(recognise=_recognise)
def json(path: Path) -> FrameSource:
    """JSON of `difflens export --to json`."""
    return _Exported(path)


class _Exported:
    """The run in the file; what stands behind the frames is known when they were read."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.notes: list[Note] = []
        self.damage: list[str] = []
        self.tail_bytes = 0
        self._lines = Lines(path)
        self._texts = self._lines.__iter__()
        self._frame, self._rest = map(msgspec.json.Decoder, (_Frame, _Rest))
        self.info = self._head()
        names = [*self.info.scalars, *self.info.fields]
        numbers = len(self.info.scalars) + len(self.info.fields) * (len(self.info.layers) + 1)
        self._longest = _FRAME + _NUMBER * numbers + _LETTER * sum(map(len, names))
        self._is_last = self._ended = False

    def _head(self) -> RunInfo:
        line = self._line()
        match = _HEAD.match(line)
        if match is None or not line.endswith(","):
            self._refuse("an info is wanted")
        if int(match[1]) != _SCHEMA:
            self._refuse(f"schema_version {match[1]}, {_SCHEMA} can be read")
        payload = line[match.end() : -1].encode()
        info = info_of(memoryview(payload))
        if info is None:
            self._refuse(f"an info of {len(payload)} bytes that lays out no run")
        if self._line() != '"frames":[':
            self._refuse('"frames":[ is wanted')
        return info

    def layout(self) -> RunInfo:
        """Return what all frames hold together."""
        return self.info

    def frames(self) -> Iterator[Frame]:
        """Yield a frame per line, then read what stands behind them."""
        while not self._ended and (line := self._line()) != "],":
            if self._is_last:
                self._refuse("the frame before it should have been the last one")
            if len(line) > self._longest:
                self._refuse(f"{len(line)} characters, a frame has at most {self._longest}")
            self._is_last = not line.endswith(",")
            yield self._one(self._decoded(self._frame, line.removesuffix(",")))
        if not self._ended:
            self._end()

    def _one(self, found: _Frame) -> Frame:
        if not (0 <= found.sequence < 2**64 and -(2**63) <= found.step < 2**63):
            self._refuse("its sequence or its step does not fit into 64 bits")
        if tuple(found.scalars) != self.info.scalars or tuple(found.layers) != self.info.fields:
            self._refuse("its names are not those of the info")
        layers = len(self.info.layers)
        for field, values in found.layers.items():
            if len(values) != layers:
                reason = f"{len(values)} values of {for_terminal(field, 40)!r} for {layers} layers"
                self._refuse(reason)
        times = _numbers((found.wall_time, found.monotonic_time)).tolist()
        block = np.empty((len(found.layers), layers), np.float32)
        for row, values in zip(block, found.layers.values(), strict=True):
            with np.errstate(over="ignore"):  # beyond float32 is infinite there
                row[:] = _numbers(values)
            row[[value is None for value in values]] = MISSING
        scalars = _numbers([*found.scalars.values()])
        read = self.info.schema < 2 or is_any_recorded(block)
        return Frame(found.sequence, found.step, times[0], times[1], scalars, block, read)

    def _end(self) -> None:
        line = self._line()
        if len(line) > LARGEST_INFO or line.count("{") + line.count("[") > MOST_OBJECTS:
            self._refuse("notes and damage are too large")
        rest = self._decoded(self._rest, "{" + line)
        if rest.tail_bytes < 0:
            self._refuse(f"tail_bytes {rest.tail_bytes}")
        if any(each.strip() for each in self._texts):
            self._refuse("the run ended before it")
        self.notes, self.damage, self.tail_bytes = rest.notes, rest.damage, rest.tail_bytes
        self._ended = True

    def _line(self) -> str:
        line = next(self._texts, None)
        if line is None:
            raise RunError(self.path, f"it ends after line {self._lines.number}, within the run")
        return line.rstrip("\r\n")

    def _decoded(self, decoder: msgspec.json.Decoder[_Any], line: str) -> _Any:
        try:
            return decoder.decode(line)
        except (msgspec.MsgspecError, RecursionError, UnicodeError) as error:
            reason = "too deep" if isinstance(error, RecursionError) else str(error)
            self._refuse(for_terminal(reason, 200), error)

    def _refuse(self, reason: str, cause: Exception | None = None) -> NoReturn:
        where = f"line {self._lines.number}"
        raise RunError(self.path, f"{where}: {reason}", hint=_HINT) from cause

    def close(self) -> None:
        """Close the file, however far it was read."""
        self._texts.close()


def _numbers(values: Sequence[Any]) -> NDArray[np.float64]:
    """Return numbers and words as numbers; null is what was not recorded."""
    numbers = np.array(values, np.float64)  # reads the three words by itself
    numbers[[value is None for value in values]] = MISSING_SCALAR
    return numbers
