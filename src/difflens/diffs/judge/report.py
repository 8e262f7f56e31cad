"""Puts a measured diff down as plain data: its rows, its totals, its verdict."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Mapping
from math import isfinite, sqrt
from typing import TYPE_CHECKING, Any

from difflens import __version__
from difflens.core.dtypes import FLOATS
from difflens.core.findings import Envelope
from difflens.core.records import Delta, Figures, ModelInfo, Pair, Report, Row, Totals
from difflens.measure.scan import Scan
from difflens.measure.sketch.estimate import Estimate

from ..pairing import is_prefix_rename
from ..pairing.how import BY_NAME, GRAPH, is_known_layout
from ..state_text import state_sentence
from .verdict import function_changes, verdict

if TYPE_CHECKING:
    from ..diff import Diff


_FIGURES = frozenset(Figures.__struct_fields__)
# Kinds of pairs whose numbers were compared one by one.
_COMPARED = frozenset({"identical", "within_epsilon", "changed", "recast", "tied"})


class Tally:
    """Counts deltas by kind, and sums up how far the float tensors moved, one delta at a time."""

    def __init__(self, left: ModelInfo, right: ModelInfo) -> None:
        """Begin at zero; between two formats more renames are expected than within one."""
        # What holds a packed model is no format of its own: "gzip" in "FORMAT in gzip".
        self._across = left.format.partition(" in ")[0] != right.format.partition(" in ")[0]
        self._kinds: Counter[str] = Counter()
        self._renamed = self._unexpected = self._elements = self._changed_elements = 0
        self._moved_tensors = self._compared = self._unmeasured = 0
        self._moved = self._size = self._whole_size = 0.0
        self._distances = array("d")  # of a million tensors, a list takes 32 MB
        self._error: float | None = None

    def add(self, delta: Delta) -> None:
        """Count one delta."""
        pair = delta.pair
        info = pair.right or pair.left
        self._kinds[delta.kind] += 1
        self._elements += info.count if info else 0
        if pair.renamed and delta.kind != "tied":
            self._renamed += 1
            self._unexpected += not self._is_expected(pair)
        if not (pair.left and pair.right):
            return
        scan = delta.measured(Scan) or delta.measured(Estimate)
        if pair.left.dtype in FLOATS and delta.kind in _COMPARED:
            self._compared += 1
            self._unmeasured += scan is None or not scan.count
            self._whole_size += scan.left_square_sum if scan else 0.0
        if isinstance(scan, Estimate):
            self._add_estimate(pair, delta, scan)
            return
        if scan is None:
            return
        self._changed_elements += scan.changed
        moved = scan.changed and delta.kind != "within_epsilon"
        if moved and pair.left.dtype in FLOATS:
            self._moved_tensors += 1
            self._moved += scan.square_sum
            self._size += scan.left_square_sum
            if scan.relative_l2 is not None:
                self._distances.append(scan.relative_l2)

    def _add_estimate(self, pair: Pair, delta: Delta, measure: Estimate) -> None:
        """Count what moved by an estimate; how many of its elements did is not known."""
        if delta.kind == "identical" or pair.left is None:
            return
        self._error = max(self._error or 0.0, measure.estimated_error or 0.0)
        self._unmeasured += measure.is_unknown
        if pair.left.dtype in FLOATS and measure.l2 is not None:
            self._moved_tensors += 1
            self._moved += measure.square_sum
            self._size += measure.left_square_sum
            if measure.relative_l2 is not None:
                self._distances.append(measure.relative_l2)

    def _is_expected(self, pair: Pair) -> bool:
        """Is the other name that of a wrapper, a framework or a format, and so no difference?"""
        is_expected = is_prefix_rename(pair) or pair.how in (BY_NAME, GRAPH)
        return is_expected or (self._across and is_known_layout(pair))

    def totals(self) -> Totals:
        """Return what was counted so far."""
        kinds, moved = self._kinds, self._moved
        is_estimated = self._error is not None
        is_measured = self._compared and not self._unmeasured
        return Totals(
            tensors=sum(kinds.values()),
            **{kind: kinds[kind] for kind in Totals.__struct_fields__ if kind in kinds},
            renamed=self._renamed,
            renamed_beyond_prefix=self._unexpected,
            elements=self._elements,
            changed_elements=None if kinds["paired"] or is_estimated else self._changed_elements,
            relative_l2=_relative(moved, self._size),
            median_relative_l2=_median(self._distances),
            moved=self._moved_tensors,
            compared=self._compared,
            whole_relative_l2=_relative(moved, self._whole_size) if is_measured else None,
            estimated_error=self._error,
        )


def _relative(moved: float, size: float) -> float | None:
    return sqrt(moved / size) if size > 0 and isfinite(moved / size) else None


def _median(values: Iterable[float]) -> float | None:
    """Return the middle one; the standard library's `statistics` takes 5 ms to import."""
    ordered = sorted(values)
    last = len(ordered) - 1
    return (ordered[last // 2] + ordered[(last + 1) // 2]) / 2 if ordered else None


def row(delta: Delta, extra_measures: Iterable[Any] = ()) -> Row:
    """Write one delta down as plain numbers, with those of measures beyond the standard pass."""
    pair = delta.pair
    figures = delta.figures() if pair.left and pair.right else {}
    for measure in extra_measures:
        figures.update(measure.figures())
    error = figures.pop("estimated_error", None)
    further = {}
    if not figures.keys() <= _FIGURES:
        further = {key: figures.pop(key) for key in list(figures) if key not in _FIGURES}
    return Row(
        name=delta.name,
        kind=delta.kind,
        left=pair.left,
        right=pair.right,
        how=pair.how,
        transform=pair.transform,
        skipped=delta.skipped,
        left_stats=delta.stats("left"),
        right_stats=delta.stats("right"),
        figures=Figures(**figures) if figures else None,
        estimated_error=error,
        further=further or None,
    )


def judge(
    diff: Diff,
    totals: Totals,
    rows: tuple[Row, ...],
    analyses: Iterable[Envelope] = (),
    evidence: Mapping[str, str] | None = None,
) -> Report:
    """Judge the totals, and put everything together."""
    state = diff.state
    return Report(
        left=diff.left,
        right=diff.right,
        totals=totals,
        verdict=verdict(
            totals,
            metadata_changes=len(diff.metadata),
            epsilon=diff.epsilon,
            function=function_changes(diff.metadata),
            state=state_sentence(state),
        ),
        tensors=rows,
        epsilon=diff.epsilon,
        metadata=diff.metadata,
        analyses=tuple(analyses),
        warnings=diff.warnings,
        evidence=dict(evidence or {}),
        state=state,
        difflens=__version__,
    )
