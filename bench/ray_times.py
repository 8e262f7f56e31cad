"""Times diffs on a Ray cluster of its own and on threads, in turns; prints JSON.

usage: python -m bench.ray_times speed|memory LEFT RIGHT ROUNDS FOLDER
It runs in a network namespace: Ray listens on all interfaces. Everything is in one process, as in
a program that works on a cluster all day: joining takes seconds, once.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from time import monotonic, sleep
from typing import Any

_PORT = 6391
_WORKERS = 2


def _start(folder: str) -> subprocess.Popen[bytes]:
    options = ["--head", "--node-ip-address=127.0.0.1", f"--port={_PORT}", "--block"]
    options += [f"--num-cpus={_WORKERS}", "--object-store-memory=83886080"]
    options += ["--include-dashboard=false", "--disable-usage-stats", "--temp-dir", folder]
    quiet: Any = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    # Ray gives its workers less of the processors than others have, unless it is told not to.
    fair = os.environ | {"RAY_worker_niceness": "0"}
    ray = str(Path(sys.executable).with_name("ray"))
    process = subprocess.Popen([ray, "start", *options], env=fair, **quiet)
    sleep(8)
    return process


def _seconds(left: str, right: str, engine: str) -> float:
    from difflens.diffs import story

    begin = monotonic()
    for _ in story.diff(left, right, engine=engine, threads=_WORKERS).stream():
        pass
    return monotonic() - begin


def _peak(left: str, right: str, *options: str) -> int:
    """Return the peak memory of a command's own process in bytes."""
    command = [sys.executable, "-m", "difflens", "diff", left, right, "-q", *options]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, _, usage = os.wait4(process.pid, 0)

    return usage.ru_maxrss * 1024


def _small(folder: Path) -> list[str]:
    """Write two models of one number: a diff of them on Ray is Ray's own library in memory."""
    header = b'{"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}'
    paths = [folder / f"small-{at}.safetensors" for at in (0, 1)]
    for at, path in enumerate(paths):
        path.write_bytes(len(header).to_bytes(8, "little") + header + bytes([0, 0, 0, 64 + at]))
    return [str(path) for path in paths]


def _speed(left: str, right: str, rounds: int) -> dict[str, list[float]]:
    both: dict[str, list[float]] = {"threads": [], "ray": []}
    for engine in both:
        _seconds(left, right, engine)  # workers start, and pages are in memory
    for _ in range(rounds):
        for engine, seconds in both.items():
            seconds.append(_seconds(left, right, engine))
    return both


def main(what: str, left: str, right: str, rounds: str, folder: str) -> None:
    """Measure, and print what came out."""
    cluster = _start(folder)
    os.environ["RAY_ADDRESS"] = f"127.0.0.1:{_PORT}"
    try:
        if what == "speed":
            told: Any = _speed(left, right, int(rounds))
        else:
            told = {
                "opening": _peak(left, right, "--shape-only"),
                "threads": _peak(left, right),
                "ray": _peak(left, right, "--engine", "ray"),
                "small": _peak(*_small(Path(folder).parent)),
                "small on ray": _peak(*_small(Path(folder).parent), "--engine", "ray"),
            }
    finally:
        cluster.terminate()
        cluster.wait()
    print(json.dumps(told))


if __name__ == "__main__":
    main(*sys.argv[1:])
