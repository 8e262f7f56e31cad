"""The story of a diff: open, pair, measure, analyse, judge. Read this first."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from os import PathLike, fspath
from typing import Any

from . import __version__
from .errors import DifflensError
from .judge import verdict
from .measure import Scan, Threads, deltas
from .measure.totals import totals
from .pairing import is_prefix_rename, pair
from .pairing.ties import tie_candidates
from .protocols import TensorSource
from .records import (
    Delta,
    Diff,
    Envelope,
    MetadataChange,
    ModelInfo,
    Pair,
    Report,
    Row,
    TensorInfo,
)
from .sources import open_model
from .sources.beside import beside

Model = str | PathLike[str] | Mapping[str, Any]


def diff(
    left: Model,
    right: Model,
    *,
    match: str = "auto",
    epsilon: float = 0.0,
    path: str | None = None,
    ignore: str | None = None,
    threads: int | None = None,
    format: str | None = None,  # noqa: A002  the word of the command line
    limits: Mapping[str, int] | None = None,
    shape_only: bool = False,
    always: bool = False,
    progress: Callable[[int], None] | None = None,
) -> Diff:
    """Compare two models tensor by tensor; only headers are read until somebody looks.

    `path` keeps tensors whose name contains it, `ignore` leaves out those a regular expression
    finds a match in; `always` asks for statistics of identical tensors too.
    """
    before, after = _open(left, format, limits), _open(right, format, limits)
    pairs = _kept(pair(before.tensors, after.tensors, match=match), path, ignore)
    warnings = [*before.warnings, *after.warnings]
    engine = Threads(threads)

    ties = cache(lambda: _ties(pairs, before, after, engine))

    def measure(chosen: Iterable[Pair]) -> Iterator[Delta]:
        if shape_only:
            yield from map(_structure, chosen)
            return
        chosen, tied = list(chosen), ties()
        measured = (each for each in chosen if id(each) not in tied)
        results = deltas(
            measured, before, after, engine, epsilon=epsilon, always=always, progress=progress
        )
        try:
            for each in chosen:
                yield tied.get(id(each)) or _watched(next(results), warnings)
        finally:
            engine.close()
        before.confirm()
        after.confirm()

    return Diff(
        _model(left, before),
        _model(right, after),
        pairs,
        measure,
        metadata=_metadata_changes(_metadata(left, before), _metadata(right, after)),
        warnings=lambda: tuple(warnings),
        epsilon=epsilon,
    )


def report(diff: Diff, analyses: Iterable[Envelope] = ()) -> Report:
    """Judge a diff and put it down as plain data, ready to be rendered."""
    counted = totals(diff.deltas, is_prefix_rename)
    judged = verdict(counted, metadata_changes=len(diff.metadata), epsilon=diff.epsilon)
    return Report(
        left=diff.left,
        right=diff.right,
        totals=counted,
        verdict=judged,
        tensors=tuple(map(_row, diff.deltas)),
        epsilon=diff.epsilon,
        metadata=diff.metadata,
        analyses=tuple(analyses),
        warnings=diff.warnings,
        difflens=__version__,
    )


def _open(model: Model, form: str | None, limits: Mapping[str, int] | None) -> TensorSource:
    if isinstance(model, Mapping):
        from .sources.memory import Memory

        return Memory(model)
    return open_model(fspath(model), format=form, limits=limits)


def _kept(pairs: list[Pair], path: str | None, ignore: str | None) -> list[Pair]:
    """Keep the pairs the user asked for; either side's name counts."""
    if path is None and ignore is None:
        return pairs
    wanted = re.sub(r"^tensors?\.", "", path or "")
    try:
        unwanted = re.compile(ignore) if ignore else None
    except re.error as error:
        raise DifflensError(f"{ignore!r} is no regular expression: {error}") from error

    def keeps(each: Pair) -> bool:
        names = [info.name for info in (each.left, each.right) if info]
        found = any(wanted in name for name in names)
        return found and not (unwanted and any(map(unwanted.search, names)))

    return [each for each in pairs if keeps(each)]


def _structure(pair: Pair) -> Delta:
    """What headers alone say of a pair."""
    left, right = pair.left, pair.right
    if left is None or right is None:
        return Delta(pair, "removed" if left else "added")
    if left.shape != right.shape:
        return Delta(pair, "reshaped")
    return Delta(pair, "paired" if left.dtype == right.dtype else "recast")


def _ties(
    pairs: list[Pair], left: TensorSource, right: TensorSource, engine: Threads
) -> dict[int, Delta]:
    """Find lone tensors that are stored once more on their own side: tied, not added or removed."""
    tied: dict[int, Delta] = {}
    for tie in tie_candidates(pairs, left.tensors, right.tensors):
        source = left if tie.side == "left" else right
        twins = Pair(tie.embedding, tie.head)
        if next(deltas([twins], source, source, engine)).kind == "identical":
            lone = pairs[tie.index]
            note = Pair(lone.left, lone.right, how=f"tied to {tie.embedding.name}")
            tied.setdefault(id(lone), Delta(note, "tied"))
    return tied


def _watched(delta: Delta, warnings: list[str]) -> Delta:
    """Say what was odd about the values, once for each tensor."""
    scan = delta.measured(Scan)
    odd = scan.left_odd + scan.right_odd if scan else 0
    if odd:
        warnings.append(f"{delta.name}: {odd} BOOL bytes are neither 0 nor 1, and count as true")
    return delta


def _model(model: Model, source: TensorSource) -> ModelInfo:
    infos = source.tensors.values()
    return ModelInfo(
        path="(in memory)" if isinstance(model, Mapping) else fspath(model),
        format=source.format,
        tensor_count=len(source.tensors),
        parameter_count=sum(info.count for info in infos),
        size_bytes=sum(info.size_bytes for info in infos),
        dtypes=dict(sorted(Counter(info.dtype for info in infos).items())),
    )


def _metadata(model: Model, source: TensorSource) -> dict[str, str]:
    files = {} if isinstance(model, Mapping) else beside(fspath(model))
    return {**source.metadata, **files}


def _metadata_changes(left: dict[str, str], right: dict[str, str]) -> tuple[MetadataChange, ...]:
    keys = sorted(left.keys() | right.keys())
    changes = (MetadataChange(key, left.get(key), right.get(key)) for key in keys)
    return tuple(change for change in changes if change.left != change.right)


def _row(delta: Delta) -> Row:
    scan = delta.measured(Scan)
    pair = delta.pair
    return Row(
        name=delta.name,
        kind=delta.kind,
        left=pair.left,
        right=pair.right,
        how=pair.how,
        transform=pair.transform,
        skipped=delta.skipped,
        left_stats=_stats(pair.left, scan, "left"),
        right_stats=_stats(pair.right, scan, "left" if pair.left is None else "right"),
        figures=delta.figures() if scan and pair.left and pair.right else None,
    )


def _stats(info: TensorInfo | None, scan: Scan | None, side: str) -> dict[str, Any] | None:
    """Describe one side; a lone tensor was scanned against itself, so its left side is it."""
    if info is None or scan is None:
        return None
    known = scan.side(side)
    shape = {"shape": list(info.shape), "dtype": info.dtype, "total_params": info.count}
    return {**dict(list(known.items())[:4]), **shape, **dict(list(known.items())[4:])}
