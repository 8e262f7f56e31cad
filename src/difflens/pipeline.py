"""The story of a diff: open, pair, measure, analyse, judge. Read this first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from . import judge
from .diffs import Diff
from .judge.conversion import verified
from .measure.content import is_known_layout
from .measure.pairs import Progress
from .measure.session import Session
from .measure.structure import structure
from .measure.ties import Candidate
from .measure.totals import totals
from .pairing import facts, is_prefix_rename, pair
from .pairing.filters import kept
from .pairing.ties import tie_candidates
from .protocols import TensorSource
from .records import Delta, Envelope, MetadataChange, Pair, Report
from .sources.derived import derived
from .sources.describe import describe, metadata
from .sources.handed import Model, handed, meant


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
        handed(model, format, limits) for model in (left, right)
    )
    about = metadata(left_name, before), metadata(right_name, after)
    before, after = meant(before, after, about)
    matched = pair(before.tensors, after.tensors, match=match, known=facts(*about))
    pairs = kept(matched, path, ignore)
    before = derived(before, ((each.left, each.left_recipe) for each in pairs))
    after = derived(after, ((each.right, each.right_recipe) for each in pairs))
    session = Session(
        before,
        after,
        twins=lambda: _twins(pairs, before, after),
        lone=[each for each in matched if not (each.left and each.right) and match == "auto"],
        derive=derived,
        threads=threads,
        epsilon=epsilon,
        always=always,
        progress=progress,
    )
    return Diff(
        describe(left_name, before),
        describe(right_name, after),
        pairs,
        (lambda chosen: map(structure, chosen)) if shape_only else session,
        metadata=_changes(*about),
        warnings=lambda: tuple(session.warnings),
        values=None if shape_only else session.values,
        take=None if shape_only else session.take,
        metadata_left=about[0],
        metadata_right=about[1],
        epsilon=epsilon,
    )


def report(
    diff: Diff,
    analyses: Iterable[Envelope] = (),
    evidence: Mapping[str, str] | None = None,
    *,
    verify_conversion: bool = False,
) -> Report:
    """Judge a diff and put it down as plain data, ready to be rendered.

    `verify_conversion` asks only whether both are the same model, whatever their formats.
    """
    rows = []
    # What holds a packed model is no format of its own: "gzip" in "FORMAT in gzip".
    across = len({side.format.partition(" in ")[0] for side in (diff.left, diff.right)}) > 1

    def written() -> Iterator[Delta]:
        for delta in diff.stream():  # a million scans need not be held at once
            rows.append(judge.row(delta, diff.further(delta)))
            yield delta

    def is_same(pair: Pair) -> bool:
        return is_prefix_rename(pair) or (across and is_known_layout(pair))

    judged = judge.report(diff, totals(written(), is_same), rows, analyses, evidence)
    return verified(judged) if verify_conversion else judged


def _twins(pairs: list[Pair], left: TensorSource, right: TensorSource) -> Iterator[Candidate]:
    for tie in tie_candidates(pairs, left.tensors, right.tensors):
        yield pairs[tie.index], tie.side, tie.head, tie.embedding


def _changes(left: dict[str, str], right: dict[str, str]) -> tuple[MetadataChange, ...]:
    keys = sorted(left.keys() | right.keys())
    changes = (MetadataChange(key, left.get(key), right.get(key)) for key in keys)
    return tuple(change for change in changes if change.left != change.right)
