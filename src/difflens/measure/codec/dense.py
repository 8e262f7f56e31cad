"""Many changes in the NumPy codec: interleaved rANS of tokens, the lanes of a step at once."""

from __future__ import annotations

import struct

import numpy as np
from numpy.typing import NDArray

from .bits import Reader, Words, Writer, log2
from .words import (
    CLASSES,
    Kind,
    View,
    classes_of,
    folded,
    orders,
    rest_bits,
    tokens_of,
    top_of,
    unfolded,
    values_of,
    words_from,
)

_TOKENS, _BITS, _LOWEST = 256, 12, 1 << 16
_SCALE = 1 << _BITS
_DENSE, _ALONE, _ALWAYS = 2, 3, 2
_DAMAGED = "the chunk is damaged"

Counts = NDArray[np.int64]


def encode(left: Words, right: Words, kind: Kind, back: int) -> bytes:
    """Code how far each element moved, under the class of the base's exponent."""
    view = View(kind, top_of(left, kind), 0)
    classes = classes_of(left, view)
    values = folded(left, right, kind)
    tokens = tokens_of(values)
    counts = np.bincount(classes * _TOKENS + tokens, minlength=CLASSES * _TOKENS)
    shift, counts, bits = _choose_shift(counts.reshape(CLASSES, _TOKENS), kind)
    view, classes = view._replace(shift=shift), classes >> shift
    moved = np.zeros(0, np.int64)
    if back and kind[2] and shift < 4:
        moved = np.flatnonzero(classes != classes_of(right, view))
        cost = len(moved) * (log2(len(left)) - log2(len(moved)) + 6 * 65536) if len(moved) else 0
        if back != _ALWAYS and cost > bits // 10 + 512 * 65536:
            back = 0
    writer = Writer()
    writer.put(_DENSE | shift << 3 | (back > 0) << 6, 7)
    if shift < 4:
        writer.put(view.top, kind[2])
    shares = np.array([_put_table(writer, each) for each in counts])
    if back:
        writer.put_list((np.diff(moved, prepend=-1) - 1).astype(np.uint64))
        writer.put_all(classes[moved].astype(np.uint64), 4)
    rest = Writer()
    rest.put_all(values, rest_bits(tokens).astype(np.uint64))
    return writer.to_bytes() + _put_tokens(shares, classes, tokens) + rest.to_bytes()


def encode_alone(words: Words, kind: Kind) -> bytes:
    """Code elements without a base: their top eight bits, sign last, then the others."""
    turned, low = _turned(words, kind), 8 * kind[0] - 8
    tokens = (turned >> np.uint64(low)).astype(np.int64)
    writer, rest = Writer(), Writer()
    writer.put(_ALONE | 4 << 3, 7)
    shares = np.array([_put_table(writer, np.bincount(tokens, minlength=_TOKENS))])
    rest.put_all(turned, low)
    body = _put_tokens(shares, np.zeros(len(words), np.int64), tokens)
    return writer.to_bytes() + body + rest.to_bytes()


def decode(data: bytes, base: Words, kind: Kind, backwards: bool) -> Words:
    """Move the elements of the base."""
    reader, n = Reader(data), len(base)
    reader.read(3)
    shift, can_go_back = reader.read(3), reader.read(1)
    if shift > 4 or (shift < 4 and not kind[2]):
        raise ValueError(_DAMAGED)
    if backwards and not can_go_back:
        raise ValueError("the chunk cannot be applied backwards")
    view = View(kind, reader.read(kind[2]) if shift < 4 else 0, shift)
    shares = np.array([_take_table(reader) for _ in range(CLASSES >> shift)])
    classes = classes_of(base, view)
    if can_go_back:
        moved = reader.take_list(n).astype(np.int64)
        shown = reader.take_all(len(moved), 4)
        if (shown >= CLASSES >> shift).any():
            raise ValueError(_DAMAGED)
        if backwards:
            classes[moved] = shown
    if shift == 4:
        classes[:] = 0
    elif not shares[classes].any(axis=1).all():
        raise ValueError(_DAMAGED)
    tokens = _take_tokens(reader, shares, classes)
    lengths = rest_bits(tokens)
    if (lengths > 8 * kind[0] - 2).any():
        raise ValueError(_DAMAGED)
    steps = unfolded(values_of(tokens, reader.take_all(n, lengths)))
    reader.check_end()
    return words_from(orders(base, kind) + (np.uint64(0) - steps if backwards else steps), kind)


def decode_alone(data: bytes, n: int, kind: Kind) -> Words:
    """Make elements without a base."""
    reader, low, bits = Reader(data), 8 * kind[0] - 8, 8 * kind[0]
    reader.read(3)
    if reader.read(3) != 4:
        raise ValueError(_DAMAGED)
    reader.read(1)
    tokens = _take_tokens(reader, np.array([_take_table(reader)]), np.zeros(n, np.int64))
    words = tokens.astype(np.uint64) << np.uint64(low) | reader.take_all(n, low)
    reader.check_end()
    if kind[2]:
        words = words >> np.uint64(1) | words << np.uint64(bits - 1)
    return (words & np.uint64((1 << bits) - 1)).astype(f"<u{kind[0]}")


def _turned(words: Words, kind: Kind) -> NDArray[np.uint64]:
    wide, bits = words.astype(np.uint64), 8 * kind[0]
    if not kind[2]:
        return wide
    return (wide << np.uint64(1) | wide >> np.uint64(bits - 1)) & np.uint64((1 << bits) - 1)


def _choose_shift(counts: Counts, kind: Kind) -> tuple[int, Counts, int]:
    """Choose how many classes are one context, by what the contexts and their tables take."""
    best: tuple[int, int, Counts] | None = None
    for shift in range(5):
        if shift:
            counts = counts[::2] + counts[1::2]
        if shift < 4 and not kind[2]:
            continue
        bits = sum(map(_cost, counts))
        if best is None or bits < best[0]:
            best = bits, shift, counts
    assert best is not None  # noqa: S101  shift 4 always is one
    return best[1], best[2], best[0]


def _cost(counts: Counts) -> int:
    used = [int(count) for count in counts if count]
    table = (9 + 8 * len(used)) * 65536
    if not used:
        return table
    return sum(used) * log2(sum(used)) - sum(count * log2(count) for count in used) + table


def _put_table(writer: Writer, counts: Counts) -> Counts:
    """Turn counts into shares of 4096 with five leading bits each, and write them."""
    shares, total = np.zeros(_TOKENS, np.int64), int(counts.sum())
    if not total:
        writer.put(0, 9)
        return shares
    big, used = int(np.argmax(counts)), int(np.flatnonzero(counts)[-1]) + 1
    for token in map(int, np.flatnonzero(counts)):
        share = (int(counts[token]) * _SCALE + total // 2) // total
        length = share.bit_length()
        if length > 5:
            share += (1 << (length - 5)) >> 1
            length = share.bit_length()
            share = share >> (length - 5) << (length - 5)
        shares[token] = max(share, 1)
    shares[big] = 0
    while shares.sum() > _SCALE - 1:
        shares[int(np.argmax(shares))] //= 2
    shares[big] = _SCALE - shares.sum()
    writer.put(used, 9)
    writer.put(big, 8)
    last = 0
    for token in range(used):
        if token == big:
            continue
        share = int(shares[token])
        length = share.bit_length()
        some = min(length - 1, 4)
        writer.put_step(length - last)
        last = length
        if length > 1:
            writer.put(share >> (length - 1 - some), some)
    return shares


def _take_table(reader: Reader) -> Counts:
    shares, last = np.zeros(_TOKENS, np.int64), 0
    used = reader.read(9)
    if not used:
        return shares
    big = reader.read(8)
    if used > _TOKENS or big >= used:
        raise ValueError(_DAMAGED)
    for token in range(used):
        if token == big:
            continue
        last += reader.take_step()
        if not 0 <= last <= _BITS:
            raise ValueError(_DAMAGED)
        if last:
            some = min(last - 1, 4)
            shares[token] = (reader.read(some) | 1 << some) << (last - 1 - some)
    if shares.sum() > _SCALE - 1:
        raise ValueError(_DAMAGED)
    shares[big] = _SCALE - shares.sum()
    return shares


def _lanes_of(n: int) -> int:
    return 4 if n < 4096 else 32


def _put_tokens(shares: Counts, classes: Words, tokens: Words) -> bytes:
    """Encode backwards, so that decoding runs forwards: states, then words of 16 bits."""
    n = len(tokens)
    lanes = _lanes_of(n)
    starts = np.cumsum(shares, axis=1) - shares
    share = shares[classes, tokens].astype(np.uint64)
    start = starts[classes, tokens].astype(np.uint64)
    states = np.full(lanes, _LOWEST, np.uint64)
    parts = []
    for begin in range((n - 1) // lanes * lanes, -1, -lanes):
        some, first = share[begin : begin + lanes], start[begin : begin + lanes]
        x = states[: len(some)]
        full = x >> np.uint64(20) >= some
        parts.append((x[full] & np.uint64(0xFFFF)).astype("<u2"))
        x = np.where(full, x >> np.uint64(16), x)
        states[: len(some)] = (x // some << np.uint64(_BITS)) + x % some + first
    words = np.concatenate(parts[::-1])
    return struct.pack("<I", len(words)) + states.astype("<u4").tobytes() + words.tobytes()


def _take_tokens(reader: Reader, shares: Counts, classes: Words) -> NDArray[np.int64]:
    n, at = len(classes), (reader.at + 7) // 8
    lanes, data = _lanes_of(n), reader.data
    if len(data) - at < 4 + lanes * 4:
        raise ValueError(_DAMAGED)
    (count,) = struct.unpack_from("<I", data, at)
    states = np.frombuffer(data, "<u4", lanes, at + 4).astype(np.int64)
    at += 4 + lanes * 4
    if count > n or (len(data) - at) // 2 < count or not shares.any():
        raise ValueError(_DAMAGED)
    words = np.append(np.frombuffer(data, "<u2", count, at).astype(np.int64), [0] * lanes)
    ends = np.cumsum(shares, axis=1)
    slots = np.zeros((len(shares), _SCALE), np.int64)
    for c, each in enumerate(shares):
        if each.any():
            slots[c] = np.repeat(np.arange(_TOKENS), each)
    tokens, used = np.empty(n, np.int64), 0
    for begin in range(0, n, lanes):
        context = classes[begin : begin + lanes]
        x = states[: len(context)]
        low = x & (_SCALE - 1)
        token = slots[context, low]
        share = shares[context, token]
        x = share * (x >> _BITS) + low - ends[context, token] + share
        short = np.flatnonzero(x < _LOWEST)
        x[short] = x[short] << 16 | words[used : used + len(short)]
        used = min(used + len(short), count)
        states[: len(context)] = x
        tokens[begin : begin + lanes] = token
    if used != count or (states != _LOWEST).any():
        raise ValueError(_DAMAGED)
    reader.at = (at + count * 2) * 8
    return tokens
