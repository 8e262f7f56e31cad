"""Turns pairs into deltas: plans chunks, has an engine scan them, and puts the results together."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import NamedTuple

from msgspec.structs import replace

from difflens.core.dtypes import OPAQUE
from difflens.core.encodings import is_remote
from difflens.core.protocols import Engine, Extent, TensorSource
from difflens.core.records import Delta, Kind, Pair

from .chunks import CHUNK, Chunk, SameBytes, Side, State, same_chunk, scan_chunk
from .kernel import merge
from .scan import Scan

Progress = Callable[[int], None]

_TOGETHER = 512  # small tensors that travel as one task
_DIFFERENT = b""  # what an opaque chunk answers that is not the same on both sides


class Plan(NamedTuple):
    """What to do for one pair: its chunks, or the reason why there are none."""

    pair: Pair
    chunks: tuple[Chunk, ...] = ()
    kind: Kind | None = None
    skipped: str | None = None


class Batch(NamedTuple):
    """The chunks that one task scans."""

    chunks: list[Chunk]

    @property
    def size_bytes(self) -> int:
        """How many bytes it reads."""
        return sum(chunk.size_bytes for chunk in self.chunks)

    def extents(self) -> Iterator[Extent]:
        """Yield the ranges of remote files that it reads."""
        return chain.from_iterable(chunk.extents() for chunk in self.chunks)


class How(NamedTuple):
    """How chunks are scanned: see `Chunk`."""

    epsilon: float
    always: bool
    once: bool


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
    how = How(epsilon, always, once=is_remote(left) or is_remote(right))
    plans = (_plan(pair, left, right, how) for pair in pairs)
    for plan, states in _run(plans, engine, progress):
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
    return Plan(pair, _chunks(Side.of(left, before), Side.of(right, after), how))


def _incomparable(left: str, right: str) -> str | None:
    if left == right:
        return None
    if left in OPAQUE or right in OPAQUE:
        return f"{left} against {right}: packed floats are compared as bytes, with their own kind"
    if "C64" in (left, right):
        return f"{left} against {right}: complex numbers are compared with complex numbers only"
    return None


def _chunks(left: Side, right: Side | None, how: How) -> tuple[Chunk, ...]:
    count = left.info.count
    if 0 < count <= CHUNK:  # nearly every tensor, and there may be a million of them
        return (Chunk(left, right, 0, count, *how),)
    return tuple(
        Chunk(left, right, start, min(start + CHUNK, count), *how)
        for start in range(0, count, CHUNK)
    )


def _scan_batch(batch: Batch) -> tuple[list[State], int]:
    """Scan the chunks of one task; also say how many bytes that took."""
    return [_scan(chunk) for chunk in batch.chunks], batch.size_bytes


def _scan(chunk: Chunk) -> State:
    if chunk.left.info.dtype in OPAQUE:
        return None if same_chunk(chunk) else _DIFFERENT
    return scan_chunk(chunk)


def _run(
    plans: Iterable[Plan], engine: Engine, progress: Progress | None
) -> Iterator[tuple[Plan, list[State]]]:
    """Scan the chunks of every plan, many small ones or a part of a large one to a task."""
    waiting: deque[Plan] = deque()
    states: deque[State] = deque()

    def ready() -> Iterator[tuple[Plan, list[State]]]:
        while waiting and len(states) >= len(waiting[0].chunks):
            plan = waiting.popleft()
            yield plan, [states.popleft() for _ in plan.chunks]

    for done, size in engine.map(_scan_batch, _batches(plans, waiting)):
        states.extend(done)
        if progress:
            progress(size)
        yield from ready()
    yield from ready()


def _batches(plans: Iterable[Plan], waiting: deque[Plan]) -> Iterator[Batch]:
    batch: list[Chunk] = []
    elements = 0
    for plan in plans:
        waiting.append(plan)
        for chunk in plan.chunks:
            batch.append(chunk)
            elements += chunk.stop - chunk.start
            if elements >= CHUNK or len(batch) >= _TOGETHER:
                yield Batch(batch)
                batch, elements = [], 0
    if batch:
        yield Batch(batch)


def _complete(plan: Plan, states: list[State], engine: Engine) -> list[State]:
    """Scan the equal chunks of a tensor that differs elsewhere: its norm needs them."""
    if all(type(state) is SameBytes for state in states):
        return [None] * len(states)
    equal = [at for at, state in enumerate(states) if state is None]
    opaque = bool(plan.chunks) and plan.chunks[0].left.info.dtype in OPAQUE
    if not equal or len(equal) == len(states) or opaque:
        return states
    again = (Batch([plan.chunks[at]._replace(always=True)]) for at in equal)
    for at, (done, _) in zip(equal, engine.map(_scan_batch, again), strict=True):
        states[at] = done[0]
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
