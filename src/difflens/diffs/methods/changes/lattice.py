"""Whole multiples of a step: do groups of values lie at such, and would chance put them there?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from numpy.typing import NDArray

BAR = 24.0  # bits of evidence of all values of a sample together, half of it of different codes
SLACK = 1.5  # times the error of storage that a value may be off its level
EXACT = 1e-5  # and beside it, for scales that were rounded themselves
FIRST, _HEAD = 4, 16  # groups, and values of each, that are looked at first: most steps fail there
PALETTE, FINEST = 256, 8  # values, and the bits of their codes
ANYWHERE = 0.25  # error from which a value says nothing about where it lies


class Group(NamedTuple):
    """Groups of values by rows, with the ends of each, and how far storage may put a value off."""

    values: NDArray[Any]
    low: NDArray[Any]
    high: NDArray[Any]
    largest: NDArray[Any]
    errors: NDArray[Any]  # half a unit in the last place


class Codes(NamedTuple):
    """Bits of the codes of all groups, and what they save of each value, in bits."""

    bits: float
    gain: float


def whole_multiples(group: Group) -> Codes | None:
    """Find whole multiples of a step, from zero or from the least value."""
    import numpy as np

    ends = group.errors.max(axis=1, keepdims=True)
    span = group.high - group.low
    shares = group.values / group.largest
    errors = (group.errors + np.abs(shares) * ends) / group.largest
    found = _coded(shares, errors, span / group.largest, group.values != 0)
    if found is None and (span > 0).all():
        shares = (group.values - group.low) / span
        found = _coded(
            shares,
            (group.errors + ends + 2 * shares * ends) / span,
            span / span,
            group.values != 0,
            2,
        )
    return found


def _coded(
    shares: NDArray[Any],
    errors: NDArray[Any],
    spans: NDArray[Any],
    tells: NDArray[Any],
    known: int = 1,
) -> Codes | None:
    """Return the codes that all groups have: some groups show of most that they have none."""
    import numpy as np

    for number in sorted({min(FIRST, len(shares)), len(shares)}):
        tops = _codes(shares[:number], errors[:number])
        if tops is None:
            return None
        every, different = _evidence(shares[:number], errors[:number], tops, tells[:number], known)
        if every <= 0 or different <= 0:
            return None
    if every <= BAR or different <= BAR / 2:
        return None
    levels = 1 + int(np.rint(spans * tops).max())
    bits = {2: 1.0, 3: 1.58}.get(levels, float(np.ceil(np.log2(levels))))
    return Codes(bits, every / shares.size)


def _codes(shares: NDArray[Any], errors: NDArray[Any]) -> NDArray[Any] | None:
    """Find the least code of each group's largest value at which all values have codes."""
    import numpy as np

    tops = np.arange(1, PALETTE)
    few = slice(None, None, 1 + shares.shape[1] // _HEAD)
    possible: NDArray[Any] = _is_on(shares[:, few, None] * tops, errors[:, few, None] * tops).min(
        axis=1
    )
    found = np.zeros((len(shares), 1), np.int64)
    open_ = np.arange(len(shares))
    for _ in range(4 * _HEAD):  # where more steps than these are possible, none is shown
        open_ = open_[possible[open_].any(axis=1)]
        if len(open_) + (found > 0).sum() < len(shares):
            return None
        top = tops[possible[open_].argmax(axis=1)][:, None]
        fits = _is_on(shares[open_] * top, errors[open_] * top).all(axis=1)
        found[open_[fits]] = top[fits]
        possible[open_, top[:, 0] - 1] = False
        open_ = open_[~fits]
        if not len(open_):
            return found
    return None


def _is_on(places: NDArray[Any], errors: NDArray[Any]) -> NDArray[Any]:
    """Which lie at whole numbers, within the error of storage, or could lie anywhere?"""
    import numpy as np

    allowed = SLACK * errors + EXACT
    fits: NDArray[Any] = (np.abs(places - np.rint(places)) <= allowed) | (allowed >= ANYWHERE)
    return fits


def _evidence(
    shares: NDArray[Any], errors: NDArray[Any], tops: NDArray[Any], tells: NDArray[Any], known: int
) -> tuple[float, float]:
    """Add up what chance does not do: of all values, and of each code of a group once.

    The values that the scale is from and zeros (of pruning) say nothing, and a scale takes bits.
    """
    import numpy as np

    codes = np.rint(shares * tops)
    allowed = SLACK * errors * tops + EXACT
    bits = np.where(allowed < ANYWHERE, -np.log2(2 * np.minimum(allowed, 0.5)), 0.0)
    few = tops == 1  # two codes or three: every one of them tells
    bits *= tells & ((codes != 0) | few)
    found = []
    for each in (bits, bits * (first_of_each(codes) | few)):
        scale = np.sort(each, axis=1)[:, -known:].sum(axis=1) + 2 * np.log2(tops[:, 0]) + 1
        found.append(float((each.sum(axis=1) - scale).sum()))
    return found[0], found[1]


def first_of_each(places: NDArray[Any]) -> NDArray[Any]:
    """Mark the first of equal places of a group: the others say nothing new."""
    import numpy as np

    order = np.argsort(places, axis=1, kind="stable")
    ordered = np.take_along_axis(places, order, axis=1)
    new = np.ones(places.shape, bool)
    new[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    first = np.empty_like(new)
    np.put_along_axis(first, order, new, axis=1)
    return first
