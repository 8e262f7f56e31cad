"""The kernels that look at many tensors on a GPU, in Triton's dialect.

Gradients are summed in floats, a piece at a time, and once more in doubles where a piece asks for
it: its largest value leaves no room for its square (gradients of 1e-25 are what a vanishing layer
shows), or it holds a NaN. Doubles throughout would take four times as long. Weights and their
moves are summed in doubles: that pass waits for memory whatever it adds. The bodies are plain
functions until `kernels` is called, so that nothing imports Triton before a GPU is watched.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    tl: Any
    careful: Any

CHUNK, BLOCK = 1 << 15, 1 << 10  # elements of a program, and of one turn of its loop
SMALL_CHUNK = 1 << 12  # of a program that reads a sample: there are too few for longer ones
WARPS = 4


# Triton allows no annotation but its own, and wants a kernel to be one function.
def _careful(values, start, count, CHUNK: tl.constexpr, BLOCK: tl.constexpr):
    """Sum up one piece in doubles, over finite values but for the squares."""
    squares = tl.zeros([BLOCK], tl.float64)
    sizes = tl.zeros([BLOCK], tl.float64)
    largest = tl.zeros([BLOCK], tl.float64)
    odd = tl.zeros([BLOCK], tl.int32)
    zeros = tl.zeros([BLOCK], tl.int32)
    for offset in range(0, CHUNK, BLOCK):
        at = start + offset + tl.arange(0, BLOCK)
        wide = tl.load(values + at, mask=at < count, other=0.0).to(tl.float64)
        squares += wide * wide
        finite = tl.abs(wide) < float("inf")
        size = tl.where(finite, tl.abs(wide), 0.0)
        sizes += size
        largest = tl.maximum(largest, size)
        odd += tl.where(finite, 0, 1)
        zeros += ((wide == 0.0) & (at < count)).to(tl.int32)
    not_finite = tl.sum(odd).to(tl.float64)
    zero = tl.sum(zeros).to(tl.float64)
    return tl.sum(squares), tl.sum(sizes), tl.max(largest), not_finite, zero


def _gradients(
    addresses,
    counts,
    owners,
    starts,
    partials,
    KIND: tl.constexpr,
    ALIGNED: tl.constexpr,
    CHUNK: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Sum up one piece of one gradient."""
    piece = tl.program_id(0)
    tensor = tl.load(owners + piece)
    start = tl.multiple_of(tl.load(starts + piece), BLOCK)
    count = tl.load(counts + tensor)
    values = tl.load(addresses + tensor).to(tl.pointer_type(KIND))
    if ALIGNED:
        values = tl.multiple_of(values, 16)
    lanes = tl.arange(0, BLOCK)
    squares = tl.zeros([BLOCK], tl.float32)
    sizes = tl.zeros([BLOCK], tl.float32)
    largest = tl.zeros([BLOCK], tl.float32)
    zeros = tl.zeros([BLOCK], tl.int32)
    # A piece that is full needs no mask; a mask would keep its loads from being wide.
    if start + CHUNK <= count:
        for offset in range(0, CHUNK, BLOCK):
            value = tl.load(values + start + offset + lanes).to(tl.float32)
            size = tl.abs(value)
            squares += value * value
            sizes += size
            largest = tl.maximum(largest, size)
            zeros += (value == 0.0).to(tl.int32)
    else:
        for offset in range(0, CHUNK, BLOCK):
            at = start + offset + lanes
            value = tl.load(values + at, mask=at < count, other=0.0).to(tl.float32)
            size = tl.abs(value)
            squares += value * value
            sizes += size
            largest = tl.maximum(largest, size)
            zeros += ((value == 0.0) & (at < count)).to(tl.int32)
    square = tl.sum(squares.to(tl.float64))
    magnitude = tl.sum(sizes.to(tl.float64))
    most = tl.max(largest).to(tl.float64)
    zero = tl.sum(zeros).to(tl.float64)
    odd = square * 0.0
    easy = (square < 1e36) & (most < 1e16) & ((most > 1e-12) | (square + most == 0.0))
    if KIND == tl.float64:  # noqa: SIM300  what is constant stands behind
        easy = easy & (most < 0.0)
    if easy == 0:
        square, magnitude, most, odd, zero = careful(values, start, count, CHUNK, BLOCK)
    out = partials + piece * 6
    tl.store(out, square)
    tl.store(out + 1, magnitude)
    tl.store(out + 2, most)
    tl.store(out + 3, odd)
    tl.store(out + 4, zero)
    tl.store(out + 5, square * 0.0)


# Of each stretch of `spread` blocks one is read, and the copy has no other. Which one differs from
# stretch to stretch: always the first would be the same columns of every row.
def _weights(
    addresses,
    counts,
    owners,
    starts,
    partials,
    spreads,
    many,
    KIND: tl.constexpr,
    ALIGNED: tl.constexpr,
    CHUNK: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Sum up one piece of one weight, and how far it moved; its copy is refreshed."""
    piece = tl.program_id(0)
    tensor = tl.load(owners + piece)
    start = tl.multiple_of(tl.load(starts + piece), BLOCK)
    count = tl.load(counts + tensor)
    spread = tl.load(spreads + tensor)
    values = tl.load(addresses + tensor).to(tl.pointer_type(KIND))
    copies = tl.load(addresses + many + tensor).to(tl.pointer_type(KIND))
    if ALIGNED:
        values = tl.multiple_of(values, 16)
        copies = tl.multiple_of(copies, 16)
    lanes = tl.arange(0, BLOCK)
    squares = tl.zeros([BLOCK], tl.float64)
    moves = tl.zeros([BLOCK], tl.float64)
    if start + CHUNK <= count:
        for offset in range(0, CHUNK, BLOCK):
            stretch = (start + offset) // BLOCK
            chosen = (((stretch * 2654435761) & 0xFFFFFFFF) >> 16) * spread >> 16
            there = tl.multiple_of((stretch * spread + chosen) * BLOCK, BLOCK) + lanes
            value = tl.load(values + there)
            before = tl.load(copies + start + offset + lanes)
            tl.store(copies + start + offset + lanes, value)
            wide = value.to(tl.float64)
            move = wide - before.to(tl.float64)
            squares += wide * wide
            moves += move * move
    else:
        for offset in range(0, CHUNK, BLOCK):
            stretch = (start + offset) // BLOCK
            chosen = (((stretch * 2654435761) & 0xFFFFFFFF) >> 16) * spread >> 16
            there = (stretch * spread + chosen) * BLOCK + lanes
            at = start + offset + lanes
            inside = at < count
            value = tl.load(values + there, mask=inside, other=0.0)
            before = tl.load(copies + at, mask=inside, other=0.0)
            tl.store(copies + at, value, mask=inside)
            wide = value.to(tl.float64)
            move = wide - before.to(tl.float64)
            squares += wide * wide
            moves += move * move
    square = tl.sum(squares)
    out = partials + piece * 6
    tl.store(out, square)
    for column in tl.static_range(1, 5):
        tl.store(out + column, square * 0.0)
    tl.store(out + 5, tl.sum(moves))


def _fold(partials, first, rows, out):
    """Add up the pieces of one tensor, in an order that is always the same."""
    tensor = tl.program_id(0)
    start, stop = tl.load(first + tensor), tl.load(first + tensor + 1)
    columns = tl.arange(0, 8)[None, :]
    lanes = tl.arange(0, 128)[:, None]
    total = tl.zeros([128, 8], tl.float64)
    largest = tl.zeros([128, 8], tl.float64)
    for piece in range(start, stop, 128):
        there = (columns < 6) & (piece + lanes < stop)
        value = tl.load(partials + (piece + lanes) * 6 + columns, mask=there, other=0.0)
        total += value
        largest = tl.maximum(largest, value)
    found = tl.where(tl.arange(0, 8) == 2, tl.max(largest, 0), tl.sum(total, 0))
    row = tl.load(rows + tensor)
    tl.store(out + row * 6 + tl.arange(0, 8), found, mask=tl.arange(0, 8) < 6)


@cache
def kernels() -> tuple[Any, Any, Any]:
    """Return the kernels for gradients and weights, and the one that adds up."""
    global tl, careful  # noqa: PLW0603  Triton finds what a body names among its globals
    import triton  # type: ignore[import-not-found, import-untyped, unused-ignore]
    import triton.language as tl  # type: ignore[import-not-found, import-untyped, unused-ignore]

    careful = triton.jit(_careful)
    return triton.jit(_gradients), triton.jit(_weights), triton.jit(_fold)


def kind_of(dtype: Any) -> Any:
    """Return Triton's name of a dtype of torch; None if the kernels cannot read it."""
    kernels()
    return {
        "torch.float64": tl.float64,
        "torch.float32": tl.float32,
        "torch.float16": tl.float16,
        "torch.bfloat16": tl.bfloat16,
    }.get(str(dtype))
