"""Rows of an embedding: which mean the same on both sides, a sample of them, unused ones."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from difflens.core.dtypes import FLOATS, OPAQUE
from difflens.core.records import TensorInfo
from difflens.measure.embeddings import picked_rows, row_squares
from difflens.models.anatomy.roles import role
from difflens.models.anatomy.settings import settings

from ..diff import Diff
from ..evidence.records import Evidence

if TYPE_CHECKING:
    from numpy.typing import NDArray


_TOKENS = re.compile(
    r"(?:^|[._])(?:embed_tokens|wte|word_embeddings?|tok_embeddings|token_embd|embed_in|shared"
    r"|token_embeddings?|tok_emb)[._]"
)
_OTHERS = re.compile(r"pos|wpe|token_type|patch|time|segment|rotary|norm|proj")
_HEAD_ROLE = "head"


class Table(NamedTuple):
    """A matrix with one row a token (or class) on both sides; `name` is its delta's."""

    name: str
    left: TensorInfo
    right: TensorInfo
    identical: bool


class Alignment(NamedTuple):
    """Rows of the left and of the right that mean the same; `by` says how that is known."""

    left: NDArray[Any]
    right: NDArray[Any]
    by: str
    tokens: list[str] | None
    added: list[str] | None
    removed: list[str] | None


def embedding_table(diff: Diff) -> Table | None:
    """Find the token embedding that both sides have, told by name; the largest where several."""
    named = [each for each in _tables(diff) if _TOKENS.search(each.right.name.lower())]
    if not named:
        named = [each for each in _tables(diff) if _is_embedding(each.right.name)]
    return max(named, key=lambda each: each.right.count, default=None)


def class_table(diff: Diff) -> Table | None:
    """Find the output head that both sides have: one row a class."""
    heads = [each for each in _tables(diff) if role(each.right.name) == _HEAD_ROLE]
    return max(heads, key=lambda each: each.right.count, default=None)


def aligned(table: Table, evidence: Evidence, *, same_prefix: bool) -> Alignment | str:
    """Pair up the rows by token, or by place where nothing says otherwise; else why not.

    Token strings are compared as bytes: readers have undone what each kind of tokenizer writes
    for spaces and control characters.
    """
    import numpy as np

    rows = table.left.shape[0], table.right.shape[0]
    left, right = evidence.left.tokens, evidence.right.tokens
    if left is not None and right is not None:
        return _by_token(left, right, rows)
    if rows[0] != rows[1] and not same_prefix:
        return (
            f"{rows[0]} and {rows[1]} rows, and no tokenizer says which mean the same"
            " (`same_prefix` in the policy asserts that the first ones do)"
        )
    places = np.arange(min(rows))
    by = "row numbers: no two tokenizers were handed in, and there are as many rows"
    if rows[0] != rows[1]:
        by = "row numbers of the first ones: the policy asserts `same_prefix`"
    return Alignment(places, places, by, None, None, None)


def readable(token: str) -> str:
    """Show a token, kept as the latin-1 text of its bytes, as the text it stands for."""
    return token.encode("latin-1", "replace").decode("utf-8", "backslashreplace")


def _by_token(left: dict[str, int], right: dict[str, int], rows: tuple[int, int]) -> Alignment:
    import numpy as np

    both = [
        (row, right[token], token)
        for token, row in left.items()
        if token in right and 0 <= row < rows[0] and 0 <= right[token] < rows[1]
    ]
    both.sort()
    return Alignment(
        np.array([row for row, _, _ in both], np.int64),
        np.array([row for _, row, _ in both], np.int64),
        f"token strings: {len(both)} are in both tokenizers",
        [readable(token) for _, _, token in both],
        [readable(token) for token in right if token not in left],
        [readable(token) for token in left if token not in right],
    )


def _tables(diff: Diff) -> Iterable[Table]:
    for delta in diff.deltas:
        left, right = delta.pair.left, delta.pair.right
        if left and right and _is_table(left) and _is_table(right):
            yield Table(delta.name, left, right, delta.kind == "identical")


def _is_table(info: TensorInfo) -> bool:
    numbers = info.dtype in FLOATS and info.dtype not in OPAQUE and info.dtype != "C64"
    return numbers and len(info.shape) == 2 and min(info.shape) > 0


def _is_embedding(name: str) -> bool:
    return role(name) == "embedding" and not _OTHERS.search(name.lower())


SEED = 0


class Sample(NamedTuple):
    """Rows of both sides that mean the same: which of the alignment they are, and their values."""

    chosen: NDArray[Any]
    left: NDArray[Any]
    right: NDArray[Any]
    dropped: int

    def unit(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return both sides with rows of length one."""
        return _unit(self.left), _unit(self.right)


def sampled(diff: Diff, table: Table, rows: Alignment, most: int) -> Sample:
    """Draw at most that many aligned rows; those with a zero or non-finite row are left out."""
    import numpy as np

    chosen = np.arange(len(rows.left))
    if len(chosen) > most:
        chosen = np.sort(np.random.default_rng(SEED).choice(len(chosen), most, replace=False))
    left = picked_rows(diff.values("left", table.left.name), rows.left[chosen])
    right = left
    if not (table.identical and np.array_equal(rows.left, rows.right)):
        right = picked_rows(diff.values("right", table.right.name), rows.right[chosen])
    usable = _usable(left) & _usable(right)
    dropped = int(len(chosen) - usable.sum())
    if dropped:
        chosen, left, right = chosen[usable], left[usable], right[usable]
    return Sample(chosen, left, right, dropped)


def _usable(rows: NDArray[Any]) -> NDArray[Any]:
    import numpy as np

    return np.asarray(np.isfinite(rows).all(axis=1) & rows.any(axis=1))


def _unit(rows: NDArray[Any]) -> NDArray[Any]:
    """Scale rows to length one; by their largest first, so that none overflows."""
    import numpy as np

    scaled = rows / np.abs(rows).max(axis=1, keepdims=True)
    return np.asarray(scaled / np.linalg.norm(scaled, axis=1, keepdims=True))


# A row drawn as N(0, s²) in n dimensions has a length near s sqrt(n), within about s / sqrt(2)
# (Land and Bartolo 2024 look for such rows to find tokens that were never trained). What s was
# is in the config; without it only rows of zeros are named.

_DEVIATIONS = 3.0


def unused_rows(
    diff: Diff, table: Table, evidence: Evidence, most: int
) -> tuple[dict[str, dict[str, Any]], list[str]]:
    """Count them on each side, list the first, and say what was assumed."""
    found: dict[str, dict[str, Any]] = {}
    lines = []
    squares = None
    for side, info in (("left", table.left), ("right", table.right)):
        if squares is None or not table.identical:
            squares = row_squares(diff.values(side, info.name))  # type: ignore[arg-type]
        deviation = _deviation(diff, evidence, side)
        found[side] = _unused(squares, info.shape[1], deviation, most)
        if deviation is None:
            lines.append(
                f"{side}: no config says `initializer_range`, so of rows that were never"
                " trained only zeros are counted"
            )
    return found, lines


def _unused(
    squares: NDArray[Any], width: int, deviation: float | None, most: int
) -> dict[str, Any]:
    import numpy as np

    zeros = squares == 0
    found: dict[str, Any] = {"zero": int(zeros.sum()), "initial": None}
    rows = np.flatnonzero(zeros)
    if deviation is not None:
        expected, spread = deviation * width**0.5, deviation / 2**0.5
        initial = np.abs(np.sqrt(squares) - expected) <= _DEVIATIONS * spread
        found["initial"] = int(initial.sum())
        rows = np.flatnonzero(zeros | initial)
    return {**found, "of": len(squares), "first": [int(row) for row in rows[:most]]}


def _deviation(diff: Diff, evidence: Evidence, side: str) -> float | None:
    handed = (evidence.left if side == "left" else evidence.right).config
    value = settings(handed, diff.described[side]).value("initializer_range")
    return float(value) if isinstance(value, int | float) and 0 < value < 1 else None
