"""The child's life: limits first, then h5py, then one request after another until the pipe ends."""

import codecs
import os
import resource
import signal
import time
from collections import OrderedDict
from math import prod
from typing import Any

from .coding import gather_attributes
from .walk import Dataset, Walk, member
from .wire import Refusal, Remote, receive, receive_into, say, send

_BATCH = 500
_CACHE = 32 << 20  # unpacked chunks HDF5 itself may keep of a dataset
_MOST_NOTES = 200
_ENCODINGS = ("ascii", "latin-1", "utf-8")


def main() -> None:
    """Serve one file until the pipe ends."""
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
    """Set the time limit of the next request: a parent that is gone cannot stop us."""
    hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
    soft = int(time.process_time()) + seconds + 2
    if hard == resource.RLIM_INFINITY or soft < hard:
        resource.setrlimit(resource.RLIMIT_CPU, (soft, hard))


def _serve(options: dict[str, Any], held: bytearray | None) -> None:
    try:
        import h5py
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
    metadata = gather_attributes(groups)
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


_BAND = 16 << 20  # bytes unpacked at a time
_KEPT = 64 << 20
_PIECE = 1 << 20


class Bands:
    """Reads ranges of datasets in bounded memory."""

    def __init__(self, file: Any) -> None:
        """Store an open h5py file."""
        self._file = file
        self._kept: OrderedDict[tuple[str, int], tuple[int, memoryview]] = OrderedDict()

    def send(self, dataset: Dataset, start: int, stop: int) -> None:
        """Send bytes [start, stop) of the tensor as it is shown."""
        item = dataset.coding.item
        while start < stop:
            begin, band = self._band(dataset, start // item, -(-stop // item))
            part = band[start - begin * item : stop - begin * item]
            for at in range(0, len(part), _PIECE):
                piece = part[at : at + _PIECE]
                send(b"d", len(piece), 0, piece)
            start += len(part)

    def _band(self, dataset: Dataset, first: int, last: int) -> tuple[int, memoryview]:
        """Return the band that element `first` is in, and the element it begins with."""
        for key, (count, band) in self._kept.items():
            if key[0] == dataset.path and key[1] <= first < key[1] + count:
                self._kept.move_to_end(key)
                return key[1], band
        begin, starts, counts = _cut(dataset, first, last)
        band = self._unpack(dataset, starts, counts)
        self._kept[dataset.path, begin] = prod(counts), band
        while sum(len(kept) for _, kept in self._kept.values()) > _KEPT and len(self._kept) > 1:
            self._kept.popitem(last=False)
        return begin, band

    def _unpack(self, dataset: Dataset, starts: list[int], counts: list[int]) -> memoryview:
        """Read a box without any conversion of HDF5's; turn and swap it ourselves."""
        import numpy as np
        from h5py import h5d, h5s

        step = -1 if dataset.turned else 1
        counts = counts[::step]
        opened = h5d.open(self._file.id, dataset.path.encode("utf-8", "surrogateescape"))
        values = np.empty(counts, f"V{dataset.coding.item}")
        if counts:
            space = opened.get_space()
            space.select_hyperslab(tuple(starts[::step]), tuple(counts))
            opened.read(h5s.create_simple(tuple(counts)), space, values, opened.get_type())
        else:
            opened.read(h5s.ALL, h5s.ALL, values, opened.get_type())
        flat = np.ascontiguousarray(values.T if dataset.turned else values).reshape(-1)
        if dataset.coding.swap:
            flat = flat.view(f"u{dataset.coding.swap}").byteswap()
        return memoryview(flat.view("u1").data)


def _cut(dataset: Dataset, first: int, last: int) -> tuple[int, list[int], list[int]]:
    """Choose a box whose elements are neighbours in C order: its first element, place and size."""
    shape, item = dataset.shape, dataset.coding.item
    if not shape:
        return 0, [], []
    axis, inner = 0, prod(shape[1:])
    while inner * item > _BAND and axis < len(shape) - 1:
        axis += 1
        inner = prod(shape[axis + 1 :])
    most = max(1, _BAND // (inner * item))
    # Without chunks a turned dataset lies across the file: few wide reads beat many narrow ones.
    step = min(most, dataset.chunk[axis] if dataset.chunk else most if dataset.turned else 1)
    row = first // inner
    lead, at = divmod(row, shape[axis])
    wanted = -(-last // inner) - row
    begin = at // step * step
    length = min(-(-(at - begin + wanted) // step) * step, most // step * step)
    end = min(begin + length, shape[axis])
    places: list[int] = []
    for size in reversed(shape[:axis]):
        lead, place = divmod(lead, size)
        places.insert(0, place)
    inside = shape[axis + 1 :]
    starts = [*places, begin, *(0 for _ in inside)]
    counts = [*(1 for _ in places), end - begin, *inside]
    return (row - at + begin) * inner, starts, counts
