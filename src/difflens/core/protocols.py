"""The contracts that cross products: an open model, its file, measures of it, and engines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol, Self, TypeVar, runtime_checkable

from .addresses import Location
from .records import Delta, GraphNode, TensorInfo

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
        """Close the files."""


# A source may have any of the five parts below; who uses one asks with `isinstance`, or, where it
# is asked for each chunk, with `hasattr`: `isinstance` of a protocol takes 30 µs.


class Encoding(Protocol):
    """One way to store the bytes of a tensor: a record, which can be sent to another process.

    It may have two more methods. `place() -> (file, offset) | None` says where its bytes are plain
    in a file, so that the kernel can read them by itself. `extents(start, stop)` yields the ranges
    of remote files that some of its bytes are read from, so that they can be fetched ahead.
    """

    def read_into(self, start: int, buffer: memoryview) -> int:
        """Fill the buffer with the plain bytes from `start` on, and return how many."""


class Extent(NamedTuple):
    """Bytes [start, stop) of a file."""

    file: ModelFile
    start: int
    stop: int


@runtime_checkable
class HasEncodings(Protocol):
    """A source that has a record of each tensor, which reads it without the source."""

    def encoding(self, name: str) -> Encoding:
        """Return how a tensor is stored."""


@runtime_checkable
class HasRefused(Protocol):
    """A source whose file names objects that were not made, such as pickled classes."""

    @property
    def refused(self) -> Sequence[str]:
        """The names of these objects."""


@runtime_checkable
class HasAliases(Protocol):
    """A source in which several names share the storage of one tensor."""

    @property
    def aliases(self) -> Mapping[str, str]:
        """The first name of the same tensor, for each further name."""


@runtime_checkable
class HasNodes(Protocol):
    """A source whose file has a graph, which shows what a tensor is used for."""

    def nodes(self) -> tuple[GraphNode, ...] | None:
        """Read the operations that consume its tensors; None if there are too many to follow."""


@runtime_checkable
class HasChecksums(Protocol):
    """A source whose file has checksums of its tensors, which reading alone does not check."""

    def verify(self) -> None:
        """Read every tensor once; raise `CorruptFile` unless its checksum is the stored one."""


class ModelFile(Protocol):
    """A file, opened once: what a source plug-in gets."""

    @property
    def path(self) -> Location:
        """Where it is: a path on this machine, or an address."""

    size: int

    def read(self, start: int, stop: int) -> bytes:
        """Return bytes [start, stop); for headers, whose size was checked before."""

    def read_into(self, start: int, buffer: memoryview) -> int:
        """Fill the buffer from byte `start` on; a file that ends early has changed."""

    def limit(self, name: str) -> int:
        """Return a limit by name (`core/limits.py`), as the user may have raised it."""

    def confirm(self) -> None:
        """Raise `ChangedWhileReading` if the file is not the one that was opened."""

    def close(self) -> None:
        """Close the file."""


class Descriptor(Protocol):
    """An open file of the operating system; it stays open while this object exists."""

    number: int


@runtime_checkable
class HasDescriptor(Protocol):
    """A `ModelFile` that lies on disk as it is, so that the kernel can read it by itself."""

    path: Path

    def hold(self) -> Descriptor:
        """Return its descriptor."""


class Opener(Protocol):
    """A source plug-in, registered with `recognise(head, path) -> bool` on the first bytes.

    The path is a `Location`: its `name` and `suffix` may be asked for, it is not opened by itself.
    """

    def __call__(self, file: ModelFile) -> TensorSource:
        """Open the file: reads its header, no tensor byte."""


class WholeMeasure(Protocol):
    """Numbers about a pair that are no sum over its parts (a spectrum); measured on request.

    It may read its tensors several times and says in its docstring how much memory it takes.
    """

    @classmethod
    def wants(cls, delta: Delta) -> bool:
        """Should this pair be measured?"""

    @classmethod
    def of(cls, left: Values | None, right: Values | None) -> Self | None:
        """Measure the pair; None if there is nothing to measure."""

    def figures(self) -> dict[str, Any]:
        """Return the numbers people see, by name."""


class Values(Protocol):
    """One tensor's numbers on demand, as arrays of float32 or float64."""

    info: TensorInfo

    def pieces(self, elements: int = ...) -> Iterator[Any]:
        """Yield its numbers in order, some at a time, flat."""

    def rows(self, elements: int = ...) -> Iterator[Any]:
        """Yield whole rows of its matrix (first dimension against all others), some at a time."""

    def some_rows(self, chosen: Sequence[int]) -> Any:
        """Return the chosen rows of its matrix."""

    def array(self) -> Any:
        """Return the whole tensor in its own shape; refuses one too large for memory."""

    def span(self, start: int, stop: int) -> Any:
        """Return elements [start, stop), flat."""


class Task(Protocol):
    """Work that says what it reads; `ahead` is how it gets the parts that it reads in turn."""

    @property
    def memory_bytes(self) -> int:
        """How much memory it takes at once."""

    def extents(self) -> Iterator[Extent]:
        """Yield the ranges of remote files that it reads."""

    def with_ahead(self, ahead: Ahead) -> Self:
        """Return the same task, which fetches its parts ahead by itself."""


class Ahead(Protocol):
    """A way through some items: each says by `extents` what will be read of remote files."""

    def __call__(
        self, items: Iterable[Item], extents: Callable[[Item], Iterable[Extent]], /
    ) -> Iterable[Item]:
        """Yield the items in order."""


TaskT = TypeVar("TaskT", bound=Task)


class Engine(Protocol):
    """Where work runs: here on threads, elsewhere on a cluster."""

    task_bytes: int  # how much a task should read, so that handing it out costs nothing
    is_here: bool  # does this process do the work?

    def map(self, work: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        """Do the work on every item and yield the results in the items' order."""

    def run(
        self, work: Callable[[TaskT], Result], tasks: Iterable[TaskT], *, remote: bool
    ) -> Iterator[Result]:
        """Do the same with tasks, which may read remote files: these are fetched ahead."""

    def close(self) -> None:
        """Drop what has not begun; the engine may be used again."""
