"""Live numbers out of a training loop: one folder per framework, each with a hook.

A hook is invisible: it is attached, it never raises into the loop, and closing it leaves nothing
behind. At each step it gives its recorder one reading; its frames finish readings later, on the
recorder's thread.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from difflens.core.record import Record

from ..records.runs import RunInfo


class Reading(Record, frozen=True, gc=False):
    """One step as the hook saw it, some of it still on its way from a device.

    Each hook adds the fields that its own frames need. A struct is made without a function of
    Python, and a collector that looks at hundreds of waiting ones would do so on the loop's time.
    """

    step: int
    wall_time: float
    monotonic_time: float


# The scalars of a step by name, and its block of (fields, layers): None if its layers are not read.
Finished = tuple[Mapping[str, float], Any]


class Frames(Protocol):
    """Finishes the readings of one hook, on the recorder's thread; None if another rank writes."""

    def make(self, reading: Any) -> Finished | None:
        """Finish one reading."""

    def make_all(self, readings: list[Any]) -> Sequence[Finished | None] | None:
        """Finish several, in their order; None if each is better finished by itself."""


class Sink(Protocol):
    """What a hook needs of the recorder that gets its readings; nothing of it blocks or raises."""

    def record(self, reading: Reading) -> None:
        """Queue the reading of a step."""

    def describe(self, info: RunInfo) -> None:
        """Say how the blocks that follow are laid out."""

    def note(self, what: str, text: str = "", **data: Any) -> None:
        """Write down something that happened: a fact about the model, a change of sampling."""

    def later(self, work: Callable[[], None]) -> None:
        """Do some work on the recorder's thread, in the order of the calls."""

    def fail(self, error: Exception) -> None:
        """Report that the hook stopped, and why: one warning, one note."""

    def refuse(self, name: str, value: object) -> None:
        """Count a scalar that is not a number, and warn once."""

    def hurry(self) -> None:
        """Ask for a look of the diagnoses now: something looks wrong."""

    def cost(self) -> float:
        """Return the seconds of processor time that recording one reading took lately."""
