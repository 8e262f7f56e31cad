"""Runs commands as processes of their own, and takes the best of several rounds.

Best, not mean: what disturbs a run only ever makes it slower. In turns, not one command after
the other: a machine that slows down for a while then slows down all of them.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

_RSS_UNIT = 1 if sys.platform == "darwin" else 1024  # bytes, by getrusage(2) of the system


class Unexpected(RuntimeError):
    """A command ended otherwise than it should: its time means nothing."""


class Command(NamedTuple):
    """What to run, how it must end, and how often at most."""

    argv: tuple[str, ...]
    code: int = 0
    most: int = 1000


class Run(NamedTuple):
    """One run of a command."""

    seconds: float
    cpu_seconds: float
    peak_bytes: int


class Best(NamedTuple):
    """All runs of a command, by their best time and their worst memory."""

    runs: tuple[Run, ...]

    @property
    def seconds(self) -> float:
        """The shortest wall time, start-up included."""
        return min(run.seconds for run in self.runs)

    @property
    def cpu_seconds(self) -> float:
        """The least processor time, of all threads: it tells more than wall time if others run."""
        return min(run.cpu_seconds for run in self.runs)

    @property
    def peak_bytes(self) -> int:
        """The largest resident memory any run had."""
        return max(run.peak_bytes for run in self.runs)


def best(commands: Mapping[str, Command], rounds: int, output: Path) -> dict[str, Best]:
    """Run all commands in turn, round after round; an uncounted round goes first.

    The uncounted one fills caches: pages, byte code, the processor's clock. A command that may
    run fewer than three times takes so long that it needs no such help.
    """
    runs: dict[str, list[Run]] = {name: [] for name in commands}
    for number in range(rounds + 1):
        for name, command in commands.items():
            if number == 0 and command.most < 3:
                continue
            if len(runs[name]) < min(command.most, rounds):
                run_now = run(command, output)
                if number:
                    runs[name].append(run_now)
    return {name: Best(tuple(each)) for name, each in runs.items()}


def run(command: Command, output: Path) -> Run:
    """Run a command once; what it prints goes to a file, as `cmp` reads less into /dev/null."""
    with output.open("wb") as sink:
        began = time.perf_counter()
        child = subprocess.Popen(command.argv, stdin=subprocess.DEVNULL, stdout=sink, stderr=sink)
        try:
            _, status, usage = os.wait4(child.pid, 0)
        except BaseException:
            child.kill()
            child.wait()
            raise
        seconds = time.perf_counter() - began
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != command.code:
        said = output.read_text(errors="replace")[-1000:].strip()
        line = " ".join(command.argv)
        raise Unexpected(f"{line}: exit {child.returncode}, not {command.code}: {said}")
    return Run(seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * _RSS_UNIT)
