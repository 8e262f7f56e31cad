"""The records that several products share: tensors, pairs, deltas, findings, reports.

Each is a frozen msgspec struct: plain data, checked, comparable, to JSON and back.
"""

from __future__ import annotations

from math import prod
from typing import Any, ClassVar, Literal, TypeVar

import msgspec

from .dtypes import bits
from .findings import Envelope
from .record import Record, data_frame, short_repr
from .state import StatePart

SCHEMA_VERSION = 1

Kind = Literal[
    "identical",
    "within_epsilon",
    "changed",
    "recast",
    "reshaped",
    "added",
    "removed",
    "tied",
    "uncompared",
    "paired",
]
# Kinds that do not make two models different.
SAME: frozenset[str] = frozenset({"identical", "within_epsilon", "tied", "paired"})
# Kinds of pairs that were scanned because their bytes differ.
MOVED: frozenset[str] = frozenset({"changed", "recast", "within_epsilon"})

MeasureT = TypeVar("MeasureT")


class TensorInfo(Record, frozen=True, gc=False, omit_defaults=True):
    """The header of one tensor: enough to pair it, without its values.

    `dtype` is the type of the bytes that its source reads; `stored` names the encoding in the file
    if that is another one, such as the blocks of a quantised tensor.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    stored: str | None = None

    @property
    def count(self) -> int:
        """The number of elements."""
        return prod(self.shape)

    @property
    def size_bytes(self) -> int:
        """The number of bytes of the encoded elements."""
        return self.count * bits(self.dtype) // 8


class Recipe(Record, frozen=True, gc=False):
    """How to compute a tensor from a stored one, so that two layouts can be compared.

    Rows are spans (first, count) along the first dimension, in the order of the result, counted
    after the transpose if there is one.
    """

    base: str
    rows: tuple[tuple[int, int], ...] = ()
    transposed: bool = False
    add: float = 0.0
    length: int = 0  # of the first dimension, for counting rows; 0: its own length


class Pair(Record, frozen=True, gc=False):
    """A tensor before and after; one side is None if the tensor has no partner."""

    left: TensorInfo | None
    right: TensorInfo | None
    how: str = "exact"
    transform: str | None = None
    left_recipe: Recipe | None = None
    right_recipe: Recipe | None = None

    @property
    def name(self) -> str:
        """The name on the right, or the name on the left if there is no right."""
        info = self.right or self.left
        return info.name if info else ""

    @property
    def renamed(self) -> bool:
        """Does its name differ between the sides?"""
        return bool(self.left and self.right and self.left.name != self.right.name)


class Stats(Record, frozen=True, gc=False):
    """Moments of the finite values of a tensor, and counts of the others; None is unknown."""

    mean: float | None = None
    std: float | None = None
    min: float | None = None
    max: float | None = None
    mean_abs: float | None = None
    skewness: float | None = None
    kurtosis: float | None = None
    zeros: int = 0
    nan: int = 0
    positive_infinite: int = 0
    negative_infinite: int = 0

    @property
    def nonfinite(self) -> int:
        """The number of values that are NaN or infinite."""
        return self.nan + self.positive_infinite + self.negative_infinite


class _TypedFigures:
    """The figures of a pair as typed attributes; None is unknown. A mixin of `Delta`."""

    __slots__ = ()

    relative_l2: float | None  # ‖right - left‖ / ‖left‖
    symmetric_l2: float | None  # ‖right - left‖ / (‖left‖ + ‖right‖)
    cosine: float | None
    pearson: float | None
    max_abs: float | None
    max_abs_index: tuple[int, ...] | None
    mean_abs: float | None
    l2: float | None
    changed_count: int | None
    changed_fraction: float | None
    over_epsilon_count: int | None
    bit_equal_count: int | None
    sign_flips: int | None
    sqnr_db: float | None
    within_storage_rounding: bool | None
    left_nonfinite: int | None
    right_nonfinite: int | None
    transform: str | None


class Figures(Record, frozen=True, gc=False):
    """How far a pair moved, as a record; the fields are the attributes of a `Delta`."""

    relative_l2: float | None = None
    symmetric_l2: float | None = None
    cosine: float | None = None
    pearson: float | None = None
    max_abs: float | None = None
    max_abs_index: tuple[int, ...] | None = None
    mean_abs: float | None = None
    l2: float | None = None
    changed_count: int | None = None
    changed_fraction: float | None = None
    over_epsilon_count: int | None = None
    bit_equal_count: int | None = None
    sign_flips: int | None = None
    sqnr_db: float | None = None
    within_storage_rounding: bool | None = None
    left_nonfinite: int | None = None
    right_nonfinite: int | None = None
    transform: str | None = None


class Delta(Record, _TypedFigures, frozen=True):
    """One pair with its measures; every figure is an attribute, such as `delta.relative_l2`."""

    pair: Pair
    kind: Kind
    measures: tuple[Any, ...] = ()
    skipped: str | None = None

    @property
    def name(self) -> str:
        """The name of its pair."""
        return self.pair.name

    def figures(self) -> dict[str, Any]:
        """Collect the figures of all measures; empty if nothing was measured."""
        every = [measure.figures() for measure in self.measures]
        return every[0] if len(every) == 1 else {key: each[key] for each in every for key in each}

    def to_row(self) -> dict[str, Any]:
        """Return the name, the kind, both headers and all figures as plain data."""
        sides = {"left": self.pair.left, "right": self.pair.right}
        headers = {side: info.to_dict() if info else None for side, info in sides.items()}
        figures = Figures().to_dict() | msgspec.to_builtins(self._comparison())
        return {"name": self.name, "kind": self.kind, **headers, **figures, "skipped": self.skipped}

    def to_pandas(self) -> Any:
        """Return a pandas DataFrame with one row."""
        return data_frame([self.to_row()])

    def _comparison(self) -> dict[str, Any]:
        """Return the figures, or none if one side is absent: then there is nothing to compare."""
        return self.figures() if self.pair.left and self.pair.right else {}

    def stats(self, side: Literal["left", "right"]) -> Stats | None:
        """Describe the values of one side; None if it is absent or was not measured."""
        info = self.pair.left if side == "left" else self.pair.right
        sides = [measure for measure in self.measures if info and hasattr(measure, "side")]
        stats: Stats | None = sides[0].side(side) if sides else None
        return stats

    def measured(self, kind: type[MeasureT]) -> MeasureT | None:
        """Return the measure of that type; None if it was not taken."""
        measures = [measure for measure in self.measures if isinstance(measure, kind)]
        return measures[0] if measures else None

    def __repr__(self) -> str:
        """Return one line: the name, the kind and the figures that are known."""
        figures = {name: value for name, value in self._comparison().items() if value is not None}
        return short_repr(self, {"name": self.name, "kind": self.kind, **figures})

    def __dir__(self) -> list[str]:
        """List the figures too, for completion."""
        return sorted({*super().__dir__(), *self.figures(), *Figures.__struct_fields__})

    def __getattr__(self, figure: str) -> Any:
        """Look up a figure; one that was not measured is None."""
        if not figure.startswith("_"):
            figures = self._comparison()
            if figure in figures:
                return figures[figure]
            if figure in Figures.__struct_fields__:
                return self.pair.transform if figure == "transform" else None
        raise AttributeError(f"{self.name}: no figure is called {figure!r}")


class ModelInfo(Record, frozen=True):
    """The model of one side: its path, format and size; the state of its training is not in it."""

    path: str
    format: str
    tensor_count: int
    parameter_count: int
    size_bytes: int
    dtypes: dict[str, int]
    state_tensors: int = 0  # of optimizers, averages and the like, beside the weights
    state_bytes: int = 0


class Tensor(Record, frozen=True):
    """One tensor of one model, with its statistics if they were requested."""

    info: TensorInfo
    stats: Stats | None = None
    sha256: str | None = None
    is_state: bool = False  # of the training run, and no weight


class Inspected(Record, frozen=True):
    """One model by itself: its header, and statistics if they were requested."""

    table_field: ClassVar[str] = "tensors"

    model: ModelInfo
    tensors: tuple[Tensor, ...]
    metadata: dict[str, str] = {}
    warnings: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()  # objects that the file names, which were not created
    aliases: dict[str, str] = {}  # names that share the storage of another tensor
    state: tuple[StatePart, ...] = ()  # beside the weights

    @property
    def nonfinite(self) -> dict[str, int]:
        """The number of NaN and infinities in each tensor that has any."""
        counts = {each.info.name: each.stats.nonfinite for each in self.tensors if each.stats}
        return {name: count for name, count in counts.items() if count}


class MetadataChange(Record, frozen=True):
    """One key of the metadata that differs; None on a side that does not have it.

    A change of kind `config` or `tokenizer` changes what the model computes; `metadata` does not.
    """

    key: str
    left: str | None
    right: str | None
    kind: Literal["metadata", "config", "tokenizer"] = "metadata"
    text: str = ""  # the change in words, if it changes what the model computes


class Totals(Record, frozen=True):
    """The number of pairs of each kind, and how far the float tensors moved.

    `relative_l2` and its median are over the `moved` tensors; `whole_relative_l2` is over all float
    tensors that were compared, and None unless the norms of those that did not move were measured.
    """

    tensors: int = 0
    identical: int = 0
    within_epsilon: int = 0
    changed: int = 0
    recast: int = 0
    reshaped: int = 0
    added: int = 0
    removed: int = 0
    tied: int = 0
    uncompared: int = 0
    paired: int = 0
    renamed: int = 0
    renamed_beyond_prefix: int = 0
    elements: int = 0
    changed_elements: int | None = None
    relative_l2: float | None = None
    median_relative_l2: float | None = None
    moved: int = 0
    compared: int = 0  # float tensors of one shape on both sides
    whole_relative_l2: float | None = None
    estimated_error: float | None = None  # of distances, one sigma, relative; None is exact

    def __repr__(self) -> str:
        """Return one line with the numbers that are not zero."""
        return short_repr(self, {name: count for name, count in self.to_dict().items() if count})


class Verdict(Record, frozen=True):
    """The answer in one word and one sentence; `differs` decides the exit code."""

    differs: bool
    word: Literal[
        "identical",
        "equal",
        "within_epsilon",
        "same_structure",
        "different",
        "config",
        "tokenizer",
        "state",
        "nothing_to_compare",
        "cannot_tell",
    ]
    sentence: str


class Row(Record, frozen=True):
    """One pair in a report, as plain data, so that a report can be stored and read back."""

    name: str
    kind: Kind
    left: TensorInfo | None
    right: TensorInfo | None
    how: str
    transform: str | None
    skipped: str | None
    left_stats: Stats | None
    right_stats: Stats | None
    figures: Figures | None
    further: dict[str, Any] | None = None  # the figures of optional measures
    estimated_error: float | None = None  # of its distances; see `Totals`


class Report(Record, frozen=True):
    """Everything that a renderer needs: the diff and its verdict as plain data."""

    table_field: ClassVar[str] = "tensors"

    left: ModelInfo
    right: ModelInfo
    totals: Totals
    verdict: Verdict
    tensors: tuple[Row, ...]
    epsilon: float = 0.0
    metadata: tuple[MetadataChange, ...] = ()
    analyses: tuple[Envelope, ...] = ()
    warnings: tuple[str, ...] = ()
    evidence: dict[str, str] = {}  # what was used beside the two models, and its origin
    state: tuple[StatePart, ...] = ()  # beside the weights: optimizers, schedulers, averages
    schema_version: int = SCHEMA_VERSION
    difflens: str = ""


class View(Record, frozen=True):
    """How to show a report: everything that a renderer may depend on beside the report."""

    stats: bool = False
    verbose: bool = False
    color: bool = False
    width: int = 100
    fitted: bool = False  # to the width of a terminal: names are shortened
    review: bool = False  # the ten most important findings, then what was not checked
    charts: bool = False


class GraphNode(Record, frozen=True, gc=False):
    """One operation of a graph: its inputs and outputs, and the module it was traced in."""

    operator: str
    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    integers: dict[str, tuple[int, ...]] = {}  # its integer attributes
    module: str = ""  # the path of the module, if the file states it
    kind: str = ""  # the class of that module
