"""Which matrix holds the tokens on each side, and which of its rows mean the same."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from ...diffs import Diff
from ...dtypes import FLOATS, OPAQUE
from ...evidences import Evidence
from ...records import TensorInfo
from ..anatomy.roles import role

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
