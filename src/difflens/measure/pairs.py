"""Turns pairs into deltas: plans chunks, has an engine scan them, and puts the results together."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, groupby
from math import inf
from typing import Any, NamedTuple, Self

from msgspec.structs import replace

from difflens.core.dtypes import OPAQUE
from difflens.core.encodings import has_same_bytes, is_remote
from difflens.core.protocols import Ahead, Engine, Extent, TensorSource
from difflens.core.records import Delta, Kind, Pair

from .chunks import CHUNK, Chunk, SameBytes, Side, State, same_chunk, scan_chunk
from .kernel import merge
from .scan import Scan

Progress = Callable[[int], None]

_TOGETHER = 512  # chunks that one task has at most: each has a cost of its own
_MEMORY = 512 << 20  # bytes that scanning takes, whatever is scanned
_DIFFERENT = b""  # what an opaque chunk answers that is not the same on both sides


class Plan(NamedTuple):
    """What to do for one pair: its chunks, or the reason why there are none."""

    pair: Pair
    chunks: tuple[Chunk, ...] = ()
    kind: Kind | None = None
    skipped: str | None = None


def _in_turn(chunks: Iterable[Any], _extents: object) -> Iterable[Any]:
    return chunks


class Batch(NamedTuple):
    """The chunks that one task scans."""

    chunks: list[Chunk]
    size_bytes: int
    ahead: Ahead = _in_turn

    @property
    def memory_bytes(self) -> int:
        """How much memory it takes: for what is read ahead and for steps."""
        return _MEMORY

    @property
    def is_tiny(self) -> bool:
        """Is nearly all of its work Python's own, for which threads only wait for each other?"""
        return len(self.chunks) > _TOGETHER // 2

    def extents(self) -> Iterator[Extent]:
        """Yield the ranges of remote files that it reads."""
        return chain.from_iterable(chunk.extents() for chunk in self.chunks)

    def with_ahead(self, ahead: Ahead) -> Self:
        """Return the same batch, which fetches its chunks ahead."""
        return self._replace(ahead=ahead)


class How(NamedTuple):
    """How chunks are scanned (see `Chunk`); tensors larger than `longest` are read only once."""

    epsilon: float
    always: bool
    longest: float


def deltas(
    pairs: Iterable[Pair],
    left: TensorSource,
    right: TensorSource,
    engine: Engine,
    *,
    epsilon: float = 0.0,
    always: bool = False,
    progress: Progress | None = None,
) -> Iterator[Delta]:
    """Measure pair after pair, and yield their deltas in order.

    Tensors that hold the same bytes on both sides get statistics only if `always`.
    """
    remote = is_remote(left) or is_remote(right)
    longest = 0 if remote else inf if engine.is_here else engine.task_bytes
    how = How(epsilon, always, longest)
    plans = (_plan(pair, left, right, how) for pair in pairs)
    for plan, states in _run(plans, engine, progress, remote=remote):
        delta = _delta(plan, _complete(plan, states, engine), epsilon)
        yield _with_tiny_values(delta, plan)


def _plan(pair: Pair, left: TensorSource, right: TensorSource, how: How) -> Plan:
    before, after = pair.left, pair.right
    if before is None or after is None:
        info = before or after
        if info is None or info.dtype in OPAQUE:
            return Plan(pair, kind="removed" if before else "added")
        side = Side.of(left if before else right, info)
        chunks = _chunks(side, None, how._replace(always=True))
        return Plan(pair, chunks, "removed" if before else "added")
    if before.shape != after.shape:
        return Plan(pair, kind="reshaped")
    reason = _incomparable(before.dtype, after.dtype)
    if reason:
        return Plan(pair, kind="uncompared", skipped=reason)
    sides = Side.of(left, before), Side.of(right, after)
    is_known = before.dtype == after.dtype and not how.always
    if is_known and has_same_bytes(sides[0].encoding, sides[1].encoding):
        return Plan(pair, kind="identical")
    return Plan(pair, _chunks(*sides, how))


def _incomparable(left: str, right: str) -> str | None:
    if left == right:
        return None
    if left in OPAQUE or right in OPAQUE:
        return f"{left} against {right}: packed floats are compared as bytes, with their own kind"
    if "C64" in (left, right):
        return f"{left} against {right}: complex numbers are compared with complex numbers only"
    return None


def _chunks(left: Side, right: Side | None, how: How) -> tuple[Chunk, ...]:
    count, epsilon, always = left.info.count, how.epsilon, how.always
    once = left.info.size_bytes * 2 > how.longest
    if 0 < count <= CHUNK:  # nearly every tensor, and there may be a million of them
        return (Chunk(left, right, 0, count, epsilon, always, once),)
    return tuple(
        Chunk(left, right, start, min(start + CHUNK, count), epsilon, always, once)
        for start in range(0, count, CHUNK)
    )


def _scan_batch(batch: Batch) -> tuple[list[State], int]:
    """Scan the chunks of one task; also say how many bytes that took."""
    states = [_scan(chunk) for chunk in batch.ahead(batch.chunks, Chunk.extents)]
    if None in states and any(chunk.start for chunk in batch.chunks):
        _complete_here(batch.chunks, states)
    return states, batch.size_bytes


def _complete_here(chunks: list[Chunk], states: list[State]) -> None:
    """Scan the equal chunks of each tensor of which another chunk in here differs."""
    begin = 0
    for _, group in groupby(chunks, lambda chunk: id(chunk.left)):
        end = begin + len(list(group))
        if end - begin > 1 and any(states[begin:end]):
            for at in range(begin, end):
                if states[at] is None:
                    states[at] = _scan(chunks[at]._replace(always=True))
        begin = end


def _scan(chunk: Chunk) -> State:
    if chunk.left.info.dtype in OPAQUE:
        return None if same_chunk(chunk) else _DIFFERENT
    return scan_chunk(chunk)


def _run(
    plans: Iterable[Plan], engine: Engine, progress: Progress | None, *, remote: bool
) -> Iterator[tuple[Plan, list[State]]]:
    """Scan the chunks of every plan, many small ones or a part of a large one to a task."""
    waiting: deque[Plan] = deque()
    states: deque[State] = deque()

    def ready() -> Iterator[tuple[Plan, list[State]]]:
        while waiting and len(states) >= len(waiting[0].chunks):
            plan = waiting.popleft()
            yield plan, [states.popleft() for _ in plan.chunks]

    batches = _batches(plans, waiting, engine.task_bytes)
    for done, size in _scan_batches(batches, engine, remote=remote):
        states.extend(done)
        if progress:
            progress(size)
        yield from ready()
    yield from ready()


def _scan_batches(
    batches: Iterable[Batch], engine: Engine, *, remote: bool
) -> Iterator[tuple[list[State], int]]:
    """Have the engine scan them; threads get no tiny ones, these are scanned here."""
    is_local = engine.is_here and not remote
    for is_tiny, group in groupby(batches, lambda batch: is_local and batch.is_tiny):
        if is_tiny:
            yield from map(_scan_batch, group)
        else:
            yield from engine.run(_scan_batch, group, remote=remote)


def _batches(plans: Iterable[Plan], waiting: deque[Plan], wanted: int) -> Iterator[Batch]:
    """Put chunks together that read as many bytes as are wanted of a task."""
    batch: list[Chunk] = []
    size = effort = 0
    for plan in plans:
        waiting.append(plan)
        if batch and len(plan.chunks) > 1 and _fits(plan, wanted, effort):
            yield Batch(batch, size)
            batch, size, effort = [], 0, 0
        for chunk in plan.chunks:
            batch.append(chunk)
            here = chunk.size_bytes
            size += here
            effort += max(here, wanted // _TOGETHER)
            if effort >= wanted:
                yield Batch(batch, size)
                batch, size, effort = [], 0, 0
    if batch:
        yield Batch(batch, size)


def _fits(plan: Plan, wanted: int, effort: int) -> bool:
    """Does it fit into a task of its own, and not into what is left of this one?"""
    size = sum(chunk.size_bytes for chunk in plan.chunks)
    return size <= wanted < effort + size


def _complete(plan: Plan, states: list[State], engine: Engine) -> list[State]:
    """Scan the equal chunks of a tensor that differs elsewhere: its norm needs them."""
    if len(states) == 1:  # nearly every tensor
        return [None] if type(states[0]) is SameBytes else states
    if all(type(state) is SameBytes for state in states):
        return [None] * len(states)
    equal = [at for at, state in enumerate(states) if state is None]
    opaque = bool(plan.chunks) and plan.chunks[0].left.info.dtype in OPAQUE
    if not equal or len(equal) == len(states) or opaque:
        return states
    again = (plan.chunks[at]._replace(always=True) for at in equal)
    for at, state in zip(equal, engine.map(_scan, again), strict=True):
        states[at] = state
    return states


def _delta(plan: Plan, states: list[State], epsilon: float) -> Delta:
    pair = plan.pair
    if _DIFFERENT in states:
        dtype = pair.left.dtype if pair.left else ""
        return Delta(pair, "uncompared", skipped=f"{dtype} is compared as bytes, and they differ")
    whole = _merged(states)
    if whole is None:
        same_dtype = pair.left and pair.right and pair.left.dtype == pair.right.dtype
        measures = () if same_dtype or plan.kind else (Scan(),)
        kind: Kind = plan.kind or ("identical" if same_dtype else "recast")
        return Delta(pair, kind, measures, plan.skipped)
    info = pair.left or pair.right
    shape, parts = (info.shape, 2 if info.dtype == "C64" else 1) if info else ((), 1)
    scan = Scan.of_state(whole, shape, parts, pair.transform)
    return Delta(pair, plan.kind or _kind(pair, scan, epsilon), (scan,), plan.skipped)


def _with_tiny_values(delta: Delta, plan: Plan) -> Delta:
    """Measure again what is so small that its squares vanished."""
    scan = delta.measured(Scan)
    if scan is None or not scan.may_be_tiny:
        return delta
    from .tiny import with_tiny_values  # hardly any tensor needs it

    known = with_tiny_values(scan, plan.chunks[0].left, plan.chunks[0].right)
    return delta if known is scan else replace(delta, measures=(known,))


def _merged(states: list[State]) -> bytes | bytearray | None:
    known = [state for state in states if state is not None]
    if len(known) < 2:
        return known[0] if known else None
    whole = bytearray(known[0])
    for state in known[1:]:
        merge(whole, state)
    return whole


def _kind(pair: Pair, scan: Scan, epsilon: float) -> Kind:
    if _is_recast(pair):
        return "recast"
    if scan.changed == 0:
        return "identical"
    return "within_epsilon" if epsilon > 0 and scan.over_epsilon == 0 else "changed"


def _is_recast(pair: Pair) -> bool:
    """Is it stored in another dtype? What was decoded to one has no dtype of its own to compare."""
    left, right = pair.left, pair.right
    if left is None or right is None or left.stored or right.stored:
        return False
    return left.dtype != right.dtype


def oddity(delta: Delta) -> str | None:
    """Say what is odd about a tensor's values, if anything is."""
    scan = delta.measured(Scan)
    if scan is None:
        return None
    is_pair = delta.pair.left and delta.pair.right
    odd = scan.left_odd + (scan.right_odd if is_pair else 0)
    if not odd:
        return None
    return f"{delta.name}: {odd} BOOL bytes are neither 0 nor 1, and count as true"
