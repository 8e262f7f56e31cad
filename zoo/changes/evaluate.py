"""Builds pairs, asks about each in processes of their own, and scores the answers."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from importlib import import_module
from multiprocessing import get_context

from .answers import Claim, ask
from .bases import load
from .model import dtype_of, is_float
from .pairs import Built, Expected, Pair
from .table import Scored
from .verdicts import judge

_BY_COMMAND = 5  # every fifth pair is asked about through the command line, and all with evidence


# The module of each part, which has its `PAIRS`.
PARTS = {"dev": "dev", "second": "heldback", "fresh": "fresh"}


def pairs_of(part: str) -> list[Pair]:
    """List the pairs of a part."""
    return list(import_module(f".{PARTS[part]}", __package__).PAIRS)


def score_all(pairs: list[Pair], processes: int) -> list[Scored]:
    """Score every pair, in processes of their own; in this one where there is one."""
    places = [(each.part, index) for each, index in _places(pairs)]
    if processes < 2:
        return [_score_at(*each) for each in places]
    with ProcessPoolExecutor(processes, get_context("spawn"), _calm) as pool:
        return list(pool.map(_score_at, *zip(*places, strict=True), chunksize=8))


def _places(pairs: list[Pair]) -> Iterator[tuple[Pair, int]]:
    """Find where each pair stands in its part; functions that build do not travel."""
    order = {part: pairs_of(part) for part in {each.part for each in pairs}}
    for each in pairs:
        yield each, order[each.part].index(each)


def _calm() -> None:
    """Let each process use one thread: there is one process for each core."""
    os.environ["OMP_NUM_THREADS"] = "1"


def _score_at(part: str, index: int) -> Scored:
    return score(pairs_of(part)[index], command_line=index % _BY_COMMAND == 0)


def score(pair: Pair, *, command_line: bool = False) -> Scored:
    """Build one pair, ask about it, and hold the answer against the label."""
    start = time.perf_counter()
    built = pair.build(load(pair.base))
    ready = time.perf_counter()
    answer = ask(built, command_line=command_line or bool(built.evidence))
    verdict = judge(built.expected, answer)
    return Scored(
        pair.id, pair.part, pair.base, pair.kind, _dtype(built), verdict,
        answer.sentence, tuple(map(_claim, answer.claims)), tuple(map(_label, built.expected)),
        time.perf_counter() - ready, ready - start,
    )  # fmt: skip


def _dtype(built: Built) -> str:
    """Return the dtype that most of the right model's numbers are stored in."""
    sizes: dict[str, int] = {}
    for array in built.right.tensors.values():
        if is_float(array):
            sizes[dtype_of(array)] = sizes.get(dtype_of(array), 0) + array.size
    return max(sizes, key=lambda name: sizes[name], default="")


def _claim(each: Claim) -> str:
    count = "?" if each.names is None else len(each.names)
    return f"{each.kind} of {count} {dict(each.numbers)}"


def _label(each: Expected) -> str:
    count = "?" if each.names is None else f"{len(each.names)} to {len(each.names | each.maybe)}"
    return f"{each.kind} of {count} {dict(each.numbers)}"
