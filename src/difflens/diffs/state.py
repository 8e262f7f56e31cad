"""What became of the state beside the weights: optimizers, schedulers, averages, callbacks.

State says how a training run stands, not what the model computes. It is compared like tensors, and
summarised: one part for each optimizer, scheduler and average, with its numbers on both sides.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from math import isfinite, sqrt
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from msgspec.structs import replace

from difflens.core.protocols import Engine
from difflens.core.records import SAME, Delta, Pair, TensorInfo
from difflens.core.state import StatePart
from difflens.engines import start_engine
from difflens.measure.chunks import Side as Place
from difflens.measure.scan import Scan
from difflens.measure.values import Values
from difflens.models.anatomy.state_hints import LIGHTNING
from difflens.models.checkpoint import Checkpoint

from .pairing import Pairing, name_filter
from .session import Session
from .state_text import number_text, part_text

if TYPE_CHECKING:
    from difflens.models.anatomy.state import State

    from .session import Progress

Side = Literal["left", "right"]
Number = float | str | None
_SIDES: tuple[Side, Side] = ("left", "right")
_KINDS = ("optimizer", "ema", "scheduler", "scaler", "random", "callbacks", "loops", "counters")
# What frameworks call the same number.
_NUMBERS = {
    "step": "step", "iter": "step", "iteration": "step", "iterations": "step", "count": "step",
    "t": "step", "global_step": "step", "num_updates": "updates", "n_averaged": "averaged",
    "learning_rate": "lr", "lr": "lr", "epoch": "epoch", "current_epoch": "epoch",
    "save_counter": "saves", "samples_seen": "samples", "decay": "decay", "scale": "scale",
}  # fmt: skip
_GROUP = re.compile(
    r"(?P<holder>.+?)\.param_groups\.[0-9]+\.(?P<key>lr|weight_decay|momentum|betas|eps)", re.DOTALL
)
_STEP = re.compile(r"(?P<holder>.+?)\.state\.[^.]+\.(?P<key>step)", re.DOTALL)
_EPOCH = re.compile(r"(?P<holder>.+?)\.(?P<key>last_epoch)", re.DOTALL)
_TRAINER = ("callbacks", "loops")
_INDEX = re.compile(r"\.[0-9]+$")
_MOST_READ = 1000  # numbers of one part that are read, one by one


class _Part(NamedTuple):
    """What holds a part of the state on one side: its tensors, and its numbers as text."""

    kind: str
    name: str
    members: dict[str, State]
    texts: dict[str, list[str]]


class StateComparison:
    """The state of two checkpoints, compared once somebody looks."""

    def __init__(
        self,
        left: Checkpoint,
        right: Checkpoint,
        path: str | None = None,
        ignore: str | None = None,
        *,
        engine: Engine | None = None,
        shape_only: bool = False,
    ) -> None:
        """Read nothing yet; `path` and `ignore` choose by name, as they do among the weights."""
        self._sides = {"left": left, "right": right}
        self._chooses = name_filter(path, ignore)
        self._filtered = path is not None
        self._engine = engine or start_engine()
        self._shape_only = shape_only
        self.progress: Progress | None = None
        self._is_alone = False

    @classmethod
    def of_one(cls, checkpoint: Checkpoint) -> tuple[StatePart, ...]:
        """Describe the state of one checkpoint; no tensor is read but numbers."""
        alone = cls(checkpoint, checkpoint)
        alone._is_alone = True
        return alone.parts

    @cached_property
    def parts(self) -> tuple[StatePart, ...]:
        """Compare part by part: optimizers first, then averages, schedulers and the rest."""
        left, right = (self._grouped(side) for side in _SIDES)
        return tuple(self._part(*both) for both in _aligned(left, right))

    def _grouped(self, side: Side) -> list[_Part]:
        """Group one side's state by what holds it, tensors and plain numbers alike."""
        checkpoint = self._sides[side]
        parts: dict[tuple[str, str], _Part] = {}
        for name, state in checkpoint.state.items():
            if self._chooses([name]):
                holder = "" if state.kind == "counters" else state.holder
                key = state.kind, holder or state.kind
                parts.setdefault(key, _Part(*key, {}, {})).members[name] = state
        metadata = {} if self._filtered else checkpoint.source.metadata
        for name, text in metadata.items():
            top = name.partition(".")[0]
            if LIGHTNING in metadata and top in _TRAINER and self._chooses([name]):
                parts.setdefault((top, top), _Part(top, top, {}, {}))
            match = _GROUP.fullmatch(name) or _STEP.fullmatch(name) or _EPOCH.fullmatch(name)
            if match is None or not self._chooses([name]):
                continue
            kind = "scheduler" if match["key"] == "last_epoch" else "optimizer"
            key = kind, _INDEX.sub("", match["holder"])
            word = "epoch" if kind == "scheduler" else match["key"]
            parts.setdefault(key, _Part(*key, {}, {})).texts.setdefault(word, []).append(text)
        return sorted(parts.values(), key=lambda each: (_KINDS.index(each.kind), each.name))

    def _part(self, left: _Part | None, right: _Part | None) -> StatePart:
        """Compare one part: tensor by tensor, and the numbers that say how the run stands."""
        known = {"left": left, "right": right}
        shown: Any = right or left
        deltas = [] if self._is_alone else self._measured(left, right)
        is_compared = not (self._shape_only or self._is_alone)
        numbers = {side: self._numbers(side, part) for side, part in known.items() if part}
        members = {side: part.members if part else {} for side, part in known.items()}
        slots = Counter(each.slot for each in shown.members.values() if not _is_number(each))
        part = StatePart(
            kind=shown.kind,
            name=shown.name,
            text="",
            differs=any(each.kind not in SAME for each in deltas),
            tensors={side: len(each) for side, each in members.items()},
            size_bytes={
                side: sum(info.size_bytes for info in self._infos(side, each))
                for side, each in members.items()
            },
            from_weights={
                side: self._from_weights(side, members[side])
                for side in _SIDES
                if any(state.weight for state in members[side].values())
            },
            slots=dict(sorted(slots.items())) if shown.kind == "optimizer" else {},
            numbers=_both(numbers.get("left"), numbers.get("right")),
            changed=_count_changed(deltas) if is_compared else None,
            values_changed=None if self._is_alone else self._count_values(left, right),
        )
        return replace(part, text=part_text(part))

    def _count_values(self, left: _Part | None, right: _Part | None) -> int | None:
        """Count the plain values of a part that differ; None if it is on one side only."""
        if left is None or right is None:
            return None
        values = [
            {
                name.removeprefix(part.name): text
                for name, text in self._sides[side].source.metadata.items()
                if name.startswith(f"{part.name}.")
            }
            for side, part in (("left", left), ("right", right))
        ]
        names = {**values[0], **values[1]}
        return sum(values[0].get(name) != values[1].get(name) for name in names)

    def _infos(self, side: str, members: Iterable[str]) -> Iterator[TensorInfo]:
        tensors = self._sides[side].source.tensors
        return (tensors[name] for name in members)

    def _measured(self, left: _Part | None, right: _Part | None) -> list[Delta]:
        before = self._by_tail("left", left)
        after = self._by_tail("right", right)
        pairs = [Pair(before.get(tail), after.get(tail)) for tail in {**before, **after}]
        return list(self._session("left", "right", pairs).measure(pairs))

    def _by_tail(self, side: Side, part: _Part | None) -> dict[str, TensorInfo]:
        """Index tensors by their name below the holder: that may be called otherwise."""
        if part is None:
            return {}
        return {info.name.removeprefix(part.name): info for info in self._infos(side, part.members)}

    def _session(
        self, left: Side, right: Side, pairs: list[Pair], *, always: bool = False
    ) -> Session:
        session = Session(
            self._sides[left].source,
            self._sides[right].source,
            Pairing(pairs, pairs, by_content=False, graphed=None),
            self._engine,
            shape_only=self._shape_only,
            always=always,
        )
        session.progress = self.progress
        return session

    def _numbers(self, side: str, part: _Part) -> dict[str, list[Number]]:
        """Collect the numbers of one side by name, each value once."""
        found = {key: [_parsed(text) for text in texts] for key, texts in part.texts.items()}
        wanted = [name for name, state in part.members.items() if state.slot in _NUMBERS]
        source = self._sides[side].source
        for name in wanted[:_MOST_READ] if not self._shape_only else ():
            info = source.tensors[name]
            if info.count == 1 and info.dtype != "C64":
                value = float(Values(Place.of(source, info)).array().reshape(-1)[0])
                word = _NUMBERS[part.members[name].slot]
                found.setdefault(word, []).append(value if isfinite(value) else None)
        return {key: list(dict.fromkeys(values)) for key, values in found.items()}

    def _from_weights(self, side: Side, members: Mapping[str, State]) -> float | None:
        """Measure how far an average is from its weights; None if nothing can be related."""
        tensors = self._sides[side].source.tensors
        pairs = [
            Pair(tensors[state.weight], tensors[name])
            for name, state in members.items()
            if state.weight and tensors[state.weight].shape == tensors[name].shape
        ]
        if self._shape_only or self._is_alone:
            return None
        moved = size = 0.0
        for delta in self._session(side, side, pairs, always=True).measure(pairs):
            scan = delta.measured(Scan)
            if scan is not None:
                moved += scan.square_sum
                size += scan.left_square_sum
        return sqrt(moved / size) if size > 0 and isfinite(moved / size) else None


def _aligned(left: list[_Part], right: list[_Part]) -> Iterator[tuple[_Part | None, _Part | None]]:
    """Pair the parts of both sides: by name, or as the only ones of their kind."""
    rest = {(each.kind, each.name): each for each in right}
    lefts, rights = (Counter(each.kind for each in side) for side in (left, right))
    for part in left:
        other = rest.pop((part.kind, part.name), None)
        if other is None and lefts[part.kind] == rights[part.kind] == 1:
            key = next(key for key in rest if key[0] == part.kind)
            other = rest.pop(key)
        yield part, other
    yield from ((None, part) for part in rest.values())


def _is_number(state: State) -> bool:
    return state.slot in _NUMBERS or state.slot == "power"


def _count_changed(deltas: Iterable[Delta]) -> int:
    return sum(each.kind not in SAME for each in deltas if each.pair.left and each.pair.right)


def _parsed(text: str) -> Number:
    try:
        value = float(text)
    except ValueError:
        return text
    return value if isfinite(value) else None


def _both(
    left: Mapping[str, list[Number]] | None, right: Mapping[str, list[Number]] | None
) -> dict[str, list[Number]]:
    """Put the numbers of both sides together; several values become a range."""
    names = dict.fromkeys([*(left or {}), *(right or {})])
    return {
        name: [None if side is None else _one(side.get(name, [])) for side in (left, right)]
        for name in names
    }


def _one(values: list[Number]) -> Number:
    if len(values) < 2:
        return values[0] if values else None
    if all(isinstance(each, float) for each in values):
        ordered = sorted(each for each in values if isinstance(each, float))
        return f"{number_text(ordered[0])} to {number_text(ordered[-1])}"
    return f"{len(values)} values"
