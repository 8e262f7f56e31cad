"""What the chunks of a patch gave, gathered in order: its index, its digests, its summary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from difflens.core.protocols import TensorSource
from difflens.core.records import TensorInfo
from difflens.measure.codec import CHEAP

from .both_ways import METHOD, RECIPE, TWO_WAYS, runs_back
from .chunks import Content
from .container import Entry, Head, Spool
from .layout import Layout
from .recipes import Recipe
from .records import PatchSummary

_FREE = 4096  # bytes that the way back may add to any patch
METHODS = {
    None: "identical",
    0: "raw",
    1: "sparse",
    2: "dense",
    3: "alone",
    TWO_WAYS: "two ways",
    RECIPE: "recipe",
}


class Side(NamedTuple):
    """One of the two models: its tensors, its layout, and whether that is the model's own.

    `with_files` says that the layout has the files beside the weights.
    """

    source: TensorSource
    layout: Layout
    is_native: bool
    shown: str
    with_files: bool = False


class Task(NamedTuple):
    """One chunk: of a tensor of the target and its origin, or of a tensor of the base alone.

    What is of the base alone is only digested.
    """

    info: TensorInfo
    origin: TensorInfo | None
    start: int
    stop: int
    recipe: Recipe | None = None
    is_of_base: bool = False


class Coded(NamedTuple):
    """What one chunk gave: its data, checksums and digests.

    `both` are longer data that run backwards too, where `data` do not.
    """

    task: Task
    data: bytes
    both: bytes
    before: int
    after: int
    base: bytes
    target: bytes


class Gathered:
    """Chunks as they come, in order: what the index and the summary say of them."""

    def __init__(
        self, base: Side, target: Side, origins: Mapping[str, str | None], spool: Spool, back: int
    ) -> None:
        """Begin with no chunk; their data go to the spool."""
        self._back, self._extra = back, 0
        self._base, self._target, self._origins, self._spool = base, target, origins, spool
        self._lengths: dict[str, list[int]] = {name: [] for name in sorted(target.source.tensors)}
        self._checks: dict[str, list[int]] = {name: [] for name in self._lengths}
        self._contents = Content(), Content()
        self._methods: Counter[str] = Counter()
        self._recipes: dict[str, int] = {}
        self._digests = True
        self.is_reversible = True
        for side, content in zip((base, target), self._contents, strict=True):
            for info in side.source.tensors.values():
                content.declare(info)

    def add(self, coded: Coded) -> None:
        """Add the next chunk."""
        info, origin = coded.task.info, coded.task.origin
        self._digests = self._digests and bool(coded.base or coded.target)
        if coded.task.is_of_base:
            self._contents[0].add(info, coded.base)
            return
        recipe = coded.task.recipe
        if recipe and not coded.task.start:
            data = recipe.to_bytes()
            self._recipes[info.name] = len(data)
            self._spool.add(data)
        if origin is not None:
            if coded.base:
                self._contents[0].add(origin, coded.base)
            self._checks[info.name].append(coded.before)
        self._contents[1].add(info, coded.target)
        data = self._chosen(coded)
        self._lengths[info.name].append(len(data))
        if data:
            self._checks[info.name].append(coded.after)
            self._spool.add(data)
            if origin is not None and not runs_back(data):
                self.is_reversible = False
        self._methods[METHODS[data[0] & METHOD if data else None]] += 1

    def _chosen(self, coded: Coded) -> bytes:
        """Choose the data that run backwards while all of them add no more than a tenth."""
        extra = len(coded.both) - len(coded.data)
        if not coded.both or not self.is_reversible:
            return coded.data
        if self._back == CHEAP and self._extra + extra > self._spool.size // 10 + _FREE:
            return coded.data
        self._extra += extra
        return coded.both

    def head(self, *, reversible: bool) -> Head:
        """Return what the patch says of the two models."""
        base, target = self._base, self._target
        same = base.is_native and base.layout == target.layout
        digests = [each.digest() if self._digests else b"" for each in self._contents]
        return Head(
            reversible,
            digests[0],
            digests[1],
            base.layout.digest(),
            base.layout.without(target.layout) if reversible and not same else None,
            None if same else target.layout.without(base.layout),
            base.with_files or target.with_files,
        )

    def entries(self) -> list[Entry]:
        """Return the tensors of the index."""
        numbers = {name: number for number, name in enumerate(sorted(self._base.source.tensors))}
        entries = []
        for name, lengths in self._lengths.items():
            origin = self._origins[name]
            code = 0 if origin is None else 1 if origin == name else 2 + numbers[origin]
            recipe = self._recipes.get(name, 0)
            entries.append(Entry(name, code, recipe, lengths, self._checks[name]))
        return entries

    def summary(self, path: Path, removed: int, *, reversible: bool) -> PatchSummary:
        """Return the patch in figures, once it is written."""
        changed = sum(any(lengths) for lengths in self._lengths.values())
        added = sum(origin is None for origin in self._origins.values())
        return PatchSummary(
            path=str(path),
            size_bytes=path.stat().st_size,
            target_bytes=sum(info.size_bytes for info in self._target.source.tensors.values()),
            tensors=len(self._lengths),
            changed=changed - added,
            added=added,
            removed=removed,
            reversible=reversible,
            chunks=dict(sorted(self._methods.items())),
        )
