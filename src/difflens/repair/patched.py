"""A model as a patch makes it: read like any other, decoded chunk by chunk."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import NamedTuple

from difflens.core.buffers import ThreadBuffers
from difflens.core.errors import LimitExceeded, PatchError
from difflens.core.escape import for_terminal
from difflens.core.protocols import TensorSource
from difflens.core.records import TensorInfo
from difflens.measure.codec import crc32c

from .both_ways import Prediction, decode_chunk
from .chunks import Readable, chunk_bytes, chunks_of, kind_of, read_range
from .fields import Fields
from .layout import Layout
from .patch_file import PatchFile
from .recipes import Recipe, read_recipe

_MOST_RECIPES = 4  # that are in memory at once, more than threads work at
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
    """How one tensor is made: from which one, by which recipe (where it lies), and its chunks."""

    info: TensorInfo
    origin: TensorInfo | None
    recipe: tuple[str, int, int]
    chunks: list[Chunk]

    @property
    def has_recipe(self) -> bool:
        """Is it predicted by a recipe?"""
        return self.recipe[1] < self.recipe[2]


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
    infos = [target[name] for name in sorted(target)]
    origins = [
        _origin(patch, code, info, base, names, has_recipe=recipe > 0)
        for code, info, recipe in zip(patch.origins, infos, patch.recipes, strict=True)
    ]
    counts = [len(chunks_of(info)) for info in infos]
    checks = iter(patch.checks)
    steps: Steps = {}
    try:
        places = patch.places([info.name for info in infos], counts)
        for info, origin, (recipe, *chunks) in zip(infos, origins, places, strict=True):
            made = []
            is_made = origin is None or recipe[1] < recipe[2]
            for home, start, stop in chunks:
                if is_made and start == stop:
                    raise patch.damaged("a new tensor has a chunk without data")
                before = None if origin is None else next(checks)
                made.append(
                    Chunk(home, start, stop, before, next(checks) if stop > start else None)
                )
            steps[info.name] = Step(info, origin, recipe, made)
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
    patch: PatchFile,
    code: int,
    info: TensorInfo,
    base: Mapping[str, TensorInfo],
    names: list[str],
    *,
    has_recipe: bool,
) -> TensorInfo | None:
    if code == 0:
        if has_recipe:
            raise patch.damaged("a new tensor has a recipe")
        return None
    if code - 2 >= len(names) or (code == 1 and info.name not in base):
        raise _other_base(patch, f"tensor '{for_terminal(info.name)}' has no counterpart")
    origin = base[info.name if code == 1 else names[code - 2]]
    fits = origin.dtype == info.dtype and origin.size_bytes == info.size_bytes
    if not fits and not has_recipe:
        raise _other_base(patch, f"tensor '{for_terminal(origin.name)}' has another size or dtype")
    return origin


def _other_base(patch: PatchFile, reason: str) -> PatchError:
    return PatchError(patch.where, f"it was made for another base: {reason}")


def reversed_steps(patch: PatchFile, steps: Steps, base: Mapping[str, TensorInfo]) -> Steps:
    """Turn the steps round: from the target to the base."""
    turned: Steps = {}
    for step in steps.values():
        if step.origin is None or step.origin.name in turned:
            continue
        chunks = [
            chunk if chunk.after is None else chunk._replace(before=chunk.after, after=chunk.before)
            for chunk in step.chunks
        ]
        if len(chunks) != len(chunks_of(step.origin)):
            raise patch.damaged("it says it can run backwards, and its chunks do not fit")
        turned[step.origin.name] = Step(step.origin, step.info, step.recipe, chunks)
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
        self._buffers, self._lock = ThreadBuffers(), threading.Lock()
        self._recipes: dict[str, Recipe] = {}
        self._last = threading.local()  # the chunk that a thread read a part of
        self.tensors = {name: step.info for name, step in steps.items()}
        self.metadata: dict[str, str] = {}
        self.warnings: list[str] = []

    def read_into(self, name: str, start: int, stop: int, buffer: memoryview) -> int:
        """Fill the buffer with bytes [start, stop) of the tensor and return how many."""
        info, at = self.tensors[name], start
        step = chunk_bytes(info.dtype)
        while at < stop:
            number, end = at // step, min((at // step + 1) * step, info.size_bytes)
            first, last = number * step, min(end, stop)
            part = buffer[at - start : last - start]
            if (at, last) == (first, end):
                self.read_chunk(name, number, part)
            else:
                if getattr(self._last, "place", None) != (name, number):
                    self._last.place = None
                    self._last.data = self._buffers.get("part", end - first)
                    self.read_chunk(name, number, self._last.data)
                    self._last.place = name, number
                part[:] = self._last.data[at - first : last - first]
            at = last
        return stop - start

    def read_chunk(self, name: str, number: int, out: memoryview) -> None:
        """Decode a chunk, and check it before and after."""
        step = self.steps[name]
        chunk = step.chunks[number]
        base = self._base(step, number)
        if chunk.after is None and base is not None:
            out[:] = base
            return
        room = len(out) + (len(base) if base is not None else 0)
        if chunk.stop - chunk.start > 2 * room + _SPARE:
            raise self.patch.damaged(f"tensor '{for_terminal(name)}' has an overlong chunk")
        data = self._data(chunk)
        try:
            decode_chunk(
                data,
                base,
                out,
                kind_of((step.origin if self.backwards and step.origin else step.info).dtype),
                backwards=self.backwards,
                prediction=self._prediction(step, number),
            )
        except ValueError as error:
            raise self.patch.damaged(f"tensor '{for_terminal(name)}': {error}") from error
        if crc32c(out) != chunk.after:
            raise self.patch.damaged(
                f"tensor '{for_terminal(name)}' does not become what it should"
            )

    def _data(self, chunk: Chunk) -> memoryview:
        size = chunk.stop - chunk.start
        view = self._buffers.get("data", size)
        self.patch.source.read_into(chunk.home, chunk.start, chunk.stop, view)
        return view

    def check_first_chunks(self) -> None:
        """Refuse a wrong base by the first chunk of every tensor, before anything is made."""
        for step in self.steps.values():
            if step.chunks:
                self._base(step, 0)

    def _base(self, step: Step, number: int) -> memoryview | None:
        """Read what a chunk is made of, and compare its checksum."""
        if step.origin is None:
            return None
        first, end = chunks_of(step.origin if self.backwards else step.info)[number]
        recipe = self._recipe(step)
        if recipe and not self.backwards:
            base = recipe.read(self.source, step.origin, first, end, self._memory)
        else:
            name = step.origin.name
            base = read_range(self.source, name, first, end, self._memory(end - first))
        if crc32c(base) != step.chunks[number].before:
            raise self._wrong_base(step.origin.name)
        return base

    def _memory(self, size: int) -> memoryview:
        return self._buffers.get("base", size)

    def _prediction(self, step: Step, number: int) -> Prediction | None:
        recipe = self._recipe(step)
        if recipe is None or step.origin is None:
            return None
        base, target = (step.info, step.origin) if self.backwards else (step.origin, step.info)
        return Prediction(recipe, chunks_of(target)[number][0], kind_of(base.dtype))

    def _recipe(self, step: Step) -> Recipe | None:
        """Read the recipe of a tensor, or return it where it was read before."""
        if not step.has_recipe or step.origin is None:
            return None
        name = step.info.name
        with self._lock:
            if name not in self._recipes:
                base, target = step.origin, step.info
                if self.backwards:
                    base, target = target, base
                if len(self._recipes) == _MOST_RECIPES:
                    self._recipes.pop(next(iter(self._recipes)))
                fields = Fields(self.patch.read(*step.recipe), self.patch.where)
                self._recipes[name] = read_recipe(fields, base, target)
            return self._recipes[name]

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
