"""The story of one model: open, describe, measure alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple, Self

from difflens.core.addresses import Location
from difflens.core.encodings import extents_of, is_remote
from difflens.core.protocols import (
    Ahead,
    Engine,
    Extent,
    HasAliases,
    HasChecksums,
    HasRefused,
    TensorSource,
)
from difflens.core.records import Inspected, Pair, Stats, Tensor, TensorInfo
from difflens.engines import start_engine
from difflens.measure import deltas
from difflens.measure.chunks import Side, steps
from difflens.measure.pairs import oddity
from difflens.models.checkpoint import open_checkpoint
from difflens.models.describe import describe, metadata
from difflens.models.opening import Model, open_input, place_of

from .pairing import pair
from .session import Progress
from .state import StateComparison

_STEPS = 16 << 20  # bytes


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
    """Open a model and look at it alone; `statistics` and `digests` read every byte."""
    name, source = open_input(model, format, limits)
    return inspect_source(
        name,
        source,
        place_of(model),
        statistics=statistics,
        digests=digests,
        threads=threads,
        progress=progress,
    )


def inspect_source(
    name: str,
    source: TensorSource,
    place: Location | None,
    *,
    statistics: bool = False,
    digests: bool = False,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Inspected:
    """Look at an open model, which stays open; `place` is where its settings lie too."""
    infos = [each.right for each in pair({}, source.tensors) if each.right]
    engine = start_engine(None, threads)
    warnings = list(source.warnings)
    stats: list[Stats | None] = [None] * len(infos)
    if statistics:
        if progress:
            progress.stage("", sum(each.size_bytes for each in infos))
        lone = (Pair(None, info) for info in infos)
        for at, each in enumerate(deltas(lone, source, source, engine, progress=progress)):
            stats[at] = each.stats("right")
            warnings.extend(filter(None, [oddity(each)]))
    hashes = list(hash_tensors(infos, source, engine)) if digests else [None] * len(infos)
    engine.close()
    if statistics and isinstance(source, HasChecksums):
        source.verify()  # checksums, which reading tensors alone does not look at
    source.confirm()
    checkpoint = open_checkpoint(source)
    return Inspected(
        describe(name, checkpoint.weights, checkpoint.state_infos),
        tuple(map(Tensor, infos, stats, hashes, (each.name in checkpoint.state for each in infos))),
        metadata(place, source),
        tuple(warnings),
        tuple(source.refused if isinstance(source, HasRefused) else ()),
        dict(source.aliases if isinstance(source, HasAliases) else {}),
        StateComparison.of_one(checkpoint),
    )


def hash_tensors(
    infos: Iterable[TensorInfo], source: TensorSource, engine: Engine
) -> Iterator[str]:
    """Return SHA-256 of each tensor's encoded bytes as hexadecimal text, in order."""
    tasks = (_Hashing(Side.of(source, info)) for info in infos)
    return engine.run(_hash_tensor, tasks, remote=is_remote(source))


class _Hashing(NamedTuple):
    """One tensor to hash."""

    side: Side

    @property
    def memory_bytes(self) -> int:
        """How much memory it takes: for steps."""
        return _STEPS

    def extents(self) -> Iterator[Extent]:
        """Yield the ranges of remote files that it reads."""
        yield from extents_of(self.side.encoding, 0, self.side.info.size_bytes)

    def with_ahead(self, ahead: Ahead) -> Self:  # noqa: ARG002
        """Return the same: it has no parts."""
        return self


def _hash_tensor(task: _Hashing) -> str:
    import hashlib  # 6 ms that only fingerprints need

    whole = hashlib.sha256()
    for part in steps(task.side):
        whole.update(part)
    return whole.hexdigest()
