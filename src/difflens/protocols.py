"""The contracts: all that a plug-in must promise, on one page."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar, runtime_checkable

from .diffs import Diff
from .evidences import Evidence, Past
from .records import Delta, Envelope, Finding, Policy, Report, TensorInfo, View

if TYPE_CHECKING:  # a store is not always asked for
    from .kept import Kept
    from .snapshots import ModelSnapshot, SnapshotLine

Item = TypeVar("Item")
Result = TypeVar("Result")
KeptT = TypeVar("KeptT", bound="Kept")


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


class Store(Protocol):
    """Snapshots by name and version, and the results made of them; several threads may use it.

    What `put` returned for is on disk. Nothing is dropped unless it is asked for.
    """

    where: str  # what it is called in words to people: never with a password
    warnings: list[str]

    def put(self, record: Kept, *, replace: bool = False) -> str:
        """Keep a snapshot or a result and give its key.

        A snapshot whose NAME@VERSION is taken by another one is refused, or with `replace`
        stands in its place, the former one behind it.
        """

    def put_all(self, records: Iterable[Kept], *, replace: bool = False) -> list[str]:
        """Keep all of them or none."""

    def get(self, key: str) -> ModelSnapshot:
        """Give a snapshot by NAME@VERSION, or the newest of NAME; `UnknownModel` if none is."""

    def find(
        self, name: str | None = None, *, limit: int = 50, after: int | None = None
    ) -> tuple[SnapshotLine, ...]:
        """List snapshots, the last recorded first; `after` is the position the last page ended."""

    def drop(self, key: str) -> tuple[str, ...]:
        """Remove NAME@VERSION, or every version of NAME, and say which were."""

    def keep(
        self, newest: int, *, name: str | None = None, pinned: Iterable[str] = ()
    ) -> tuple[str, ...]:
        """Remove all but the newest versions of each name, or of that name, and say which were."""

    def names(self, *, limit: int = 100, after: str = "") -> tuple[str, ...]:
        """List the names of models, in alphabetical order."""

    def metrics(self, name: str | None = None) -> tuple[str, ...]:
        """List the metrics that snapshots have, in alphabetical order."""

    def history(self, name: str, metric: str, *, limit: int = 1000) -> tuple[Past, ...]:
        """Give the newest values of a metric over the versions of a model, oldest first."""

    def best(self, metric: str, *, highest: bool, limit: int = 1) -> tuple[tuple[str, float], ...]:
        """Give the keys with the best values of a metric, and the values; first recorded first."""

    def results(
        self, kind: type[KeptT], *, limit: int = 5, after: int | None = None
    ) -> tuple[KeptT, ...]:
        """Give the last results of a kind, the newest first; `after` that many."""

    def count(self, kind: type[Kept]) -> int:
        """Count the snapshots or the results of a kind."""

    def close(self) -> None:
        """Give the connections back."""
