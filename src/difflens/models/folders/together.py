"""Opens the files of one model: remote ones at the same time, since each takes a round trip."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, suppress
from typing import Protocol, TypeVar

from difflens.core.addresses import Address, Location
from difflens.core.errors import ModelError
from difflens.storage.places import open_small

_AT_ONCE = 32


class Closable(Protocol):
    """What was opened."""

    def close(self) -> None:
        """Close it."""


OpenT = TypeVar("OpenT", bound=Closable)


def open_together(
    open_one: Callable[[Location], OpenT], locations: Sequence[Location]
) -> list[OpenT]:
    """Open every location, and return what was opened in the same order.

    If some cannot be opened, the error of the first of them is raised and the others are closed.
    """
    threads = min(_AT_ONCE, sum(isinstance(each, Address) for each in locations))
    if threads < 2:
        return _open_in_turn(open_one, locations)
    pool = ThreadPoolExecutor(threads, thread_name_prefix="difflens-open")
    futures = [pool.submit(open_one, each) for each in locations]
    try:
        return [future.result() for future in futures]
    except BaseException:
        for future in futures:
            if not future.cancel():
                future.add_done_callback(_close)
        raise
    finally:
        pool.shutdown(wait=False)  # after Ctrl-C or an error nobody waits for a slow server


def read_together(paths: Iterable[Location]) -> None:
    """Read small remote files at the same time, for those who open them next."""
    with suppress(ModelError):  # whoever opens it says what is wrong with it
        open_together(open_small, [path for path in paths if isinstance(path, Address)])


def _open_in_turn(
    open_one: Callable[[Location], OpenT], locations: Sequence[Location]
) -> list[OpenT]:
    with ExitStack() as opened:
        files: list[OpenT] = []
        for location in locations:
            files.append(open_one(location))
            opened.callback(files[-1].close)
        opened.pop_all()
    return files


def _close(future: Future[OpenT]) -> None:
    if not future.cancelled() and future.exception() is None:
        future.result().close()
