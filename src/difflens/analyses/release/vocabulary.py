"""Whether the tokens, the special ones and the rows of the embedding agree, and what changed."""

from __future__ import annotations

from typing import NamedTuple

from ...diffs import Diff
from ...evidences import Evidence, Side
from ..representations.vocabulary import embedding_table, readable

_SHOWN = 3  # tokens that are named


class Agreement(NamedTuple):
    """What does not fit between one side's tokens and its embedding; None where nothing is known.

    `rows` is None where the model has no embedding of tokens.
    """

    rows: int | None
    tokens: int | None
    faults: tuple[str, ...] = ()


class Change(NamedTuple):
    """How the two vocabularies differ: tokens added, gone, at another row; special ones that moved.

    None where a side's tokens are not known.
    """

    added: int
    removed: int
    moved: int
    special: tuple[str, ...]


def agreement(diff: Diff, evidence: Evidence) -> Agreement:
    """Hold the right side's tokens against the rows of its embedding."""
    table = embedding_table(diff) if diff.pairs else None
    rows = table.right.shape[0] if table else None
    side = evidence.right
    if side.tokens is None:
        return Agreement(rows, None)
    return Agreement(rows, len(side.tokens), tuple(_faults(side, rows)) if rows else ())


def _faults(side: Side, rows: int) -> list[str]:
    tokens, special = side.tokens or {}, side.special_tokens or {}
    outside = [name for name, row in tokens.items() if not 0 <= row < rows]
    faults = [f"{len(outside)} tokens have no row: {_some(outside)}"] * bool(outside)
    lost = [name for name, row in special.items() if not 0 <= row < rows]
    faults += [f"special tokens have no row: {_some(lost)}"] * bool(lost)
    other = [name for name, row in special.items() if name in tokens and tokens[name] != row]
    faults += [f"special tokens stand at two ids: {_some(other)}"] * bool(other)
    return faults


def change(evidence: Evidence) -> Change | None:
    """Compare the tokens of both sides, by name."""
    left, right = evidence.left, evidence.right
    if left.tokens is None or right.tokens is None:
        return None
    before, after = left.tokens, right.tokens
    special = _special(left, right) if left.special_tokens is not None else ()
    return Change(
        len(after.keys() - before.keys()),
        len(before.keys() - after.keys()),
        sum(after.get(name, row) != row for name, row in before.items()),
        special,
    )


def _special(left: Side, right: Side) -> tuple[str, ...]:
    before, after = left.special_tokens or {}, right.special_tokens or {}
    return tuple(sorted(name for name, row in before.items() if after.get(name) != row))


def _some(names: list[str]) -> str:
    shown = ", ".join(readable(name) for name in names[:_SHOWN])
    return shown + (", ..." if len(names) > _SHOWN else "")
