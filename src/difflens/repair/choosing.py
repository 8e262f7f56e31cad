"""Chooses the recipe of a tensor: whatever makes a sample of it smallest."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf

from difflens.core.protocols import TensorSource
from difflens.core.records import TensorInfo
from difflens.measure.codec import NEVER, encode

from .adapters import Adapter
from .chunks import kind_of, read_range
from .low_rank import Pair, recovered
from .recipes import Recipe, Scaled, can_be_rows, can_be_scaled, can_be_summed
from .row_order import find_rows
from .scales import scales_of

_PLACES, _ELEMENTS = 16, 512  # of a sample
_FEW = 20  # a sample that takes less than its twentieth part needs no recipe
_ALIKE = 0.95  # where the base saves less than a twentieth part, it is another order or model
_GAIN = 16  # a recipe saves its sixteenth part at least: less may be chance


class Chooser:
    """Chooses recipes for the tensors of two models, one after another."""

    def __init__(
        self,
        base: TensorSource,
        target: TensorSource,
        adapter: Adapter | None = None,
        *,
        one_way: bool,
    ) -> None:
        """Store the models; `one_way` allows recipes that cannot be undone."""
        self._base, self._target, self._adapter = base, target, adapter
        self._one_way = one_way

    def choose(self, origin: TensorInfo, info: TensorInfo) -> Recipe | None:
        """Return the recipe of a tensor; None where it takes least without one."""
        needed = (origin.dtype, origin.size_bytes) != (info.dtype, info.size_bytes)
        if not info.count:
            return None
        sample = Sample(self._base, self._target, origin, info)
        best: Recipe | None = None
        least = inf
        if not needed:
            least = sample.size(None)
            if least * _FEW < info.size_bytes:
                return None
        for recipe in self._candidates(sample, least):
            size = sample.size(recipe)
            if size < least - (0 if best or needed else least / _GAIN):
                best, least = recipe, size
        return best

    def _candidates(self, sample: Sample, plain: float) -> Iterator[Recipe]:
        origin, info = sample.origin, sample.info
        if can_be_scaled(origin, info):
            yield from scales_of(sample)
        known = list(self._adapter.recipes(info)) if self._adapter else []
        if can_be_summed(origin, info) and known:
            yield from known
        elif can_be_summed(origin, info):
            yield from recovered(Pair(self._base, self._target, origin, info), int(plain))
        if self._one_way and can_be_rows(origin, info) and not sample.is_related(plain):
            yield find_rows(self._base, self._target, origin, info)


class Sample:
    """Some elements of a tensor, from places all over it."""

    def __init__(
        self, base: TensorSource, target: TensorSource, origin: TensorInfo, info: TensorInfo
    ) -> None:
        """Read them."""
        self.base, self.origin, self.info = base, origin, info
        self.ranges = list(_ranges(info))
        self.target = b"".join(
            bytes(read_range(target, info.name, start, stop, _memory(stop - start)))
            for start, stop in self.ranges
        )

    def size(self, recipe: Recipe | None) -> float:
        """Return what the tensor takes, about, with a recipe or without."""
        made = self.read_base() if recipe is None else self.predicted(recipe)
        coded = len(encode(made, self.target, kind_of(self.info.dtype), NEVER))
        own = len(recipe.to_bytes()) if recipe else 0
        return coded * self.info.size_bytes / max(len(self.target), 1) + own

    def is_related(self, plain: float) -> bool:
        """Does the base help as it is?"""
        if self.origin.size_bytes != self.info.size_bytes:
            return False
        alone = len(encode(None, self.target, kind_of(self.info.dtype), NEVER))
        return plain * len(self.target) < _ALIKE * alone * self.info.size_bytes

    def read_base(self) -> bytes:
        """Read the same elements of the base."""
        kinds = kind_of(self.origin.dtype), kind_of(self.info.dtype)
        return b"".join(
            bytes(Scaled(kinds, 1.0, 1).read(self.base, self.origin, start, stop, _memory))
            for start, stop in self.ranges
        )

    def predicted(self, recipe: Recipe) -> bytes:
        """Return what a recipe makes of them."""
        parts = []
        for start, stop in self.ranges:
            out = _memory(stop - start)
            base = recipe.read(self.base, self.origin, start, stop, _memory)
            recipe.predict(base, out, start)
            parts.append(bytes(out))
        return b"".join(parts)


def _ranges(info: TensorInfo) -> Iterator[tuple[int, int]]:
    width = kind_of(info.dtype)[0]
    words = info.size_bytes // width
    if words <= _PLACES * _ELEMENTS:
        yield 0, words * width
        return
    for place in range(_PLACES):
        start = place * (words - _ELEMENTS) // (_PLACES - 1)
        yield start * width, (start + _ELEMENTS) * width


def _memory(size: int) -> memoryview:
    return memoryview(bytearray(size))
