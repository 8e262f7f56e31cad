"""Makes a patch: two models in, chunk by chunk, a small file out."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import BinaryIO, cast

from difflens.core.buffers import ThreadBuffers
from difflens.core.errors import OutputError, PatchError
from difflens.core.records import TensorInfo
from difflens.engines.threads import Threads
from difflens.measure.codec import ALWAYS, CHEAP, NEVER, crc32c

from .adapters import Adapter
from .both_ways import Prediction, code
from .choosing import Chooser
from .chunks import chunks_of, digest, kind_of, read_range
from .container import Spool, write
from .gathered import Coded, Gathered, Side, Task
from .recipes import Rows, can_be_rows, can_be_scaled
from .records import PatchSummary

WAYS_BACK = {"auto": CHEAP, "always": ALWAYS, "never": NEVER}


class Maker:
    """Codes chunks; several threads may ask it at once."""

    def __init__(self, base: Side, target: Side, way_back: int, *, digests: bool) -> None:
        """Store the two models."""
        self.base, self.target, self.digests = base, target, digests
        self.way_back, self._buffers = way_back, ThreadBuffers()

    def code(self, task: Task) -> Coded:
        """Code one chunk."""
        info, origin, start, stop, recipe, is_of_base = task
        if is_of_base:
            view = self._read(self.base, info.name, start, stop, "left")
            return Coded(task, b"", b"", 0, 0, digest(view) if self.digests else b"", b"")
        right = self._read(self.target, info.name, start, stop, "right")
        left = prediction = None
        if origin is not None and recipe:
            memory = partial(self._buffers.get, "left")
            left = recipe.read(self.base.source, origin, start, stop, memory)
            prediction = Prediction(recipe, start, kind_of(origin.dtype))
        elif origin is not None:
            left = self._read(self.base, origin.name, start, stop, "left")
        data, both = code(left, right, kind_of(info.dtype), self.way_back, prediction)
        before = 0 if left is None else crc32c(left)
        after = crc32c(right) if data else before
        apart = isinstance(recipe, Rows)  # the base is digested in the order of its rows
        base = digest(left) if self.digests and left is not None and not apart else b""
        target = (digest(right) if data else base) if self.digests else b""
        return Coded(task, data, both, before, after, base, target)

    def _read(self, side: Side, name: str, start: int, stop: int, which: str) -> memoryview:
        view = self._buffers.get(which, stop - start)
        return read_range(side.source, name, start, stop, view)


def make(
    base: Side,
    target: Side,
    path: Path,
    adapter: Adapter | None = None,
    *,
    way_back: str,
    threads: int | None,
    digests: bool,
) -> PatchSummary:
    """Write the patch that leads from the base to the target."""
    one_way = way_back != "always"
    origins = pair(base.source.tensors, target.source.tensors, one_way=one_way)
    removed = sorted(set(base.source.tensors) - set(filter(None, origins.values())))
    if removed and way_back == "always":
        reason = f"{len(removed)} tensors of the base are not in the target"
        raise PatchError(path, f"the patch cannot run backwards: {reason}")
    back = NEVER if removed else WAYS_BACK[way_back]
    maker = Maker(base, target, back, digests=digests)
    chooser = Chooser(base.source, target.source, adapter, one_way=one_way)
    tasks = _tasks(base, target, origins, removed, chooser)
    engine = Threads(threads)
    try:
        with _temporary(path) as file:
            spool = Spool(file)
            gathered = Gathered(base, target, origins, spool, back)
            for coded in engine.map(maker.code, tasks):
                gathered.add(coded)
            base.source.confirm()
            target.source.confirm()
            reversible = back != NEVER and gathered.is_reversible
            if way_back == "always" and not reversible:
                raise PatchError(path, "the patch cannot run backwards")
            write(path, gathered.head(reversible=reversible), gathered.entries(), spool)
    finally:
        engine.close()
    return gathered.summary(path, len(removed), reversible=reversible)


@contextmanager
def _temporary(path: Path) -> Iterator[BinaryIO]:
    """Open a file without a name beside the path."""
    try:
        with tempfile.TemporaryFile(dir=path.resolve().parent) as file:
            yield cast(BinaryIO, file)
    except OSError as error:
        raise OutputError((error.strerror or str(error)).lower(), where=str(path)) from error


def pair(
    base: Mapping[str, TensorInfo], target: Mapping[str, TensorInfo], *, one_way: bool
) -> dict[str, str | None]:
    """Choose the tensor of the base that each tensor of the target is coded against.

    A wrong choice costs bytes and nothing else. Namesakes come first; of those that are gone, the
    one whose name ends most alike. `one_way` allows pairs that do not lead back.
    """
    origins: dict[str, str | None] = {}
    gone: dict[tuple[str, int], list[str]] = {}
    for name, info in base.items():
        if name not in target:
            gone.setdefault((info.dtype, info.size_bytes), []).append(name)
    for name in sorted(target):
        info, same = target[name], base.get(name)
        origins[name] = None
        if same is not None and _is_alike(same, info, one_way=one_way):
            origins[name] = name
        elif same is None:
            candidates = gone.get((info.dtype, info.size_bytes), [])
            if candidates:
                chosen = max(candidates, key=lambda each: (_alike(each, name), each))
                candidates.remove(chosen)
                origins[name] = chosen
    return origins


def _is_alike(base: TensorInfo, target: TensorInfo, *, one_way: bool) -> bool:
    """Can the target be coded against the base, with a recipe or without?"""
    same = (base.dtype, base.size_bytes) == (target.dtype, target.size_bytes)
    rows = one_way and can_be_rows(base, target)
    return same or (target.count > 0 and (rows or can_be_scaled(base, target)))


def _alike(left: str, right: str) -> int:
    """Count the last parts of two names that are the same."""
    count = 0
    for first, second in zip(reversed(left.split(".")), reversed(right.split(".")), strict=False):
        if first != second:
            break
        count += 1
    return count


def _tasks(
    base: Side,
    target: Side,
    origins: Mapping[str, str | None],
    removed: list[str],
    chooser: Chooser,
) -> Iterator[Task]:
    alone = list(removed)
    for name in sorted(target.source.tensors):
        info, origin = target.source.tensors[name], origins[name]
        first = None if origin is None else base.source.tensors[origin]
        recipe = chooser.choose(first, info) if first else None
        if first and isinstance(recipe, Rows):
            alone.append(first.name)
        for start, stop in chunks_of(info):
            yield Task(info, first, start, stop, recipe)
    for name in alone:
        info = base.source.tensors[name]
        for start, stop in chunks_of(info):
            yield Task(info, None, start, stop, is_of_base=True)
