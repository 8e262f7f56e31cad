"""The two kernels that look at many tensors on a GPU, in Triton's dialect.

Squares are summed in doubles: those of gradients of 1e-25 are no floats, and the time goes into
reading memory, not into adding. The bodies are plain functions until `kernels` is called, so that
nothing imports Triton before a GPU is watched.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    tl: Any

CHUNK, BLOCK = 1 << 15, 1 << 11  # elements of a program, and of one turn of its loop


# Triton allows no annotation but its own, and wants a kernel to be one function.
def _look(  # type: ignore[no-untyped-def]  # noqa: ANN202, C901, PLR0912, PLR0915, PLR0917
    addresses, counts, owners, starts, partials, many, pieces, grid,  # noqa: ANN001
    KIND: tl.constexpr, MOVING: tl.constexpr, ALIGNED: tl.constexpr,  # noqa: N803
    CHUNK: tl.constexpr, BLOCK: tl.constexpr,  # noqa: N803
):  # fmt: skip
    """Sum up pieces of tensors, one after the other, and with MOVING refresh their copies."""
    if KIND == "fp64":
        kind = tl.float64
    elif KIND == "fp32":
        kind = tl.float32
    elif KIND == "fp16":
        kind = tl.float16
    else:
        kind = tl.bfloat16
    lanes = tl.arange(0, BLOCK)
    for piece in range(tl.program_id(0), pieces, grid):
        tensor = tl.load(owners + piece)
        start = tl.multiple_of(tl.load(starts + piece), BLOCK)
        count = tl.load(counts + tensor)
        values = tl.load(addresses + tensor).to(tl.pointer_type(kind))
        copies = values
        if MOVING:
            copies = tl.load(addresses + many + tensor).to(tl.pointer_type(kind))
        if ALIGNED:
            values = tl.multiple_of(values, 16)
            copies = tl.multiple_of(copies, 16)
        squares = tl.zeros([BLOCK], tl.float64)
        moves = tl.zeros([BLOCK], tl.float64)
        sizes = tl.zeros([BLOCK], tl.float64)
        largest = tl.zeros([BLOCK], tl.float64)
        zeros = tl.zeros([BLOCK], tl.int32)
        odd = tl.zeros([BLOCK], tl.int32)
        whole = start + CHUNK <= count
        for offset in range(0, CHUNK, BLOCK):
            at = start + offset + lanes
            # A piece that is full needs no mask; a mask would keep its loads from being wide.
            if whole:
                value = tl.load(values + at)
            else:
                value = tl.load(values + at, mask=at < count, other=0.0)
            wide = value.to(tl.float64)
            squares += wide * wide
            size = tl.abs(wide)
            finite = size < float("inf")
            odd += tl.where(finite, 0, 1)
            if MOVING:
                if whole:
                    before = tl.load(copies + at)
                    tl.store(copies + at, value)
                else:
                    before = tl.load(copies + at, mask=at < count, other=0.0)
                    tl.store(copies + at, value, mask=at < count)
                move = wide - before.to(tl.float64)
                moves += move * move
            else:
                size = tl.where(finite, size, 0.0)
                largest = tl.maximum(largest, size)
                sizes += size
                zeros += tl.where((wide == 0.0) & (at < count), 1, 0)
        out = partials + piece * 6
        tl.store(out, tl.sum(squares))
        tl.store(out + 1, tl.sum(sizes))
        tl.store(out + 2, tl.max(largest))
        tl.store(out + 3, tl.sum(odd).to(tl.float64))
        tl.store(out + 4, tl.sum(zeros).to(tl.float64))
        tl.store(out + 5, tl.sum(moves))


def _fold(partials, first, rows, out):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Add up the pieces of one tensor, in their order."""
    tensor = tl.program_id(0)
    start, stop = tl.load(first + tensor), tl.load(first + tensor + 1)
    columns = tl.arange(0, 8)
    there = columns < 6
    total = tl.zeros([8], tl.float64)
    largest = tl.zeros([8], tl.float64)
    for piece in range(start, stop):
        value = tl.load(partials + piece * 6 + columns, mask=there, other=0.0)
        total += value
        largest = tl.maximum(largest, value)
    row = tl.load(rows + tensor)
    tl.store(out + row * 6 + columns, tl.where(columns == 2, largest, total), mask=there)


@cache
def kernels() -> tuple[Any, Any]:
    """Compile on first use, and give the one that looks and the one that adds up."""
    global tl  # noqa: PLW0603  Triton finds its language among the globals of the body
    import triton
    import triton.language as tl

    return triton.jit(_look), triton.jit(_fold)
