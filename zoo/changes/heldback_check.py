"""`python -m zoo.changes.heldback_check`: hold the held-back labels against the numbers.

Labels are written by the edits. This looks at the two models alone, with NumPy, and asks whether
each label is true of them. Nothing of difflens takes part.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from .bases import load
from .heldback import PAIRS
from .heldback_edits import is_buffer
from .model import Array, Model, as_float, dtype_of, is_float, rounded
from .pairs import Built, Expected, Pair

Check = Callable[[Built, Expected], Iterator[str]]


def both(built: Built, each: Expected) -> Iterator[tuple[str, Array, Array]]:
    """Yield the tensors that a label names and both sides hold."""
    for name in sorted(each.names or ()):
        if name in built.left.tensors and name in built.right.tensors:
            yield name, as_float(built.left.tensors[name]), as_float(built.right.tensors[name])


def range_of(each: Expected, key: str) -> tuple[float, float]:
    """Return the least and the most that a number may be."""
    wanted: Any = each.numbers.get(key, 1)
    return wanted if isinstance(wanted, tuple) else (wanted, wanted)


def _is_within(value: float, each: Expected, key: str) -> bool:
    least, most = range_of(each, key)
    return least <= value <= most


def _is_cast(built: Built, each: Expected) -> Iterator[str]:
    to = str(each.numbers["to"])
    for name, left, right in both(built, each):
        if each.numbers.get("rounding") == "truncated":
            bits = left.astype(np.float32).view(np.uint32) & np.uint32(0xFFFF0000)
            wanted = bits.view(np.float32).astype(np.float64)
        else:
            wanted = as_float(rounded(left, to))
        if not np.array_equal(wanted, right, equal_nan=True):
            yield f"{name} is not its left side in {to}"


def _is_scaled(built: Built, each: Expected) -> Iterator[str]:
    for name, left, right in both(built, each):
        factor = float((left * right).sum() / (left * left).sum())
        rest = np.linalg.norm(right - factor * left) / np.linalg.norm(right)
        if not _is_within(factor, each, "c") or rest > 5e-3:
            yield f"{name} is {factor:.5f} times its left side, the rest is {rest:.1e}"


def _is_pruned(built: Built, each: Expected) -> Iterator[str]:
    zeros = total = 0
    for name, left, right in both(built, each):
        survivors = right != 0
        zeros, total = zeros + int((~survivors).sum()), total + right.size
        moved = np.abs(right - left)[survivors].max(initial=0) / np.abs(left).max()
        if moved > 0.01:
            yield f"{name}: what is left moved by {moved:.1e}"
    if not _is_within(zeros / total, each, "sparsity"):
        yield f"{zeros / total:.3f} is zero"


def _has_rank(built: Built, each: Expected) -> Iterator[str]:
    """Look at the spectrum of the whole difference: what is beyond the rank must be rounding."""
    least, most = (int(rank) for rank in range_of(each, "rank"))
    for name, left, right in both(built, each):
        values = np.linalg.svd((right - left).reshape(len(left), -1), compute_uv=False)
        beyond = values[most] if most < len(values) else 0.0
        if values[least - 1] <= 1.02 * beyond:
            yield f"{name}: value {least} is {values[least - 1]:.2e}, {most + 1} {beyond:.2e}"


def _is_abliterated(built: Built, each: Expected) -> Iterator[str]:
    firsts = []
    for _, left, right in both(built, each):
        firsts.append(np.linalg.svd(right - left, full_matrices=False)[0][:, 0])
    common = np.linalg.svd(np.stack(firsts, 1), compute_uv=False)[0] ** 2 / len(firsts)
    if common < 0.98:
        yield f"the common direction is {common:.3f} of all"


def _is_moved(built: Built, each: Expected) -> Iterator[str]:
    for name, left, right in both(built, each):
        if left.shape != right.shape or left.ndim < 2 or left.size < 200 or is_buffer(name):
            continue
        correlation = float(np.corrcoef(left.ravel(), right.ravel())[0, 1])
        if correlation < 0.5:
            yield f"{name} has a correlation of {correlation:.3f} with its left side"


def _is_drawn_anew(built: Built, each: Expected) -> Iterator[str]:
    for name, left, right in both(built, each):
        if left.shape == right.shape and left.size > 200:
            correlation = abs(float(np.corrcoef(left.ravel(), right.ravel())[0, 1]))
            if correlation > 5 / np.sqrt(left.size):
                yield f"{name} has a correlation of {correlation:.3f} with its left side"


def _is_reordered(built: Built, each: Expected) -> Iterator[str]:
    for name, left, right in both(built, each):
        before = np.sort(as_float(rounded(left, dtype_of(built.right.tensors[name]))).ravel())
        if not np.array_equal(before, np.sort(right.ravel())):
            yield f"{name} holds other values"


def _is_exchanged(built: Built, each: Expected) -> Iterator[str]:
    before = {name: built.left.tensors[name] for name in each.names or ()}
    for name, _, right in both(built, each):
        twins = [
            n
            for n, a in before.items()
            if a.shape == right.shape
            and np.array_equal(
                as_float(rounded(as_float(a), dtype_of(built.right.tensors[name]))), right
            )
        ]
        if not twins or twins == [name]:
            yield f"{name} is not what another tensor was"


def _is_on_grid(built: Built, each: Expected) -> Iterator[str]:
    """Count distinct values by group: no more than the bits have."""
    bits, group = sum(range_of(each, "bits")) / 2, each.numbers["group"]
    for name in sorted(each.names or each.maybe):
        right = built.right.tensors.get(name)
        if right is None or right.ndim < 2 or name.endswith("_scale"):
            continue
        values = as_float(right)
        pieces = values.reshape(1, -1) if group == "tensor" else values.reshape(len(values), -1)
        if isinstance(group, int):
            pieces = np.pad(values.ravel(), (0, -values.size % group)).reshape(-1, group)
        most = max(len(np.unique(piece)) for piece in pieces[:200])
        if most > 2 ** np.ceil(bits):
            yield f"{name} has {most} values in a group, of {bits:g} bits"


def _has_colours(built: Built, each: Expected) -> Iterator[str]:
    for name, left, right in both(built, each):
        colours = len(np.unique(right))
        if not _is_within(colours, each, "colours"):
            yield f"{name} has {colours} colours"
        if np.corrcoef(left.ravel(), right.ravel())[0, 1] < 0.8:
            yield f"{name} is not near its left side"


def _counts(built: Built, each: Expected) -> Iterator[str]:
    elements = rows = 0
    for name, left, right in both(built, each):
        start = as_float(rounded(left, dtype_of(built.right.tensors[name])))
        moved = start.reshape(len(left), -1) != right.reshape(len(left), -1)
        elements, rows = elements + int(moved.sum()), rows + int(moved.any(1).sum())
    for key, value in (("elements", elements), ("rows", rows)):
        if key in each.numbers and each.numbers[key] != value:
            yield f"{value} {key} moved, not {each.numbers[key]}"


def _is_noise(built: Built, each: Expected) -> Iterator[str]:
    for name, left, right in both(built, each):
        relative = np.sqrt(((right - left) ** 2).mean() / (left**2).mean())
        if left.size > 500 and not _is_within(relative, each, "relative"):
            yield f"{name} moved by {relative:.4f}"


def _is_stranger(built: Built, each: Expected) -> Iterator[str]:  # noqa: ARG001
    """Shared matrices may resemble each other by chance only."""
    for name, array in built.left.tensors.items():
        other = built.right.tensors.get(name)
        if other is None or other.shape != array.shape or array.ndim < 2 or not is_float(array):
            continue
        one, two = as_float(array).ravel(), as_float(other).ravel()
        if one.std() and two.std() and one.size > 2000:
            correlation = abs(float(np.corrcoef(one, two)[0, 1]))
            if correlation > 0.15:
                yield f"{name} has a correlation of {correlation:.3f}"


def _is_negative(built: Built, each: Expected) -> Iterator[str]:
    for name, left, right in both(built, each):
        if not np.array_equal(-left, right):
            yield f"{name} is not the negative of its left side"


CHECKS: dict[str, Check] = {
    "cast": _is_cast,
    "scaled": _is_scaled,
    "sign_flipped": _is_negative,
    "pruned": _is_pruned,
    "low_rank": _has_rank,
    "outer_product": _has_rank,
    "abliterated": _is_abliterated,
    "trained": _is_moved,
    "reinitialised": _is_drawn_anew,
    "head_replaced": _is_drawn_anew,
    "permuted": _is_reordered,
    "permuted_inconsistently": _is_reordered,
    "transposed": _is_reordered,
    "exchanged": _is_exchanged,
    "quantised": _is_on_grid,
    "palette": _has_colours,
    "sparse_edit": _counts,
    "row_edit": _counts,
    "noise": _is_noise,
    "unrelated": _is_stranger,
}


def _untouched(left: Model, right: Model, expected: tuple[Expected, ...]) -> Iterator[str]:
    """Find tensors that differ although no label speaks of them."""
    if any(each.names is None for each in expected):
        return
    spoken = frozenset().union(*((each.names or frozenset()) | each.maybe for each in expected))
    for name, array in left.tensors.items():
        other = right.tensors.get(name)
        same = (
            other is not None and other.dtype == array.dtype and other.tobytes() == array.tobytes()
        )
        if name not in spoken and not same:
            yield f"{name} differs, and no label names it"


def _changed_all_the_same(left: Model, right: Model) -> Iterator[str]:
    """Compare what both hold, whatever it is called; a zero's sign is no value."""
    sides = [
        sorted((array + np.zeros_like(array)).tobytes() for array in model.tensors.values())
        for model in (left, right)
    ]
    if sides[0] != sides[1]:
        yield "the sides hold other values"


def complaints(built: Built) -> Iterator[str]:
    """List what is not true of a pair although its label says so."""
    for each in built.expected:
        for line in CHECKS.get(each.kind, lambda *_: iter(()))(built, each):
            yield f"{each.kind}: {line}"
    if built.expected:
        yield from _untouched(built.left, built.right, built.expected)
    else:
        yield from _changed_all_the_same(built.left, built.right)


def check(pairs: Sequence[Pair], words: Sequence[str]) -> int:
    """Check every pair whose id has one of the words; 1 where a label is not true."""
    wrong, checked, started = 0, 0, time.perf_counter()
    for pair in pairs:
        if words and not any(word in pair.id for word in words):
            continue
        checked += 1
        for line in list(complaints(pair.build(load(pair.base))))[:3]:
            wrong += 1
            sys.stdout.write(f"{pair.id}: {line}\n")
    seconds = time.perf_counter() - started
    sys.stdout.write(f"{checked} pairs, {wrong} complaints, {seconds:.0f} s\n")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(check(PAIRS, sys.argv[1:]))
