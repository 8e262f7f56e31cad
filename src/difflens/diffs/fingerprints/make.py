"""Makes the fingerprint of an open model: one pass over its bytes, some of them at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from difflens.core.dtypes import OPAQUE
from difflens.core.encodings import is_remote
from difflens.core.errors import MissingExtra
from difflens.core.protocols import Engine, TensorSource
from difflens.core.records import TensorInfo
from difflens.measure.chunks import CHUNK, STEP, Chunk, Side, read
from difflens.measure.kernel import merge, scan
from difflens.measure.kernel.layout import STATE
from difflens.measure.pairs import Batch, Progress
from difflens.measure.scan import Scan
from difflens.measure.sketch import BUCKETS
from difflens.measure.sketch.estimate import add_elements, finish, parts, sketched

from .records import TensorFingerprint

if TYPE_CHECKING:
    from blake3 import blake3

LEAF = 1 << 20  # bytes of a tensor that are hashed together
_CONTEXT = "difflens fingerprint 1: root of a tensor"
_TOGETHER = 512  # small tensors that travel as one task


class _Part(NamedTuple):
    """What a chunk says: the digests of its leaves, its scan, its sums."""

    leaves: bytes
    state: bytearray
    sums: bytearray


def fingerprint_tensors(
    source: TensorSource,
    infos: Iterable[TensorInfo],
    engine: Engine,
    progress: Progress | None = None,
) -> Iterator[TensorFingerprint]:
    """Read tensors and yield their fingerprints, in order.

    Chunks are counted from a tensor's start: the result does not depend on threads or files.
    """
    import_blake3()
    infos = list(infos)
    parts_made = _parts(source, infos, engine, progress)
    for info in infos:
        yield _join_parts(info, source, list(islice(parts_made, _chunk_count(info))))


def import_blake3() -> type[blake3]:
    """Return the hash; an absent library is one clear line."""
    try:
        from blake3 import blake3
    except ImportError as error:
        raise MissingExtra("a fingerprint", "fingerprints") from error
    return blake3


def root_of(info: TensorInfo, leaves: bytes) -> str:
    """Hash the digests of a tensor's leaves, in order, with its dtype and shape before them.

    A leaf is 1 MiB of its bytes, the last one what is left; its digest is BLAKE3 of these.
    """
    head = f"{info.dtype} {'x'.join(map(str, info.shape))}\n".encode()
    root = import_blake3()(head, derive_key_context=_CONTEXT)
    return root.update(leaves).hexdigest()


def _chunk_count(info: TensorInfo) -> int:
    return -(-info.count // CHUNK)


def _parts(
    source: TensorSource, infos: Iterable[TensorInfo], engine: Engine, progress: Progress | None
) -> Iterator[_Part]:
    batches = _batches(source, infos, engine.task_bytes)
    for parts_made, size in engine.run(_look_at_all, batches, remote=is_remote(source)):
        if progress:
            progress(size)
        yield from parts_made


def _batches(source: TensorSource, infos: Iterable[TensorInfo], wanted: int) -> Iterator[Batch]:
    """Put chunks together that read as many bytes as are wanted of a task."""
    batch: list[Chunk] = []
    size = 0
    for info in infos:
        side = Side.of(source, info)
        for start in range(0, info.count, CHUNK):
            chunk = Chunk(side, None, start, min(start + CHUNK, info.count), 0.0, always=True)
            batch.append(chunk)
            size += chunk.size_bytes
            if size >= wanted or len(batch) >= _TOGETHER:
                yield Batch(batch, size)
                batch, size = [], 0
    if batch:
        yield Batch(batch, size)


def _look_at_all(batch: Batch) -> tuple[list[_Part], int]:
    """Look at the chunks of one task; also return how many bytes that took."""
    return [_look(chunk) for chunk in batch.ahead(batch.chunks, Chunk.extents)], batch.size_bytes


def _look(chunk: Chunk) -> _Part:
    """Read a chunk once: each step is hashed, scanned and added to the sums while it is near."""
    side, dtype = chunk.left, chunk.left.info.dtype
    leaves, state, sums = _Leaves(), bytearray(STATE.size), bytearray(8 * BUCKETS)
    width = parts(side.info)
    for start in range(chunk.start, chunk.stop, STEP):
        data = read(side, start, min(start + STEP, chunk.stop), 0)
        leaves.update(data)
        if dtype not in OPAQUE:
            scan(data, data, dtype, dtype, 0.0, state)
            add_elements(data, dtype, start * width, sums)
    del sums[8 * sketched(side.info) :]  # small tensors need few, and there may be many of them
    return _Part(leaves.digests(), state, sums)


class _Leaves:
    """The digests of bytes as they come, one for each MiB."""

    def __init__(self) -> None:
        """Begin at the start of a leaf."""
        self._hash = import_blake3()
        self._now = self._hash()
        self._done = b""
        self.size = 0

    def update(self, data: memoryview) -> None:
        """Add bytes."""
        at = 0
        while at < len(data):
            some = data[at : at + LEAF - self.size % LEAF]
            self._now.update(some)
            at += len(some)
            self.size += len(some)
            if not self.size % LEAF:
                self._done += self._now.digest()
                self._now = self._hash()

    def digests(self) -> bytes:
        """Return the digests; a leaf that was begun ends here."""
        return self._done + (self._now.digest() if self.size % LEAF else b"")


def _join_parts(info: TensorInfo, source: TensorSource, chunks: list[_Part]) -> TensorFingerprint:
    """Put the parts of a tensor together."""
    import numpy as np

    root = root_of(info, b"".join(part.leaves for part in chunks))
    if info.dtype in OPAQUE or not chunks:
        return TensorFingerprint(info, root, None, None)
    state = chunks[0].state
    sums = np.frombuffer(chunks[0].sums, np.float64)
    for part in chunks[1:]:
        merge(state, part.state)
        sums += np.frombuffer(part.sums, np.float64)
    known = Scan.of_state(state, info.shape, parts(info))
    if known.may_be_tiny:
        from difflens.measure.tiny import with_tiny_values  # hardly any tensor needs it

        known = with_tiny_values(known, Side.of(source, info), None)
    return TensorFingerprint(info, root, known.side("left"), finish(sums, sketched(info)))
