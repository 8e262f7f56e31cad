"""Values out of HDF5: whole chunks are unpacked at a time, and kept for what comes next."""

from collections import OrderedDict
from math import prod
from typing import Any

from .walk import Dataset
from .wire import send

_BAND = 16 << 20  # bytes unpacked at a time
_KEPT = 64 << 20
_PIECE = 1 << 20


class Bands:
    """Reads ranges of datasets in bounded memory."""

    def __init__(self, file: Any) -> None:
        """Take an open h5py file."""
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
        """Give the band that element `first` is in, and the element it begins with."""
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
        from h5py import h5d, h5s  # type: ignore[import-untyped]

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
