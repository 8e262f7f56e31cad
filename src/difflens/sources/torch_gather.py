"""Elements that do not lie one after another, gathered in C order within bounded memory.

A flat range of a tensor is cut into boxes. A box whose elements lie close together is read whole
and picked from; one whose elements lie far apart is read run by run. So no read is longer than
`_HULL`, whatever the strides are.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import TYPE_CHECKING, Any

from ..protocols import ModelFile

if TYPE_CHECKING:
    import numpy as np

_HULL = 1 << 23  # bytes read at once
_WASTE = 1 << 13  # bytes that cost as much as a read of their own
_WORD = {1: "u1", 2: "u2", 4: "u4", 8: "u8", 16: "c16"}

Axis = tuple[int, int]  # how many, how far apart


def gather(  # noqa: PLR0917  a place, a view and a range
    file: ModelFile, begin: int, size: int, view: tuple[int, tuple[int, ...], tuple[int, ...]],
    first: int, last: int,
) -> np.ndarray[Any, Any]:  # fmt: skip
    """Give elements [first, last) of a view; `size` is that of one element in bytes."""
    import numpy as np

    offset, shape, stride = view
    out = np.empty(last - first, _WORD[size])
    done = 0
    for index, counts in boxes(shape, first, last):
        place = offset + sum(i * step for i, step in zip(index, stride, strict=True))
        axes = tuple(zip(counts, stride, strict=True))
        length = prod(counts)
        _fill(file, begin, out[done : done + length].reshape(counts), place, axes)
        done += length
    return out


def boxes(
    shape: tuple[int, ...], first: int, last: int
) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Cut a flat range into boxes, in order: where each begins, and its lengths.

    >>> list(boxes((3, 4), 3, 9))
    [((0, 3), (1, 1)), ((1, 0), (1, 4)), ((2, 0), (1, 1))]
    """
    below = [prod(shape[at + 1 :]) for at in range(len(shape))]
    while first < last:
        index = tuple(first // inner % length for inner, length in zip(below, shape, strict=True))
        counts = tuple(1 for _ in shape)
        taken = 1
        for at, inner in enumerate(below):
            if first % inner == 0 and last - first >= inner:
                whole = min((last - first) // inner, shape[at] - index[at])
                counts = (*(1 for _ in range(at)), whole, *shape[at + 1 :])
                taken = whole * inner
                break
        yield index, counts
        first += taken


def _fill(
    file: ModelFile, begin: int, out: np.ndarray[Any, Any], place: int, axes: tuple[Axis, ...]
) -> None:
    """Fill a box: run by run where these lie far apart, else whole, in parts that are not long."""
    size = out.itemsize
    todo = [(out, place, axes)]
    while todo:
        box, place, axes = todo.pop()
        span = sum((count - 1) * step for count, step in axes) + 1
        if _is_sparse(axes, span, size):
            _take_runs(file, begin + place * size, box, axes)
            continue
        if span * size <= _HULL:
            _pick(file, begin + place * size, box, span, axes)
            continue
        longest = max(range(len(axes)), key=lambda at: (axes[at][0] > 1, axes[at][1]))
        count, step = axes[longest]
        for at, end in ((0, count // 2), (count // 2, count)):
            part = box[(slice(None),) * longest + (slice(at, end),)]
            cut = (*axes[:longest], (end - at, step), *axes[longest + 1 :])
            todo.append((part, place + at * step, cut))


def _is_sparse(axes: tuple[Axis, ...], span: int, size: int) -> bool:
    """Would reading the whole span waste more than reading run by run?"""
    distinct = prod(count for count, step in axes if step)
    run = next((count for count, step in axes if step == 1 and count > 1), 1)
    return (span - distinct) * size > _WASTE * (distinct // run)


def _pick(
    file: ModelFile, begin: int, box: np.ndarray[Any, Any], span: int, axes: tuple[Axis, ...]
) -> None:
    """Read all a box spans, and take what it holds."""
    import numpy as np

    hull = np.empty(span, box.dtype)
    file.read_into(begin, hull.view("u1").data)
    steps = [step * hull.itemsize for _, step in axes]
    box[...] = np.lib.stride_tricks.as_strided(hull, box.shape, steps, writeable=False)


def _take_runs(
    file: ModelFile, begin: int, box: np.ndarray[Any, Any], axes: tuple[Axis, ...]
) -> None:
    """Read the elements that lie side by side, run after run: the axis of step 1 turned last."""
    import numpy as np

    along = next((at for at, (count, step) in enumerate(axes) if step == 1 and count > 1), None)
    order = [at for at in range(len(axes)) if at != along] + ([] if along is None else [along])
    places = np.zeros(1, np.int64)
    for at in order[: len(order) - (along is not None)]:
        count, step = axes[at]
        places = (places[:, None] + np.arange(count) * (step * box.itemsize)).reshape(-1)
    turned = box.transpose(order)
    runs = np.empty(turned.shape, box.dtype)
    view = runs.reshape(-1).view("u1").data
    length = len(view) // len(places)
    read_into = file.read_into
    for at, place in zip(range(0, len(view), length), places.tolist(), strict=True):
        read_into(begin + place, view[at : at + length])
    turned[...] = runs
