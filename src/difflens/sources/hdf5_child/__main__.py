"""The child's life: limits first, then h5py, then one request after another until the pipe ends."""

import codecs
import os
import resource
import signal
import time
from typing import Any

from . import attributes
from .bands import Bands
from .walk import Dataset, Walk, member
from .wire import Refusal, Remote, receive, receive_into, say

_BATCH = 500
_CACHE = 32 << 20  # unpacked chunks HDF5 itself may keep of a dataset
_MOST_NOTES = 200
_ENCODINGS = ("ascii", "latin-1", "utf-8")


def main() -> None:
    """Live."""
    os.set_blocking(2, False)  # nobody may be reading what C writes there
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    options = receive()
    _confine(options["memory"], options["seconds"])
    held = bytearray(options["size"]) if options["held"] else None
    if held is not None:
        receive_into(memoryview(held))
    try:
        _serve(options, held)
    except Refusal as refusal:
        say(error=refusal.kind, reason=refusal.reason, hint=refusal.hint)
    except MemoryError:
        say(error="limit", reason="HDF5 wants more memory for it than it may have", hint="")
    except Exception as error:  # noqa: BLE001  h5py raises whatever HDF5's stack says
        # A KeyError quotes its message.
        words = str(error.args[0] if isinstance(error, KeyError) and error.args else error)
        words = words or type(error).__name__
        say(error="corrupt", reason=f"HDF5 cannot read it: {words[:400]}", hint="")
    os._exit(0)  # HDF5 may crash when it tidies up, and there is nothing to tidy


def _confine(memory: int, seconds: int) -> None:
    """Leave no room to do harm; a system that lacks a limit does without it."""
    for name, most in (("AS", memory), ("FSIZE", 0), ("CORE", 0)):
        _limit(name, most)
    _allow(seconds)


def _limit(name: str, most: int) -> None:
    try:
        resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (most, most))
    except (AttributeError, OSError, ValueError):
        return


def _allow(seconds: int) -> None:
    """Give the next request its time: a parent that is gone cannot stop us."""
    hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
    soft = int(time.process_time()) + seconds + 2
    if hard == resource.RLIM_INFINITY or soft < hard:
        resource.setrlimit(resource.RLIMIT_CPU, (soft, hard))


def _serve(options: dict[str, Any], held: bytearray | None) -> None:
    try:
        import h5py  # type: ignore[import-untyped]
    except ImportError as error:
        raise Refusal("missing", str(error)) from error
    receive()  # asked to list: from now on what comes are the bytes we ask for
    say(at_work=0)
    for name in _ENCODINGS:
        codecs.lookup(name)  # h5py would import them when it meets a text
    _limit("NOFILE", 0)  # from here on there is no other file, whatever HDF5 is told to open
    file = h5py.File(Remote(options["size"], held), "r", rdcc_nbytes=_CACHE)
    walk, bands = Walk(file, options), Bands(file)
    _list(file, walk)
    while True:
        request = receive()
        _allow(options["seconds"])
        bands.send(walk.datasets[request["index"]], request["start"], request["stop"])


def _list(file: Any, walk: Walk) -> None:
    """Say what there is: datasets in their order, notes, what the file says of itself."""
    for batch in _batches(walk.datasets):
        say(datasets=[_entry(each) for each in batch])
    for pairs in _batches(list(walk.aliases.items())):
        say(aliases=pairs)
    notes = list(walk.left_out.items())
    weights = member(file, "model_weights")
    groups = [file] if weights is None else [file, weights]
    metadata = attributes.gathered(groups)
    say(
        end=True,
        left_out=notes[:_MOST_NOTES],
        left_out_count=len(notes),
        keras=weights is not None,
        metadata=metadata,
    )


def _batches(items: list[Any]) -> list[list[Any]]:
    return [items[at : at + _BATCH] for at in range(0, len(items), _BATCH)]


def _entry(dataset: Dataset) -> dict[str, Any]:
    return {
        "path": dataset.path,
        "dtype": dataset.coding.dtype,
        "shape": [*dataset.shape, *dataset.coding.more],
        "stored": dataset.coding.stored,
        "offset": dataset.offset,
        "direct": dataset.direct,
    }
