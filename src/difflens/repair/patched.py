"""A model as a patch makes it: read like any other, decoded chunk by chunk."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from difflens.core.errors import LimitExceeded, PatchError
from difflens.core.escape import for_terminal
from difflens.core.protocols import TensorSource
from difflens.core.records import TensorInfo
from difflens.measure.codec import crc32c

from .both_ways import decode_chunk
from .chunks import Readable, buffer, chunks_of, kind_of, read_chunk
from .layout import Layout
from .patch_file import PatchFile

_SPARE = 16384  # bytes that a chunk which also runs backwards may take beyond twice its own


class Chunk(NamedTuple):
    """Where the data of a chunk lie in the patch, and the checksums before and after.

    No checksum before: it is made from nothing. No checksum after: it stays as it is.
    """

    home: str
    start: int
    stop: int
    before: int | None
    after: int | None


class Step(NamedTuple):
    """How one tensor is made: from which one, and its chunks."""

    info: TensorInfo
    origin: str | None
    chunks: list[Chunk]


Steps = dict[str, Step]


def plan(
    patch: PatchFile, base: Mapping[str, TensorInfo], target: Mapping[str, TensorInfo]
) -> Steps:
    """Bind the index of a patch to the tensors of its two models; refuse what does not fit."""
    names = sorted(base)
    if len(patch.origins) != len(target):
        raise _other_base(
            patch, f"{len(patch.origins)} tensors were patched, {len(target)} are here"
        )
    _check_size(patch, base, target)
    origins = [
        _origin(patch, code, info, base, names)
        for code, info in zip(patch.origins, (target[name] for name in sorted(target)), strict=True)
    ]
    infos = [target[name] for name in sorted(target)]
    counts = [len(chunks_of(info)) for info in infos]
    checks = iter(patch.checks)
    steps: Steps = {}
    try:
        places = patch.places([info.name for info in infos], counts)
        for info, origin, chunks in zip(infos, origins, places, strict=True):
            made = []
            for home, start, stop in chunks:
                if origin is None and start == stop:
                    raise patch.damaged("a new tensor has a chunk without data")
                before = None if origin is None else next(checks)
                made.append(
                    Chunk(home, start, stop, before, next(checks) if stop > start else None)
                )
            steps[info.name] = Step(info, origin, made)
    except StopIteration:
        raise patch.damaged("its checksums are too few") from None
    if next(checks, None) is not None:
        raise patch.damaged("its checksums are too many")
    return steps


def _check_size(
    patch: PatchFile, base: Mapping[str, TensorInfo], target: Mapping[str, TensorInfo]
) -> None:
    """Refuse a patch that makes far more than its base and itself hold."""
    size = sum(info.size_bytes for info in target.values())
    inputs = sum(info.size_bytes for info in base.values()) + patch.size
    limit = patch.limits["patch_ratio"]
    if size > limit * inputs:
        reason = f"it makes {size} bytes of {inputs}, more than {limit} times as many"
        raise LimitExceeded(patch.where, reason, hint="raise it with --limit patch_ratio=N")


def _origin(
    patch: PatchFile, code: int, info: TensorInfo, base: Mapping[str, TensorInfo], names: list[str]
) -> str | None:
    if code == 0:
        return None
    if code - 2 >= len(names) or (code == 1 and info.name not in base):
        raise _other_base(patch, f"tensor '{for_terminal(info.name)}' has no counterpart")
    origin = info.name if code == 1 else names[code - 2]
    if base[origin].dtype != info.dtype or base[origin].size_bytes != info.size_bytes:
        raise _other_base(patch, f"tensor '{for_terminal(origin)}' has another size or dtype")
    return origin


def _other_base(patch: PatchFile, reason: str) -> PatchError:
    return PatchError(patch.where, f"it was made for another base: {reason}")


def reversed_steps(patch: PatchFile, steps: Steps, base: Mapping[str, TensorInfo]) -> Steps:
    """Turn the steps round: from the target to the base."""
    turned: Steps = {}
    for step in steps.values():
        if step.origin is None or step.origin in turned:
            continue
        chunks = [
            chunk if chunk.after is None else chunk._replace(before=chunk.after, after=chunk.before)
            for chunk in step.chunks
        ]
        turned[step.origin] = Step(base[step.origin], step.info.name, chunks)
    if len(turned) < len(base):
        raise patch.damaged("it says it can run backwards, and leaves tensors out")
    return dict(sorted(turned.items()))


class Patched:
    """A source whose tensors a patch makes of those of another source."""

    format = "safetensors"

    def __init__(
        self,
        patch: PatchFile,
        source: Readable,
        steps: Steps,
        layout: Layout | None = None,
        *,
        backwards: bool = False,
    ) -> None:
        """Decode nothing yet."""
        self.patch, self.source, self.steps, self.layout = patch, source, steps, layout
        self.backwards = backwards
        self.tensors = {name: step.info for name, step in steps.items()}
        self.metadata: dict[str, str] = {}
        self.warnings: list[str] = []

    def read_into(self, name: str, start: int, stop: int, buffer: memoryview) -> int:
        """Fill the buffer with bytes [start, stop), which are those of one chunk."""
        for number, (first, end) in enumerate(chunks_of(self.tensors[name])):
            if (first, end) == (start, stop):
                self.read_chunk(name, number, buffer[: stop - start])
                return stop - start
        raise ValueError(f"tensor {name!r} is read by chunks, not from {start} to {stop}")

    def read_chunk(self, name: str, number: int, out: memoryview) -> None:
        """Decode a chunk, and check it before and after."""
        step = self.steps[name]
        chunk = step.chunks[number]
        first, end = chunks_of(step.info)[number]
        base: memoryview | None = None
        if step.origin is not None:
            base = read_chunk(self.source, step.origin, first, end, id(self))
            if crc32c(base) != chunk.before:
                raise self._wrong_base(step.origin)
        if chunk.after is None and base is not None:
            out[:] = base
            return
        if chunk.stop - chunk.start > 2 * (end - first) + _SPARE:
            raise self.patch.damaged(f"tensor '{for_terminal(name)}' has an overlong chunk")
        data = self._data(chunk)
        try:
            decode_chunk(data, base, out, kind_of(step.info.dtype), backwards=self.backwards)
        except ValueError as error:
            raise self.patch.damaged(f"tensor '{for_terminal(name)}': {error}") from error
        if crc32c(out) != chunk.after:
            raise self.patch.damaged(
                f"tensor '{for_terminal(name)}' does not become what it should"
            )

    def _data(self, chunk: Chunk) -> memoryview:
        size = chunk.stop - chunk.start
        view = buffer(-id(self), size)[:size]
        self.patch.source.read_into(chunk.home, chunk.start, chunk.stop, view)
        return view

    def check_first_chunks(self) -> None:
        """Refuse a wrong base by the first chunk of every tensor, before anything is made."""
        for step in self.steps.values():
            if step.origin is not None and step.chunks:
                first, end = chunks_of(step.info)[0]
                if (
                    crc32c(read_chunk(self.source, step.origin, first, end))
                    != step.chunks[0].before
                ):
                    raise self._wrong_base(step.origin)

    def _wrong_base(self, name: str) -> PatchError:
        side = "target" if self.backwards else "base"
        return PatchError(
            self.patch.where,
            f"this is not the {side} it was made with: tensor '{for_terminal(name)}' differs",
        )

    def confirm(self) -> None:
        """Raise `ChangedWhileReading` if a file is not the one that was opened."""
        for each in (self.source, self.patch.source):
            if isinstance(each, TensorSource):
                each.confirm()

    def close(self) -> None:
        """Close the patch and the source."""
        self.patch.close()
        if isinstance(self.source, TensorSource):
            self.source.close()
