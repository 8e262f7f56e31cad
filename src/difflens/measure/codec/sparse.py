"""Few changes in the NumPy codec: ranks within the class of the base's exponent, as Rice codes."""

from __future__ import annotations

import numpy as np

from .bits import Array, Reader, Words, Writer, lengths_of, log2, rice_parameter
from .words import CLASSES, Kind, View, classes_of, orders, top_of, words_from

_SPARSE, _LONGEST = 1, 63
_DAMAGED = "the chunk is damaged"


def encode(left: Words, right: Words, kind: Kind, back: int) -> bytes:
    """Code the ranks of changed elements within the class of the base's exponent."""
    n = len(left)
    changed = np.flatnonzero(left != right)
    if len(changed) > n // 8 + 1:
        return b""
    view = View(kind, top_of(left, kind), 0)
    classes = classes_of(left, view)
    seen = np.bincount(classes, minlength=CLASSES)
    of_class = np.bincount(classes[changed], minlength=CLASSES)
    view = view._replace(shift=_best_shift(of_class, seen, kind))
    classes >>= view.shift
    by_class = [changed[classes[changed] == c] for c in range(CLASSES >> view.shift)]
    gaps = []
    for c, places in enumerate(by_class):
        ranks = np.cumsum(classes == c)[places] - 1
        gaps.append(_gaps(ranks))
    order = np.concatenate(by_class)
    spare = 64 - 8 * kind[0]
    shifted = (orders(right[order], kind) - orders(left[order], kind)) << np.uint64(spare)
    steps = shifted.view(np.int64) >> np.int64(spare)
    writer = Writer()
    writer.put(_SPARSE | view.shift << 3 | (back > 0) << 6, 7)
    if view.shift < 4:
        writer.put(view.top, kind[2])
    _put_ranks(writer, gaps)
    writer.put_all((steps < 0).astype(np.uint64), 1)
    sizes = np.where(steps < 0, -steps, steps).view(np.uint64) - np.uint64(1)
    _put_sizes(writer, np.split(sizes, np.cumsum([len(each) for each in by_class])[:-1]))
    if back:
        _put_moved(writer, changed, classes, classes_of(right, view))
    return writer.to_bytes()


def _best_shift(of_class: Words, seen: Words, kind: Kind) -> int:
    costs = []
    for shift in range(5):
        pairs = (
            (int(of_class[c : c + (1 << shift)].sum()), int(seen[c : c + (1 << shift)].sum()))
            for c in range(0, CLASSES, 1 << shift)
        )
        costs.append(
            sum(m * (log2(n) - log2(m) + 98304) + 12 * 65536 if m else 131072 for m, n in pairs)
        )
    return costs.index(min(costs)) if kind[2] else 4


def _put_ranks(writer: Writer, gaps: list[Array]) -> None:
    length, last, parameters = 0, 0, []
    for each in gaps:
        writer.put_step(len(each).bit_length() - length)
        length = len(each).bit_length()
        parameters.append(0)
        if len(each):
            writer.put(len(each), length - 1)
            parameters[-1] = rice_parameter(each)
            writer.put_step(parameters[-1] - last)
            last = parameters[-1]
    for each, k in zip(gaps, parameters, strict=True):
        writer.put_all(each, k)
    for each, k in zip(gaps, parameters, strict=True):
        writer.put_unary(each >> np.uint64(k))


def _put_sizes(writer: Writer, by_class: list[Array]) -> None:
    """Write by how many steps: all changes of a class or, if that is less, the longer ones listed.

    The sizes are those less one; they are exponential Golomb codes.
    """
    parameters, longer, last = [], [], 0
    for each in by_class:
        k, places = _golomb_parameter(each), None
        if len(each):
            writer.put(k >= 0, 1)
        if k >= 0:
            some = np.flatnonzero(each)
            gaps, rests = _gaps(some), each[some] - np.uint64(1)
            other = max(_golomb_parameter(rests), 0)
            rice = rice_parameter(gaps)
            listed = len(gaps) * (rice + 1) + int((gaps >> np.uint64(rice)).sum()) + 16
            if listed + _golomb_bits(rests, other) < _golomb_bits(each, k):
                k, places = other, some
            writer.put(places is not None, 1)
            writer.put_step(k - last)
            last = k
        parameters.append(k)
        longer.append(places)
    for each, k, places in zip(by_class, parameters, longer, strict=True):
        if places is not None:
            writer.put_list(_gaps(places))
            _put_golomb(writer, each[places] - np.uint64(1), k)
        elif k >= 0:
            _put_golomb(writer, each, k)


def _gaps(places: Words) -> Array:
    return (np.diff(places, prepend=-1) - 1).astype(np.uint64)


def _put_golomb(writer: Writer, sizes: Array, k: int) -> None:
    rests = (sizes >> np.uint64(k)) + np.uint64(1)
    lengths = (lengths_of(rests) - 1).astype(np.uint64)
    writer.put_all(sizes, k)
    writer.put_unary(lengths)
    writer.put_all(rests, lengths)


def _golomb_bits(sizes: Array, k: int) -> int:
    rests = (sizes >> np.uint64(k)) + np.uint64(1)
    return len(sizes) * (k + 1) + 2 * int((lengths_of(rests) - 1).sum())


def _golomb_parameter(sizes: Array) -> int:
    """Choose the parameter near the mean length; -1 where each change is one step."""
    if not sizes.any():
        return -1
    middle = int(lengths_of(sizes).sum()) // len(sizes)
    return min(range(max(middle - 2, 0), min(middle, 63) + 1), key=lambda k: _golomb_bits(sizes, k))


def _put_moved(writer: Writer, changed: Words, left: Words, right: Words) -> None:
    moved = changed[left[changed] != right[changed]]
    writer.put_list(_gaps(moved))
    far = left[moved] - right[moved]
    writer.put_unary((np.abs(far) - 1).astype(np.uint64))
    writer.put_all((far < 0).astype(np.uint64), 1)


def decode(data: bytes, base: Words, kind: Kind, backwards: bool) -> Words:
    """Move the changed elements of the base."""
    reader, n = Reader(data), len(base)
    reader.read(3)
    shift, can_go_back = reader.read(3), reader.read(1)
    if shift > 4 or (shift < 4 and not kind[2]):
        raise ValueError(_DAMAGED)
    if backwards and not can_go_back:
        raise ValueError("the chunk cannot be applied backwards")
    view = View(kind, reader.read(kind[2]) if shift < 4 else 0, shift)
    ranks = _take_ranks(reader, CLASSES >> shift, n)
    total = sum(map(len, ranks))
    negative = reader.take_all(total, 1) > 0
    steps = _take_sizes(reader, [len(each) for each in ranks])
    classes = classes_of(base, view)
    if can_go_back:
        moved = reader.take_list(n).astype(np.int64)
        far = reader.take_unary(len(moved)).astype(np.int64) + 1
        far = np.where(reader.take_all(len(moved), 1) > 0, -far, far)
        if (np.abs(far) > CLASSES).any():
            raise ValueError(_DAMAGED)
        if backwards:
            far += classes[moved]
            if (far < 0).any() or (far >= CLASSES >> shift).any():
                raise ValueError(_DAMAGED)
            classes[moved] = far
    reader.check_end()
    places = []
    for c, each in enumerate(ranks):
        members = np.flatnonzero(classes == c)
        if len(each) and int(each[-1]) >= len(members):
            raise ValueError(_DAMAGED)
        places.append(members[each.astype(np.int64)])
    order = np.concatenate(places)
    steps = np.where(negative != backwards, np.uint64(0) - steps, steps)
    out = base.copy()
    out[order] = words_from(orders(base[order], kind) + steps, kind)
    return out


def _take_ranks(reader: Reader, used: int, n: int) -> list[Array]:
    length, last, total = 0, 0, 0
    counts, parameters = [], []
    for _ in range(used):
        length += reader.take_step()
        if not 0 <= length <= 23:
            raise ValueError(_DAMAGED)
        counts.append(reader.read(length - 1) | 1 << (length - 1) if length else 0)
        parameters.append(0)
        total += counts[-1]
        if length:
            last += reader.take_step()
            parameters[-1] = last
            if not 0 <= last <= 31:
                raise ValueError(_DAMAGED)
    if total > n:
        raise ValueError(_DAMAGED)
    rests = [reader.take_all(count, k) for count, k in zip(counts, parameters, strict=True)]
    return [reader.places(each, k, n) for each, k in zip(rests, parameters, strict=True)]


def _take_sizes(reader: Reader, counts: list[int]) -> Array:
    """Return by how many steps each change is."""
    parameters, last = [], 0
    for count in counts:
        has_sizes = count > 0 and reader.read(1) > 0
        listed = reader.read(1) if has_sizes else 0
        if has_sizes:
            last += reader.take_step()
            if not 0 <= last <= _LONGEST:
                raise ValueError(_DAMAGED)
        parameters.append((last if has_sizes else -1, listed))
    parts = []
    for count, (k, listed) in zip(counts, parameters, strict=True):
        sizes = np.ones(count, np.uint64)
        if listed:
            places = reader.take_list(count).astype(np.int64)
            sizes[places] = _take_golomb(reader, len(places), k) + np.uint64(1)
        elif k >= 0:
            sizes = _take_golomb(reader, count, k)
        parts.append(sizes)
    return np.concatenate(parts)


def _take_golomb(reader: Reader, count: int, k: int) -> Array:
    low = reader.take_all(count, k)
    lengths = reader.take_unary(count)
    if (lengths > _LONGEST).any():
        raise ValueError(_DAMAGED)
    rests = reader.take_all(count, lengths.astype(np.int64)) | np.uint64(1) << lengths
    return ((rests - np.uint64(1)) << np.uint64(k) | low) + np.uint64(1)
