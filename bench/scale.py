"""How long a diff takes on a cluster: a formula, and a simulation of every request to hold it.

`python -m bench.scale` prints the tables of docs/scale.md.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from math import ceil
from typing import NamedTuple

TB = 10**12
PIECE = 8 << 20  # bytes of a request
TASK = 256 << 20  # bytes of a task, of both sides
SIZES = (1 * TB, 10 * TB)  # bytes of both models together
NODES = (1, 2, 4, 8, 16, 32, 64)
LINKS = (25e9 / 8, 100e9 / 8)  # bytes per second of a node
SHARD = 5 * 10**9  # bytes of a file
PRICE = 0.4e-6  # US dollars for a GET in the object stores of the large clouds


class Costs(NamedTuple):
    """What was measured: see docs/scale.md."""

    latency: float = 0.05  # seconds from a request to its first byte
    connection: float = 80e6  # bytes per second of one connection
    at_once: int = 16  # requests of one worker
    transport: float = 0.84e-9  # seconds of a core for each byte that comes, over TLS
    scan: float = 0.2e-9  # seconds of a core for each byte that is compared
    task: float = 0.67e-3  # seconds of the driver for each task
    join: float = 5.0  # seconds until the driver has joined and workers have started
    opening: int = 16  # headers that are read at once
    cores: int = 32  # of a node, one worker each


MEASURED = Costs()


def opening_seconds(size: int, costs: Costs = MEASURED) -> float:
    """Return the seconds until both models are open: one request for each file."""
    rounds = ceil(ceil(size / SHARD) / costs.opening)
    return costs.join + rounds * costs.latency


def worker_rate(costs: Costs = MEASURED) -> float:
    """Return the bytes per second of one worker.

    A task waits for its first piece and then for its core; or for all pieces, and then for the
    core to take the last one.
    """
    each = costs.latency + PIECE / costs.connection
    core = costs.transport + costs.scan
    rounds = -(-TASK // PIECE // costs.at_once)
    return TASK / max(each + TASK * core, rounds * each + PIECE * core)


def seconds(size: int, nodes: int, link: float, costs: Costs = MEASURED) -> float:
    """Estimate how long a diff of so many bytes takes.

    opening + the larger of (bytes / nodes / rate of a node) and (tasks x driver) + the last task
    """
    tasks = -(-size // TASK)
    node = min(link, costs.cores * worker_rate(costs))
    work = max(size / (nodes * node), tasks * costs.task)
    return opening_seconds(size, costs) + costs.latency + work + TASK * costs.cores / node / 2


def requests(size: int) -> int:
    """Count the requests: one for each piece, and one for each file."""
    return -(-size // PIECE) + -(-size // SHARD)


def simulate(size: int, nodes: int, link: float, costs: Costs = MEASURED) -> float:
    """Follow every request of every task, and return the second in which the last one is scanned.

    A worker has some requests under way. Each waits for its first byte, then takes its time on its
    connection and its turn on the link of the node; the core takes the pieces as they come. A
    worker that is free gets the next task from the driver, which does one thing at a time.
    """
    begin = opening_seconds(size, costs)
    tasks = -(-size // TASK)
    link_free = [begin] * nodes
    workers = [_Worker(begin) for _ in range(nodes * costs.cores)]
    driver = end = begin
    # Who acts next: a worker that is free, or one of its connections that is.
    events = [(begin, number, False) for number in range(len(workers))]
    heapify(events)
    while events:
        now, number, is_request = heappop(events)
        worker = workers[number]
        if not is_request:
            if not tasks:
                continue
            tasks -= 1
            driver = max(driver, now) + costs.task
            worker.pieces = worker.left = TASK // PIECE
            worker.core = driver
            for _ in range(min(costs.at_once, worker.pieces)):
                heappush(events, (driver, number, True))
            continue
        if not worker.pieces:
            continue
        worker.pieces -= 1
        node, first = number % nodes, now + costs.latency
        link_free[node] = max(link_free[node], first) + PIECE / link
        here = max(first + PIECE / costs.connection, link_free[node])
        worker.core = max(worker.core, here) + PIECE * (costs.transport + costs.scan)
        worker.left -= 1
        heappush(events, (here, number, True))
        if not worker.left:
            end = max(end, worker.core)
            heappush(events, (worker.core, number, False))
    return end


class _Worker:
    """A core: what is left of its task, and when it has done what it was given."""

    def __init__(self, begin: float) -> None:
        self.pieces = self.left = 0  # not asked for yet; not here yet
        self.core = begin


def table() -> str:
    """Write the table: rows are numbers of nodes."""
    heads = [f"{size // TB} TB, {link * 8 / 1e9:.0f} Gb/s" for size in SIZES for link in LINKS]
    lines = ["| nodes | " + " | ".join(heads) + " |", "|---" * (len(heads) + 1) + "|"]
    for nodes in NODES:
        cells = [_time(seconds(size, nodes, link)) for size in SIZES for link in LINKS]
        lines.append(f"| {nodes} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def costs_table() -> str:
    """Write what the requests cost."""
    lines = ["| | requests | price |", "|---|---|---|"]
    for size in SIZES:
        count = requests(size)
        lines.append(f"| {size // TB} TB | {count:,} | ${count * PRICE:.2f} |")
    return "\n".join(lines)


def _time(value: float) -> str:
    return f"{value:.0f} s" if value < 120 else f"{value / 60:.0f} min"


if __name__ == "__main__":
    print(table(), costs_table(), sep="\n\n")
