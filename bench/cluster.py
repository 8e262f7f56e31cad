"""The rows of Ray: what handing work out costs, and what the program that does so holds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from .cases import Bench, Missing, Row
from .files import ROOT, Pair


def _times(what: str, pair: Pair, rounds: int) -> Any:
    """Run the program in a network of its own; Ray's sockets need a short path."""
    if find_spec("ray") is None:
        raise Missing("ray is not installed")
    if str(ROOT / "tests") not in sys.path:
        sys.path.append(str(ROOT / "tests"))
    from storage.servers.network import RAY_ENVIRONMENT, isolate

    with TemporaryDirectory(prefix="ray", dir="/tmp") as home:
        folder = f"{home}/r"
        program = [sys.executable, "-m", "bench.ray_times", what, str(pair.left), str(pair.right)]
        command = isolate([*program, str(rounds), folder])
        environment = os.environ | RAY_ENVIRONMENT
        done = subprocess.run(command, env=environment, capture_output=True, cwd=ROOT, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def speed(bench: Bench) -> Iterator[Row]:
    """Does handing out cost anything? The same pair by two threads and by two workers."""
    seconds = _times("speed", bench.pair("F32"), bench.scale.rounds)
    ours, peer = median(seconds["ray"]), median(seconds["threads"])
    what = "diff on Ray, two workers, over two threads"
    yield Row("ray-speed", what, ours / peer, "x", 1.05, ours, peer,
              tuple(seconds["ray"]), tuple(seconds["threads"]))  # fmt: skip


def memory(bench: Bench) -> Iterator[Row]:
    """What does the program hold that hands the work out?"""
    count = bench.scale.many_tensors
    peaks = _times("memory", bench.files.make("many", count), 1)
    library = peaks["small on ray"] - peaks["small"]
    more = (peaks["ray"] - peaks["opening"] - library) / 1e6
    what = f"diff on Ray, {count:,} tensors, memory beyond opening and Ray's own library"
    note = ", ".join(f"{name} {peak / 1e6:.0f} MB" for name, peak in peaks.items())
    yield Row("ray-memory", what, more, "MB", 50, note=note)


ROWS = {"ray-speed": speed, "ray-memory": memory}
