"""The nouns: what crosses from one room to another.

Each is a frozen msgspec record: plain data, checked, comparable, JSON both ways.
"""

from __future__ import annotations

from math import prod
from typing import Any, Literal, TypeVar

import msgspec

from .dtypes import bits

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
# Kinds of pairs that were scanned because their bytes are not the same.
MOVED: frozenset[str] = frozenset({"changed", "recast", "within_epsilon"})

MeasureT = TypeVar("MeasureT")


class Record(msgspec.Struct, frozen=True):
    """What every plain noun can do."""

    def to_dict(self) -> dict[str, Any]:
        """Give plain maps, lists, strings and numbers."""
        return msgspec.to_builtins(self)  # type: ignore[no-any-return]


class TensorInfo(Record, frozen=True, gc=False, omit_defaults=True):
    """What a header says of one tensor: enough to pair it, nothing of its values.

    `dtype` is that of the bytes its source gives; `stored` names the encoding in the file where
    that is another one, such as the blocks of a quantised tensor.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    stored: str | None = None

    @property
    def count(self) -> int:
        """Count the elements."""
        return prod(self.shape)

    @property
    def size_bytes(self) -> int:
        """Count the bytes the encoded elements take."""
        return self.count * bits(self.dtype) // 8


class Recipe(Record, frozen=True, gc=False):
    """How a tensor comes out of a stored one, so that two layouts can be compared.

    Rows are spans (first, count) along the first dimension, in the order wanted, counted after
    the transpose where there is one.
    """

    base: str
    rows: tuple[tuple[int, int], ...] = ()
    transposed: bool = False
    add: float = 0.0


class Pair(Record, frozen=True, gc=False):
    """Two tensors that are each other's before and after; one is None where there is no partner."""

    left: TensorInfo | None
    right: TensorInfo | None
    how: str = "exact"
    transform: str | None = None
    left_recipe: Recipe | None = None
    right_recipe: Recipe | None = None

    @property
    def name(self) -> str:
        """The name people know it by: the right one, or the left where nothing is right."""
        info = self.right or self.left
        return info.name if info else ""

    @property
    def renamed(self) -> bool:
        """Is it called differently on the two sides?"""
        return bool(self.left and self.right and self.left.name != self.right.name)


class Stats(Record, frozen=True, gc=False):
    """One tensor's values: moments over the finite ones, counts of the rest; None is unknown."""

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
        """How many values are NaN or infinite."""
        return self.nan + self.positive_infinite + self.negative_infinite


class Figures(Record, frozen=True, gc=False):
    """How far a pair moved: the figures of the contract (cli.md, M); None is unknown."""

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


class Delta(Record, frozen=True):
    """One pair with what was measured of it."""

    pair: Pair
    kind: Kind
    measures: tuple[Any, ...] = ()
    skipped: str | None = None

    @property
    def name(self) -> str:
        """The name of its pair."""
        return self.pair.name

    def figures(self) -> dict[str, Any]:
        """Gather the numbers people see from every measure."""
        gathered: dict[str, Any] = {}
        for measure in self.measures:
            gathered.update(measure.figures())
        return gathered

    def stats(self, side: Literal["left", "right"]) -> Stats | None:
        """Describe one side's values; None where there is no such side or it was not measured."""
        if (self.pair.left if side == "left" else self.pair.right) is None:
            return None
        return next((each.side(side) for each in self.measures if hasattr(each, "side")), None)

    def measured(self, kind: type[MeasureT]) -> MeasureT | None:
        """Give the measure of that type, or None where it was not taken."""
        return next((measure for measure in self.measures if isinstance(measure, kind)), None)

    def __getattr__(self, figure: str) -> Any:
        """Read a figure as an attribute: `delta.relative_l2`."""
        if not figure.startswith("_"):
            figures = self.figures()
            if figure in figures:
                return figures[figure]
        raise AttributeError(f"{self.name}: no figure is called {figure!r}")


class ModelInfo(Record, frozen=True):
    """Which model one side is."""

    path: str
    format: str
    tensor_count: int
    parameter_count: int
    size_bytes: int
    dtypes: dict[str, int]


class Tensor(Record, frozen=True):
    """One tensor of one model, with its statistics where they were asked for."""

    info: TensorInfo
    stats: Stats | None = None
    sha256: str | None = None


class Inspected(Record, frozen=True):
    """One model, looked at alone."""

    model: ModelInfo
    tensors: tuple[Tensor, ...]
    metadata: dict[str, str] = {}
    warnings: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()  # objects the file names, which were not made
    aliases: dict[str, str] = {}  # names that share another tensor's storage

    @property
    def nonfinite(self) -> dict[str, int]:
        """The tensors that hold NaN or infinities, and how many."""
        found = {each.info.name: each.stats.nonfinite for each in self.tensors if each.stats}
        return {name: count for name, count in found.items() if count}


class MetadataChange(Record, frozen=True):
    """One key of the metadata that is not the same on both sides; None where it is not there."""

    key: str
    left: str | None
    right: str | None


class Threshold(Record, frozen=True):
    """A choice, not a fact: the default of a number or word that an analysis judges by."""

    value: Any
    why: str


class MetricRule(Record, frozen=True):
    """What the user says of one metric: which way is better, how much worse is still fine."""

    direction: Literal["higher", "lower"] | None = None
    margin: float | None = None
    threshold: float | None = None  # a limit in the metric's own units


class Policy(Record, frozen=True):
    """What the user set, by analysis and name; what is not set keeps its default."""

    thresholds: dict[str, dict[str, Any]] = {}
    metrics: dict[str, MetricRule] = {}
    required: tuple[str, ...] | None = None  # gates that must pass; None is the default list

    def threshold(self, analysis: str, name: str, default: Any) -> Any:
        """Give the user's threshold, or the default."""
        return self.thresholds.get(analysis, {}).get(name, default)


Severity = Literal["info", "low", "medium", "high", "critical"]


class Finding(Record, frozen=True):
    """Something worth telling, with the numbers that show it."""

    name: str
    subject: str
    text: str
    evidence: dict[str, float | None]
    severity: Severity = "info"


class Interval(Record, frozen=True):
    """How sure a number is: its interval, at which level, by which method, from how many."""

    low: float | None
    high: float | None
    level: float = 0.95
    method: str = ""
    n: int | None = None


class Missing(Record, frozen=True):
    """A field that cannot be known, and what would fill it."""

    field: str
    needs: str
    why: str


class Envelope(Record, frozen=True):
    """What one analysis answers, with where each answer comes from."""

    name: str
    status: Literal["ok", "partial", "not_enough_information", "not_applicable", "error"]
    fields: dict[str, Any]
    basis: dict[str, str] = {}
    uncertainty: dict[str, Interval | str] = {}
    missing: tuple[Missing, ...] = ()
    assumptions: tuple[str, ...] = ()
    policy: dict[str, Any] = {}
    method: str = ""
    findings: tuple[Finding, ...] = ()


class Totals(Record, frozen=True):
    """How many pairs came out as what; the distances are over the float tensors that changed."""

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


class Verdict(Record, frozen=True):
    """The answer in one word and one sentence; `differs` is what the exit code says."""

    differs: bool
    word: Literal["identical", "equal", "within_epsilon", "same_structure", "different"]
    sentence: str


class Row(Record, frozen=True):
    """One pair in a report: plain numbers only, so that a report can be kept and read back."""

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
    further: dict[str, Any] | None = None  # what measures beyond the standard one brought


class Report(Record, frozen=True):
    """All a renderer needs: the diff, judged, as plain data."""

    left: ModelInfo
    right: ModelInfo
    totals: Totals
    verdict: Verdict
    tensors: tuple[Row, ...]
    epsilon: float = 0.0
    metadata: tuple[MetadataChange, ...] = ()
    analyses: tuple[Envelope, ...] = ()
    warnings: tuple[str, ...] = ()
    evidence: dict[str, str] = {}  # what was used beside the two models, and where it came from
    schema_version: int = SCHEMA_VERSION
    difflens: str = ""


class View(Record, frozen=True):
    """How a report is to be shown: all a renderer may depend on beside the report."""

    stats: bool = False
    verbose: bool = False
    color: bool = False
    width: int = 100
    fitted: bool = False  # a terminal shows it: tables keep to the width, names are shortened
    review: bool = False  # the ten most important findings, then what was not checked
    charts: bool = False
