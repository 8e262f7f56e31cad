"""Writers that die, run as a program of its own: it forks them, kills them and looks afterwards.

    python hammer.py WHAT FOLDER [NUMBER ...]

It prints one JSON object; forking saves starting Python for each of them.
"""

import json
import os
import random
import signal
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from forking import forked, heard

from difflens.core.errors import RunError
from difflens.training.history.building import Builder
from difflens.training.history.reader import RunReader
from difflens.training.history.writer import RunWriter, file_of
from difflens.training.records.runs import Layer, RunInfo

_LAYERS = 50
_PAGE = os.sysconf("SC_PAGE_SIZE")


def info(rank: int = 0, ranks: int = 1) -> RunInfo:
    layers = tuple(Layer(f"layer.{i}.weight", (64, 64)) for i in range(_LAYERS))
    return RunInfo(layers=layers, rank=rank, ranks=ranks)


def block(sequence: int) -> np.ndarray:
    """Return layers by which a frame can be told from every other one."""
    return np.full((7, _LAYERS), sequence % 16_777_216, np.float32)


def look(path: Path) -> tuple[list[int], list[str]]:
    """Return the sequence numbers that are there, and whatever is not as it was written."""
    if not path.exists():
        return [], []
    try:
        with RunReader(path) as reader:
            found, wrong = [], []
            for frame in reader.frames():
                found.append(frame.sequence)
                if not np.array_equal(frame.layers, block(frame.sequence)):
                    wrong.append(f"frame {frame.sequence} is torn")
            return found, wrong + reader.damage
    except RunError as error:
        begun = "not whole yet" in str(error) or "is empty" in str(error)
        return [], [] if begun else [str(error)]


def kills(folder: str, rounds: int) -> dict[str, Any]:
    """Kill a writer at random moments, also while it makes or continues the run."""
    draw = random.Random(3)
    total, lost, gaps, wrong, slowest = 0, 0, 0, [], 0.0
    for number in range(rounds):
        target = f"{folder}/{number // 10}"

        def work(pipe: int, target: str = target) -> None:
            with RunWriter(target, info(), resume=True) as writer:
                while True:
                    sequence = writer.append(writer.sequence, {"loss": 1.0}, block(writer.sequence))
                    os.write(pipe, b"%d\n" % sequence)

        child, pipe = forked(work)
        time.sleep(draw.uniform(0, 0.06))
        os.kill(child, signal.SIGKILL)
        acknowledged, code = heard(child, pipe)
        assert code == -signal.SIGKILL, acknowledged
        start = time.perf_counter()
        found, faults = look(file_of(target))
        slowest = max(slowest, time.perf_counter() - start)
        there = set(found)
        lost += sum(int(each) not in there for each in acknowledged)
        gaps += found != list(range(len(found)))
        wrong += faults
        total += len(acknowledged)
    return {"acknowledged": total, "lost": lost, "gaps": gaps, "wrong": wrong, "slowest_s": slowest}


def writers(folder: str, number: int, each: int, ranks: int) -> dict[str, Any]:
    """Let processes write at once, ranks of one run or runs of their own, with readers beside."""
    places = [
        (f"{folder}/run", info(i, number)) if ranks else (f"{folder}/run{i}", info())
        for i in range(number)
    ]

    def write(pipe: int, place: tuple[str, RunInfo]) -> None:
        with RunWriter(*place) as writer:
            for _ in range(each):
                writer.append(writer.sequence, {"loss": 1.0}, block(writer.sequence))
        os.write(pipe, b"done\n")

    def follow(pipe: int, path: Path) -> None:
        while not path.exists() or path.stat().st_size < 20_000:
            time.sleep(0.001)
        seen, until = 0, time.monotonic() + 60
        with RunReader(path) as reader:
            while seen < each and time.monotonic() < until:
                for frame in reader.frames():
                    assert frame.sequence == seen, (frame.sequence, seen, reader.damage)
                    seen += 1
        os.write(pipe, b"%d %d\n" % (seen, len(reader.damage)))

    children = [forked(partial(write, place=place)) for place in places]
    first = [file_of(place, about.rank) for place, about in places[:4]]
    following = [forked(partial(follow, path=path)) for path in first]
    troubles = [line for child in children for line in heard(*child)[0] if line != "done"]
    followed = [line for child in following for line in heard(*child)[0]]
    frames = [look(file_of(place, about.rank)) for place, about in places]
    right = all(found == (list(range(each)), []) for found in frames)
    return {"troubles": troubles, "followed": followed, "right": right}


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * _PAGE


def soak(folder: str, frames: int, memory: int) -> dict[str, Any]:
    """Write, follow and gather as fast as it goes, and look at the memory."""
    writer = RunWriter(folder, info())
    reader = RunReader(writer.path)
    builder = Builder(info(), memory=memory)
    steps, early, open_files = np.zeros(frames, np.float32), 0, 0
    for i in range(frames):
        layers = block(i)
        start = time.perf_counter()
        writer.append(i, {"loss": 1.0 / (i + 1), "lr": 0.1}, layers)
        steps[i] = time.perf_counter() - start
        if i % 10 == 9:
            for frame in reader.frames():
                builder.add(frame)
        if i == frames // 10:
            early, open_files = resident(), len(list(Path("/proc/self/fd").iterdir()))
    growth = resident() - early
    opened = len(list(Path("/proc/self/fd").iterdir())) - open_files
    history = builder.history()
    writer.close()
    p50, p99 = np.percentile(steps, [50, 99])
    return {
        "frames": history.frames, "points": len(history.course), "growth_bytes": growth,
        "opened": opened, "p50_us": 1e6 * float(p50), "p99_us": 1e6 * float(p99),
        "highest": float(history.extremes.highest.max()), "dropped": history.dropped,
    }  # fmt: skip


if __name__ == "__main__":
    what: dict[str, Callable[..., Any]] = {"kills": kills, "writers": writers, "soak": soak}
    print(json.dumps(what[sys.argv[1]](sys.argv[2], *map(int, sys.argv[3:]))))  # noqa: T201
