"""Bytes of a tensor out of its storage: straight where they lie as wanted, else block by block."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

from difflens.core.dtypes import BITS
from difflens.core.protocols import ModelFile

from .tensors import COMPLEX, ENCODINGS, QUANTISED, Quantiser, Tensor

if TYPE_CHECKING:
    import numpy as np

BLOCK = 1 << 23  # bytes given out that are decoded at a time


class Place(NamedTuple):
    """Where a storage's bytes are."""

    file: ModelFile
    offset: int
    size: int
    big: bool = False
    checksum: int | None = None


def given_shape(tensor: Tensor) -> tuple[int, ...]:
    """Return the shape that is shown: halves of complex128 are an axis, pairs of F4 are not.

    >>> from difflens.models.torch.tensors import Storage
    >>> given_shape(Tensor(Storage("0", 32), "complex128", 0, (2,), (1,)))
    (2, 2)
    """
    if tensor.dtype == "complex128":
        return (*tensor.shape, 2)
    if tensor.dtype == "float4_e2m1fn_x2":
        return (*tensor.shape[:-1], tensor.shape[-1] * 2)
    return tensor.shape


def lies_as_wanted(tensor: Tensor, place: Place) -> bool:
    """Can the tensor's bytes be read straight from the file?"""
    encoding = ENCODINGS[tensor.dtype]
    swapped = place.big and encoding.size != 1
    marked = tensor.conjugated or tensor.negated or tensor.dtype in QUANTISED
    widened = tensor.dtype == "complex32"
    return tensor.contiguous and not (swapped or marked or widened)


def block_elements(tensor: Tensor) -> int:
    """Say how many stored elements are decoded at a time."""
    return BLOCK // element_bytes(tensor)


def element_bytes(tensor: Tensor) -> int:
    """Return the bytes that one stored element becomes."""
    encoding = ENCODINGS[tensor.dtype]
    return max(1, BITS[encoding.dtype] * encoding.wide // 8)


def decode(
    tensor: Tensor, place: Place, first: int, last: int, scales: Quantiser | None
) -> np.ndarray[Any, Any]:
    """Return stored elements [first, last), decoded, as bytes."""
    import numpy as np

    encoding = ENCODINGS[tensor.dtype]
    begin = place.offset + tensor.storage.start
    view = (tensor.offset, tensor.shape, tensor.stride)
    raw = gather(place.file, begin, encoding.size, view, first, last)
    numbers = raw.view(f"{'>' if place.big else '<'}{encoding.numpy}")
    if place.big:
        numbers = numbers.astype(f"<{encoding.numpy}")
    with np.errstate(all="ignore"):  # infinities and NaNs of the file are its own
        if scales is not None:
            numbers = _dequantised(numbers, tensor, first, last, scales)
        if tensor.dtype == "complex32":
            numbers = numbers.astype("<f4")
    if tensor.conjugated or tensor.negated:
        _flip(numbers, tensor)
    return numbers.view("u1")


def _flip(numbers: np.ndarray[Any, Any], tensor: Tensor) -> None:
    """Turn the signs that torch only noted: of every number, of imaginary parts."""
    width = numbers.itemsize
    signs = numbers.view(f"<u{width}")
    top = 1 << (8 * width - 1)
    if tensor.negated:
        signs ^= top
    if tensor.conjugated and tensor.dtype in COMPLEX:
        signs[1::2] ^= top


def _dequantised(
    numbers: np.ndarray[Any, Any], tensor: Tensor, first: int, last: int, scales: Quantiser
) -> np.ndarray[Any, Any]:
    """Compute (q - zero) * scale as torch does: in float32."""
    import numpy as np

    if scales.axis is None:
        scale, zero = np.float32(scales.scale), np.int64(scales.zero)
    else:
        below = prod(tensor.shape[scales.axis + 1 :])
        channel = np.arange(first, last) // below % tensor.shape[scales.axis]
        scale, zero = scales.scale[channel], scales.zero[channel]
    # Float zero points come with a scheme of their own; whole ones are taken off exactly.
    exact = numbers.astype(np.int64) - zero
    return (exact.astype(np.float32) * scale).astype("<f4")


# A flat range of a tensor is cut into boxes. A box whose elements lie close together is read whole
# and picked from; one whose elements lie far apart is read run by run. So no read is longer than
# `_HULL`, whatever the strides are.

_HULL = 1 << 23  # bytes read at once
_WASTE = 1 << 13  # bytes that cost as much as a read of their own
_WORD = {1: "u1", 2: "u2", 4: "u4", 8: "u8", 16: "c16"}

Axis = tuple[int, int]  # how many, how far apart


def gather(  # noqa: PLR0917  a place, a view and a range
    file: ModelFile,
    begin: int,
    size: int,
    view: tuple[int, tuple[int, ...], tuple[int, ...]],
    first: int,
    last: int,
) -> np.ndarray[Any, Any]:
    """Return elements [first, last) of a view; `size` is that of one element in bytes."""
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
            _read_runs(file, begin + place * size, box, axes)
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
    """Read everything that a box spans, and copy its elements."""
    import numpy as np

    hull = np.empty(span, box.dtype)
    file.read_into(begin, hull.view("u1").data)
    steps = [step * hull.itemsize for _, step in axes]
    box[...] = np.lib.stride_tricks.as_strided(hull, box.shape, steps, writeable=False)


def _read_runs(
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
