"""A long text cut to a number of bytes, part by part, each saying what it left out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

_NOTE = 80  # bytes that the line about what is left out may take


class Part(NamedTuple):
    """A part of a text: only its lines may be left out, and those from its end."""

    head: Sequence[str]
    lines: Sequence[str] = ()
    tail: Sequence[str] = ()
    share: int = 0  # bytes its lines may take where there is no room for all


def fitted(parts: Sequence[Part], most: int) -> str:
    """Write the parts in order within that many bytes.

    Every part has its share; what others do not need goes to the first that want more.
    """
    fixed = sum(_size([*part.head, *part.tail, ""]) + _NOTE for part in parts)
    wanted = [_size(part.lines) for part in parts]
    granted = [min(want, part.share) for want, part in zip(wanted, parts, strict=True)]
    spare = most - fixed - sum(granted)
    for place, want in enumerate(wanted):
        more = max(0, min(want - granted[place], spare))
        granted[place] += more
        spare -= more
    written = (_cut(part, room) for part, room in zip(parts, granted, strict=True))
    return "\n\n".join(written) + "\n"


def _cut(part: Part, room: int) -> str:
    kept = 0
    for line in part.lines:
        room -= _size([line])
        if room < 0:
            break
        kept += 1
    left_out = len(part.lines) - kept
    note = ["", f"{left_out:,} lines more are left out here: `-o json` has them."]
    lines = [*part.head, *part.lines[:kept], *(note if left_out else []), *part.tail]
    return "\n".join(lines)


def _size(lines: Sequence[str]) -> int:
    return sum(len(line.encode("utf-8", "backslashreplace")) + 1 for line in lines)
