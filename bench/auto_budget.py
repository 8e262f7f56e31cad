"""What `every="auto"` spends once it has settled, by its own clocks: is it under its budget?

`python -m bench.auto_budget [SECONDS [MODEL...]]`. On a shared machine half a percent of a loop of
a millisecond cannot be seen from outside (bench/cpu_monitor.py); the time inside the monitor's
calls on the loop's thread, and the processor time of its own thread, can be added up. Caches that
it leaves cold are not in it.
"""

# ruff: noqa: SLF001  clocks go around the hook's own calls, and it has no door for them
from __future__ import annotations

import logging
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .cpu_monitor import MODELS, trainer, work_beside

_SETTLES = 5.0  # seconds


class Spent:
    """The seconds inside some calls."""

    def __init__(self) -> None:
        """Begin with none."""
        self.seconds = 0.0

    def timed(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """Return the call with a clock around it."""

        def clocked(*given: Any, **named: Any) -> Any:
            begun = time.perf_counter()
            try:
                return call(*given, **named)
            finally:
                self.seconds += time.perf_counter() - begun

        return clocked


def row(torch: Any, name: str, seconds: float) -> str:
    """Train under `auto`, and give a line of the table."""
    from difflens.training.story import monitor

    said, make, _ = MODELS[name]
    model, optimizer, step = trainer(torch, make)
    spent = Spent()
    with (
        tempfile.TemporaryDirectory() as folder,
        monitor(model, optimizer, Path(folder) / "run") as watch,
    ):
        hook = watch._hook
        hook.before_step = spent.timed(hook.before_step)
        hook.after_step = spent.timed(hook.after_step)
        hook.before_clearing = spent.timed(hook.before_clearing)
        hook._probe._after_backward = spent.timed(hook._probe._after_backward)
        watched = spent.timed(watch.step)

        def train(until: float) -> int:
            steps = 0
            while time.perf_counter() < until:
                watched(step())
                steps += 1
            return steps

        train(time.perf_counter() + _SETTLES)
        watch.flush()
        spent.seconds, beside, begun = 0.0, work_beside(), time.perf_counter()
        steps = train(begun + seconds)
        whole = time.perf_counter() - begun
        watch.flush()
        shares = (spent.seconds / whole, (work_beside() - beside) / whole)
        every = hook._pace.sampling.every
    figures = (f"{each:.2%}" for each in (*shares, sum(shares)))
    return " | ".join((f"| {said}", f"{1e3 * whole / steps:.1f} ms", f"{every}", *figures)) + " |"


def main(arguments: list[str]) -> None:
    """Print the table."""
    import torch

    logging.getLogger("difflens").setLevel(logging.CRITICAL)
    seconds = float(arguments[0]) if arguments else 30.0
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads\n")
    print("| model | step | one step in | loop's thread | recorder and diagnoses | together |")
    print("|---|---|---|---|---|---|")
    for each in arguments[1:] or MODELS:
        print(row(torch, each, seconds), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
