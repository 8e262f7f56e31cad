"""The story of one model: open, describe, measure alone."""

from __future__ import annotations

from collections.abc import Mapping

from .measure import Threads, deltas
from .measure.digest import digests as digest
from .measure.oddities import oddity
from .measure.pairs import Progress
from .pairing import pair
from .records import Inspected, Pair, Stats, Tensor
from .sources.describe import describe, metadata
from .sources.handed import Model, handed


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
    name, source = handed(model, format, limits)
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
    if statistics and hasattr(source, "verify"):
        source.verify()  # checksums, which reading tensors alone does not look at
    source.confirm()
    return Inspected(
        describe(name, source),
        tuple(map(Tensor, infos, stats, prints)),
        metadata(name, source),
        tuple(warnings),
        tuple(getattr(source, "refused", ())),
        dict(getattr(source, "aliases", {})),
    )
