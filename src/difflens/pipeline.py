"""The story of a diff: open, pair, measure, analyse, judge. Read this first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from os import PathLike, fspath
from typing import Any

from . import judge
from .diffs import Diff
from .judge.conversion import verified
from .measure import Threads, deltas
from .measure.content import by_content, is_known_layout, once
from .measure.digest import digests as digest
from .measure.oddities import oddity
from .measure.structure import structure
from .measure.ties import Candidate, tied
from .measure.totals import totals
from .pairing import facts, is_prefix_rename, pair
from .pairing.filters import kept
from .pairing.ties import tie_candidates
from .protocols import TensorSource
from .records import Delta, Envelope, Inspected, MetadataChange, Pair, Report, Stats, Tensor
from .sources import open_model
from .sources.derived import derived
from .sources.describe import IN_MEMORY, describe, metadata

Model = str | PathLike[str] | Mapping[str, Any]
Progress = Callable[[int], None]


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
    progress: Progress | None = None,
) -> Diff:
    """Compare two models tensor by tensor; only headers are read until somebody looks.

    `path` keeps tensors whose name contains it, `ignore` leaves out those a regular expression
    finds a match in; `always` asks for statistics of identical tensors too.
    """
    (left_name, before), (right_name, after) = (
        _open(model, format, limits) for model in (left, right)
    )
    about = metadata(left_name, before), metadata(right_name, after)
    matched = pair(before.tensors, after.tensors, match=match, known=facts(*about))
    pairs = kept(matched, path, ignore)
    before = derived(before, ((each.left, each.left_recipe) for each in pairs))
    after = derived(after, ((each.right, each.right_recipe) for each in pairs))
    warnings = [*before.warnings, *after.warnings]
    engine = Threads(threads)
    ties = cache(lambda: tied(_twins(pairs, before, after), before, after, engine))
    lone = [each for each in matched if not (each.left and each.right) and match == "auto"]

    @cache
    def contents() -> dict[int, Delta]:
        rest = (each for each in lone if id(each) not in ties())
        return by_content(rest, before, after, engine, derived, always=always)

    def measure(chosen: Iterable[Pair]) -> Iterator[Delta]:
        chosen = list(chosen)
        alone = any(not (each.left and each.right) for each in chosen)
        known = ties() | contents() if alone else ties()
        chosen = list(once(chosen, known))
        unknown = (each for each in chosen if id(each) not in known)
        results = deltas(
            unknown, before, after, engine, epsilon=epsilon, always=always, progress=progress
        )
        try:
            for each in chosen:
                delta = known.get(id(each)) or next(results)
                warnings.extend(filter(None, [oddity(delta)]))
                yield delta
        finally:
            engine.close()
        before.confirm()
        after.confirm()

    return Diff(
        describe(left_name, before),
        describe(right_name, after),
        pairs,
        (lambda chosen: map(structure, chosen)) if shape_only else measure,
        metadata=_changes(*about),
        warnings=lambda: tuple(warnings),
        epsilon=epsilon,
    )


def report(
    diff: Diff, analyses: Iterable[Envelope] = (), *, verify_conversion: bool = False
) -> Report:
    """Judge a diff and put it down as plain data, ready to be rendered.

    `verify_conversion` asks only whether both are the same model, whatever their formats.
    """
    rows = []
    # What holds a packed model is no format of its own: "gzip" in "FORMAT in gzip".
    across = len({side.format.partition(" in ")[0] for side in (diff.left, diff.right)}) > 1

    def written() -> Iterator[Delta]:
        for delta in diff.stream():  # a million scans need not be held at once
            rows.append(judge.row(delta))
            yield delta

    def is_same(pair: Pair) -> bool:
        return is_prefix_rename(pair) or (across and is_known_layout(pair))

    judged = judge.report(diff, totals(written(), is_same), rows, analyses)
    return verified(judged) if verify_conversion else judged


def inspect(
    model: Model,
    *,
    statistics: bool = False,
    digests: bool = False,
    threads: int | None = None,
    format: str | None = None,  # noqa: A002  the word of the command line
    limits: Mapping[str, int] | None = None,
    progress: Progress | None = None,
) -> Inspected:
    """Look at one model alone: its header, and every byte where `statistics` or `digests` ask."""
    name, source = _open(model, format, limits)
    infos = [each.right for each in pair({}, source.tensors) if each.right]
    engine = Threads(threads)
    warnings = list(source.warnings)
    stats: list[Stats | None] = [None] * len(infos)
    if statistics:
        lone = (Pair(None, info) for info in infos)
        for place, each in enumerate(deltas(lone, source, source, engine, progress=progress)):
            stats[place] = each.stats("right")
            warnings.extend(filter(None, [oddity(each)]))
    prints = list(digest(infos, source, engine)) if digests else [None] * len(infos)
    engine.close()
    tensors = tuple(map(Tensor, infos, stats, prints))
    if statistics and hasattr(source, "verify"):
        source.verify()  # checksums, which reading tensors alone does not look at
    source.confirm()
    return Inspected(
        describe(name, source),
        tensors,
        metadata(name, source),
        tuple(warnings),
        tuple(getattr(source, "refused", ())),
        dict(getattr(source, "aliases", {})),
    )


def _open(
    model: Model, form: str | None, limits: Mapping[str, int] | None
) -> tuple[str, TensorSource]:
    if isinstance(model, Mapping):
        from .sources.memory import Memory

        return IN_MEMORY, Memory(model)
    return fspath(model), open_model(fspath(model), format=form, limits=limits)


def _twins(pairs: list[Pair], left: TensorSource, right: TensorSource) -> Iterator[Candidate]:
    for tie in tie_candidates(pairs, left.tensors, right.tensors):
        yield pairs[tie.index], tie.side, tie.head, tie.embedding


def _changes(left: dict[str, str], right: dict[str, str]) -> tuple[MetadataChange, ...]:
    keys = sorted(left.keys() | right.keys())
    changes = (MetadataChange(key, left.get(key), right.get(key)) for key in keys)
    return tuple(change for change in changes if change.left != change.right)
