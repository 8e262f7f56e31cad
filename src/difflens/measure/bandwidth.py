"""What this machine can do: bytes it reads and operations it does in a second, measured here.

Reading is timed, not copying: a copy writes as well, and its figure would promise twice as much.
Memory: one buffer of `SIZE` bytes.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from time import perf_counter

SIZE = 1 << 28  # bytes: larger than any cache
_SIDE = 1024
_ROUNDS = 5


def hardware(size: int = SIZE, threads: int | None = None) -> dict[str, float]:
    """Measure `bandwidth_bytes` and `peak_flops`, the best of some rounds; takes about a second."""
    return {"bandwidth_bytes": read_bandwidth(size, threads), "peak_flops": peak_flops()}


def read_bandwidth(size: int = SIZE, threads: int | None = None) -> float:
    """Measure how many bytes a second are read when a large buffer is summed up by all cores."""
    import numpy as np

    count = threads or os.cpu_count() or 1
    parts = np.array_split(np.ones(size // 8), count)
    with ThreadPoolExecutor(count) as pool:
        return size / _best(lambda: list(pool.map(np.sum, parts)))


def peak_flops(side: int = _SIDE) -> float:
    """Measure how many operations a second a product of two float32 matrices does."""
    import numpy as np

    left = np.ones((side, side), np.float32)
    return 2.0 * side**3 / _best(lambda: left @ left)


def _best(work: Callable[[], object]) -> float:
    """Return the shortest of some rounds, in seconds; the first warms up and is not counted."""
    work()
    times = []
    for _ in range(_ROUNDS):
        begin = perf_counter()
        work()
        times.append(perf_counter() - begin)
    return max(min(times), 1e-9)
