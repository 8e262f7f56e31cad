"""The contracts: all that a plug-in must promise, on one page."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, Self, TypeVar, runtime_checkable

from .diffs import Diff
from .evidences import Evidence
from .records import Delta, Envelope, Finding, Policy, Report, TensorInfo, View

Item = TypeVar("Item")
Result = TypeVar("Result")


@runtime_checkable
class TensorSource(Protocol):
    """An open model: names first, bytes on demand."""

    warnings: list[str]

    @property
    def format(self) -> str:
        """The name of the format."""

    @property
    def tensors(self) -> Mapping[str, TensorInfo]:
        """What the header says of each tensor, by name."""

    @property
    def metadata(self) -> Mapping[str, str]:
        """What the file says beside its tensors."""

    def read_into(self, name: str, start: int, stop: int, buffer: memoryview) -> int:
        """Fill the buffer with bytes [start, stop) of the tensor and say how many.

        C order, little-endian, still encoded. The caller owns the buffer; nothing ever holds a
        whole tensor. Several threads may call at once.
        """

    def confirm(self) -> None:
        """Raise `ChangedWhileReading` if the files are not the ones that were opened."""

    def close(self) -> None:
        """Give the descriptors back."""


# A source may also have `place(name) -> (file, offset) | None`, where a tensor lies as plain bytes
# in a file that has `hold() -> object with number`, so that the kernel can read by itself;
# `refused: list[str]`, the objects in the file that were named and not
# made (pickled classes), and `aliases: dict[str, str]`, names that share another tensor's storage.


class ModelFile(Protocol):
    """A file on disk, opened once: what a source plug-in is handed."""

    path: Path
    size: int

    def read(self, start: int, stop: int) -> bytes:
        """Give bytes [start, stop); for headers, whose size was checked before."""

    def read_into(self, start: int, buffer: memoryview) -> int:
        """Fill the buffer from byte `start` on; a file that ends early has changed."""

    def limit(self, name: str) -> int:
        """Give a limit of `sources.limits` by name, as the user may have raised it."""

    def confirm(self) -> None:
        """Raise `ChangedWhileReading` if the file is not the one that was opened."""

    def close(self) -> None:
        """Give the descriptor back."""


class Opener(Protocol):
    """A source plug-in, registered with `recognise(head, path) -> bool` on the first bytes."""

    def __call__(self, file: ModelFile) -> TensorSource:
        """Open the file: reads its header, no tensor byte."""


class Measure(Protocol):
    """Numbers about a pair that add up: chunks, shards and threads are all the same code."""

    def __add__(self, other: Self) -> Self:
        """Merge with the measure of the elements that follow."""

    def figures(self) -> dict[str, Any]:
        """Give the numbers people see, by name."""

    # A measure may also have `side(name) -> Stats`, which describes "left" or "right" alone.


class WholeMeasure(Protocol):
    """Numbers about a pair that no sum of parts gives (a spectrum); taken only when asked for.

    It may read its tensors several times and says in its docstring how much memory it takes.
    """

    @classmethod
    def wants(cls, delta: Delta) -> bool:
        """Is it to be taken of this pair?"""

    @classmethod
    def of(cls, left: Values | None, right: Values | None) -> Self | None:
        """Take it; None where there is nothing to say after all."""

    def figures(self) -> dict[str, Any]:
        """Give the numbers people see, by name."""


class Values(Protocol):
    """One tensor's numbers on demand, as arrays of float32 or float64."""

    info: TensorInfo

    def pieces(self, elements: int = ...) -> Iterator[Any]:
        """Yield its numbers in order, some at a time, flat."""

    def rows(self, elements: int = ...) -> Iterator[Any]:
        """Yield whole rows of its matrix (first dimension against all others), some at a time."""

    def some_rows(self, chosen: Sequence[int]) -> Any:
        """Give the chosen rows of its matrix."""

    def array(self) -> Any:
        """Give the whole tensor in its own shape; refuses one too large for memory."""

    def span(self, start: int, stop: int) -> Any:
        """Give elements [start, stop), flat."""


Analysis = Callable[[Diff, Evidence, Policy], Envelope | Iterable[Finding]]
Renderer = Callable[[Report, View], str]


class Engine(Protocol):
    """Where work runs: here on threads, elsewhere on a cluster."""

    def map(self, work: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        """Do the work on every item and yield the results in the items' order."""
