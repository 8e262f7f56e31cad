"""Tasks on a Ray cluster that is running already: it is joined, never started.

The cluster is that of RAY_ADDRESS, which `ray job submit` sets as well. A task reads about 256 MiB
by itself, with the credentials of its own machine, and returns a few hundred bytes per chunk. Ray
runs a task again whose worker died; a task that takes far longer than the others gets a twin, once
nothing is left to hand out, and the first of the two counts.
"""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, TypeVar

from difflens.core.errors import EngineError, MissingExtra
from difflens.core.protocols import Task, TaskT

from . import engine
from ._turns import Turns

Item = TypeVar("Item")
Result = TypeVar("Result")

_ADDRESS = "RAY_ADDRESS"
_PATIENCE = 3.0  # seconds that a cluster has to answer
_AHEAD = 4  # tasks for each processor that are handed out and not yet merged
_LATE = 3.0  # times as long as tasks take on average, until one gets a twin
_RETRIES = 10  # times that a task is run again because its worker died
_BASE = 256 << 20  # bytes of memory of a worker that does nothing


@engine()
class Ray:
    """Tasks on the Ray cluster of RAY_ADDRESS."""

    task_bytes = 256 << 20  # of 16 MiB each, the same work takes a third longer
    is_here = False

    def __init__(self, count: int | None = None) -> None:
        """Join nothing yet; `count` tasks run at a time, by default one for each processor."""
        self._count = count
        self._ray: Any = None

    def map(self, work: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        """Do the work on every item and yield the results in the items' order."""
        return self._results(_pack(work, item, _BASE) for item in items)

    def run(
        self, work: Callable[[TaskT], Result], tasks: Iterable[TaskT], *, remote: bool
    ) -> Iterator[Result]:
        """Do the same with tasks; a worker fetches ahead what its task reads."""
        do: Any = _Fetching(work) if remote else work
        return self._results(_pack(do, task, _BASE + task.memory_bytes) for task in tasks)

    def close(self) -> None:
        """Leave nothing behind: what was handed out is cancelled where its results are dropped."""

    def _results(self, calls: Iterable[_Call]) -> Iterator[Any]:
        if self._ray is None:
            self._ray = _join()
        ray = self._ray
        room = _Room.of(ray)
        slots = min(self._count or room.processors, room.processors)
        turns = Turns(_Cluster(ray, room), slots, slots * _AHEAD, _LATE)
        return turns.results(calls)


class _Call(NamedTuple):
    """Work on one item as it is sent, and the memory that it takes."""

    sent: bytes
    memory: int


def _pack(work: Callable[[Any], Any], item: Any, memory: int) -> _Call:
    """Pack work and item as bytes: a twin may need them, and bytes are smaller than records."""
    from ray import cloudpickle

    try:
        return _Call(cloudpickle.dumps((work, item)), memory)
    except (TypeError, AttributeError) as error:
        reason = "this model cannot be sent to a cluster"
        raise EngineError(reason, hint="run without --engine") from error


class _Fetching(NamedTuple):
    """Work on a task whose parts are fetched ahead, on the machine that does it."""

    work: Callable[[Any], Any]

    def __call__(self, task: Task) -> Any:
        from difflens.storage.read_ahead import read_ahead

        return self.work(task.with_ahead(read_ahead))


class _Room(NamedTuple):
    """What the machines of a cluster have."""

    processors: int
    memory: int  # of the largest one

    @classmethod
    def of(cls, ray: Any) -> _Room:
        """Ask which machines there are now; raise if no task can run on any of them."""
        machines = [each["Resources"] for each in ray.nodes() if each["Alive"]]
        able = [each for each in machines if each.get("CPU", 0) >= 1]
        if not able:
            hint = "start a worker node; difflens never starts one"
            raise EngineError("no machine of the Ray cluster has a processor to lend", hint=hint)
        processors = sum(int(each["CPU"]) for each in able)
        return cls(processors, int(max(each.get("memory", 0) for each in able)))


class _Cluster:
    """Hands out calls, and waits for their results."""

    def __init__(self, ray: Any, room: _Room) -> None:
        self._ray, self._room = ray, room
        self._do = ray.remote(_do)

    def start(self, call: _Call) -> Any:
        """Hand out a call; raise if no machine has the memory that it needs."""
        if call.memory > self._room.memory:
            need, most = (f"{size / 2**30:.1f} GiB" for size in (call.memory, self._room.memory))
            reason = f"a task needs {need} of memory, the largest machine of the cluster has {most}"
            raise EngineError(reason, hint="start Ray with more --memory, or run without --engine")
        options = {"num_cpus": 1, "memory": call.memory, "max_retries": _RETRIES}
        return self._do.options(**options).remote(call.sent)

    def wait(self, calls: list[Any], timeout: float | None) -> list[Any]:
        """Wait until one of the calls is done; return those that are."""
        done: list[Any] = self._ray.wait(calls, num_returns=1, timeout=timeout)[0]
        return done

    def result(self, call: Any) -> Any:
        """Return the result of a call that is done; raise what it raised."""
        errors = self._ray.exceptions
        try:
            return self._ray.get(call)
        except errors.RayTaskError as error:
            if error.cause is not None:
                raise error.cause from None
            raise EngineError(f"a task failed: {_last_line(error)}") from error
        except errors.RayError as error:
            reason = f"a task was lost after {_RETRIES} attempts: {_last_line(error)}"
            raise EngineError(reason, hint="`ray memory` and `ray status` tell more") from error

    def cancel(self, call: Any) -> None:
        """Take a call back."""
        self._ray.cancel(call)


def _do(sent: bytes) -> Any:
    """Do what was sent; it is unpacked here, so that what a file lacks is an error of the task."""
    from ray import cloudpickle

    work, item = cloudpickle.loads(sent)
    return work(item)


def _last_line(error: Exception) -> str:
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[-1].strip()


def _join() -> Any:
    """Connect to the cluster, or raise in one line why that is impossible."""
    os.environ.setdefault("RAY_IGNORE_UNHANDLED_ERRORS", "1")  # of tasks that were taken back
    try:
        import ray
    except ImportError:
        raise MissingExtra("--engine ray", "ray") from None
    if not ray.is_initialized():
        address = os.environ.get(_ADDRESS, "")
        _check_address(address)
        _check_cluster(address)
        try:
            ray.init(
                address=address, log_to_driver=False, configure_logging=False, logging_level="ERROR"
            )
        except (ConnectionError, RuntimeError, ValueError) as error:
            raise _unusable(address, str(error).strip().splitlines()[0]) from error
    # It writes what its machines complain of to stdout, which is the report's.
    ray._private.worker.print_to_stdstream = lambda *_, **__: None  # noqa: SLF001
    _check_workers(ray)
    return ray


def _unusable(address: str, reason: str) -> EngineError:
    return EngineError(f"the Ray cluster at {address} cannot be used: {reason}")


def _check_address(address: str) -> None:
    """Refuse what is no address of a cluster, and one where nobody listens."""
    if not address:
        hint = "set RAY_ADDRESS to HOST:PORT of a running cluster, or use `ray job submit`"
        raise EngineError("no Ray cluster is named: RAY_ADDRESS is not set", hint=hint)
    host, colon, port = address.rpartition(":")
    if not colon or not port.isdecimal() or "/" in host:
        hint = "`ray status` shows it; it is the HOST:PORT of `ray start --address`"
        raise EngineError(f"RAY_ADDRESS is {address!r}, expected HOST:PORT", hint=hint)
    try:
        socket.create_connection((host.strip("[]"), int(port)), _PATIENCE).close()
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise EngineError(f"no Ray cluster answers at {address}: {reason}") from error


def _check_cluster(address: str) -> None:
    """Refuse what does not answer as Ray does, and a cluster of other versions."""
    answers: list[Any] = []
    asking = threading.Thread(target=_ask_versions, args=(address, answers), daemon=True)
    asking.start()
    asking.join(_PATIENCE)
    if not answers:
        raise EngineError(f"what answers at {address} is no Ray cluster")
    import platform

    import ray

    for name, here, there in zip(
        ("Ray", "Python"), (ray.__version__, platform.python_version()), answers[0], strict=True
    ):
        if here != there:
            raise _unusable(address, f"it runs {name} {there}, this is {name} {here}")


def _ask_versions(address: str, answers: list[Any]) -> None:
    """Ask for the versions: in a thread, since an answer may take 40 s to be given up."""
    import json

    from ray._raylet import GcsClient  # type: ignore[attr-defined,unused-ignore]

    try:
        told = GcsClient(address=address).internal_kv_get(
            b"CLUSTER_METADATA", b"cluster", timeout=_PATIENCE
        )
        metadata = json.loads(told)
        answers.append((metadata["ray_version"], metadata["python_version"]))
    except Exception:  # noqa: BLE001, S110  whatever it is, it is no answer
        pass


def _check_workers(ray: Any) -> None:
    """Refuse workers without difflens, or with another version of it."""
    from difflens import __version__

    def ask() -> str:
        # Sent as it is, not by name: what is missing there cannot be imported there.
        import difflens

        return difflens.__version__

    try:
        there = ray.get(ray.remote(ask).options(num_cpus=0).remote(), timeout=60)
    except ray.exceptions.RayError as error:
        reason = f"its workers have no difflens: {_last_line(error)}"
        raise EngineError(reason, hint="install difflens on all machines of the cluster") from error
    if there != __version__:
        raise EngineError(f"the workers have difflens {there}, this is {__version__}")
