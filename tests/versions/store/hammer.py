"""Writers that die, run as a program of its own: it forks them, kills them and looks afterwards.

    python hammer.py WHAT URL [NUMBER ...]

It prints one JSON object; forking saves starting Python for each of them.
"""

import json
import os
import random
import resource
import signal
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import alembic.command  # noqa: F401  read once, not in every child
import psycopg
from forking import forked, heard
from sqlalchemy import Engine, create_engine, event

from difflens.versions.records.snapshots import ModelSnapshot
from difflens.versions.store import open_store

create_engine("sqlite://")
create_engine("postgresql+psycopg://", module=psycopg)


def snap(version: str, size: int = 0) -> ModelSnapshot:
    values: Any = {"val_accuracy": 0.5, "custom_metrics": {f"m{at}": at / 7 for at in range(5)}}
    return ModelSnapshot(name="m", version=version, metrics=values, metadata={"x": "y" * size})


def look(url: str, acknowledged: list[str]) -> dict[str, Any]:
    """Say which acknowledged snapshots are not there, and how many are."""
    start = time.perf_counter()
    with open_store(url) as store:
        seconds = time.perf_counter() - start
        checked = store.verify()
        there = {line.version for line in store.find("m", limit=1_000_000)}
    lost = [each for each in acknowledged if each not in there]
    return {"lost": lost, "there": len(there), "checked": checked, "open_s": seconds}


def kills(url: str, rounds: int) -> dict[str, Any]:
    """Kill a writer at random moments, also while it makes the store."""
    draw, total, worst, lost = random.Random(3), 0, 0.0, []
    for number in range(rounds):
        target = url if "://" in url and "sqlite" not in url else f"{url}.{number // 25}"
        acknowledged: list[str] = []

        def work(pipe: int, target: str = target, number: int = number) -> None:
            with open_store(target) as store:
                for at in range(1_000_000):
                    store.put(snap(f"{number}-{at}"))
                    os.write(pipe, f"{number}-{at}\n".encode())

        child, pipe = forked(work)
        time.sleep(draw.uniform(0, 0.12))
        os.kill(child, signal.SIGKILL)
        acknowledged, code = heard(child, pipe)
        assert code == -signal.SIGKILL, acknowledged
        found = look(target, acknowledged)
        assert found["checked"] == found["there"]
        lost += found["lost"]
        total += len(acknowledged)
        worst = max(worst, found["open_s"])
    return {"acknowledged": total, "lost": lost, "slowest_open_s": worst}


def every_call(url: str, made: int) -> dict[str, Any]:
    """Kill a writer at its first, second, third ... call to the database, until it gets through."""
    if made:
        with open_store(url) as store:
            store.put(snap("first"))
    at, outcomes = 0, []
    while True:
        at += 1

        def work(pipe: int, at: int = at) -> None:
            calls = [0]

            def strike(*_: Any) -> None:
                calls[0] += 1
                if calls[0] == at:
                    os.kill(os.getpid(), signal.SIGKILL)

            for moment in ("before_cursor_execute", "after_cursor_execute", "commit"):
                event.listen(Engine, moment, strike)
            with open_store(url) as store:
                store.put(snap("second", size=20_000))
            os.write(pipe, b"second\n")

        acknowledged, code = heard(*forked(work))
        found = look(url, acknowledged)
        assert not found["lost"]
        assert found["checked"] == found["there"] in (made, made + 1)
        outcomes.append(found["there"])
        if code == 0:
            return {"points": at, "outcomes": outcomes}


def writers(url: str, number: int, each: int) -> dict[str, Any]:
    """Let several processes write at once; say what went wrong and what is there."""

    def work(pipe: int, who: int) -> None:
        with open_store(url, patience=120) as store:
            for at in range(each):
                store.put(snap(f"{who}-{at}"))
                os.write(pipe, b".\n")

    children = [forked(partial(work, who=who)) for who in range(number)]
    ends = [heard(child, pipe) for child, pipe in children]
    troubles = [line for lines, _ in ends for line in lines if line.startswith("!")]
    with open_store(url) as store:
        lines = store.find("m", limit=number * each + 1)
    positions = {line.position for line in lines}
    return {"troubles": troubles, "codes": sorted({code for _, code in ends}),
            "there": len(lines), "positions": len(positions)}  # fmt: skip


def full(path: str, step: int) -> dict[str, Any]:
    """Let no file grow beyond a limit, the limit growing until all can be written."""
    limit, outcomes, said = 0, [], set()
    while True:
        limit += step
        url = f"{path}.{limit}"

        def work(pipe: int, url: str = url, limit: int = limit) -> None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
            with open_store(url) as store:
                for at in range(6):
                    store.put(snap(str(at), size=3000))
                    os.write(pipe, f"{at}\n".encode())

        lines, code = heard(*forked(work))
        acknowledged = [line for line in lines if not line.startswith("!")]
        said |= {line.rpartition(": ")[2] for line in lines if line.startswith("!")}
        found = look(url, acknowledged)
        assert not found["lost"], lines
        assert found["there"] >= len(acknowledged)
        outcomes.append(len(acknowledged))
        if code == 0:
            return {"outcomes": outcomes, "said": sorted(said)}


if __name__ == "__main__":
    what: dict[str, Callable[..., Any]] = {
        "kills": kills,
        "every_call": every_call,
        "writers": writers,
        "full": full,
    }
    sys.stdout.write(json.dumps(what[sys.argv[1]](sys.argv[2], *map(int, sys.argv[3:]))))
