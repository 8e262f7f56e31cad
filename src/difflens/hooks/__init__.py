"""Live numbers out of a training loop: one file a framework, each handing readings to a sink.

A hook is invisible: it is attached, it never raises into the loop, and leaving it leaves nothing
behind. What becomes of its readings is the sink's affair, which is handed in.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from ..records import Record
from ..runs import RunInfo

# What a loop may hand in as a number: one, or a promise of one that a device still computes.
Value = Any


class Reading(Record, frozen=True, gc=False):
    """One step as the hook saw it, some of it still on its way from a device.

    `finish` is called once, on the sink's own thread, and gives scalars by name and the block of
    (fields, layers), or None where another rank writes. In its place a reading may bring what is
    `raw`, and the maker of frames that takes many of them at once.
    """

    step: int
    wall_time: float
    monotonic_time: float
    finish: Callable[[], tuple[Mapping[str, float], Any] | None] | None
    raw: Any = None
    maker: Maker | None = None


class Maker(Protocol):
    """Makes frames of what is raw."""

    def make(self, raw: Any) -> tuple[Mapping[str, float], Any] | None:
        """Make one."""

    def make_all(self, raws: list[Any]) -> Sequence[tuple[Mapping[str, float], Any] | None]:
        """Make many, in their order."""


class Sink(Protocol):
    """What a hook needs of the one who keeps its readings; nothing of it blocks or raises."""

    def take(self, reading: Reading) -> None:
        """Take a step."""

    def describe(self, info: RunInfo) -> None:
        """Say how the blocks that follow are laid out."""

    def note(self, what: str, text: str = "", **data: Any) -> None:
        """Write down something that happened; a fact about the model, a change of sampling."""

    def later(self, work: Callable[[], None]) -> None:
        """Do some work on the sink's own thread, in the order of what was handed in."""

    def fail(self, error: Exception) -> None:
        """Learn that a hook went quiet, and why: one warning, one note."""

    def refuse(self, scalars: int) -> None:
        """Count scalars that were no numbers."""

    def cost(self) -> float:
        """Give the seconds of processor time that keeping one reading takes, of late."""
