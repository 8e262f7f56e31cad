"""A vocabulary that was resized: the shared rows compared, the new ones described."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from difflens.core.records import Delta

from ...answer import Answer
from ...diff import Diff
from ...evidence.records import Evidence
from ..changes.explained import Explained
from ..representations import Alignment, Table, aligned, embedding_table
from .new_rows import NewRows, describe_new
from .records import counted, explained, is_related, name_of
from .table_rows import Rows, compare_rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

_MULTIPLES = (512, 256, 128, 64, 32, 16, 8)


def resized_vocabulary(diff: Diff, evidence: Evidence, answer: Answer) -> list[Explained]:  # noqa: ARG001
    """Explain the tensors with a row per token, where the number of tokens changed."""
    table = embedding_table(diff)
    if table is None or not _is_resized(table):
        return []
    sizes = table.left.shape[0], table.right.shape[0]
    names = [name_of(each) for each in diff.deltas if _has_tokens(each, sizes)]
    places = _places(table, evidence)
    rows = compare_rows(_left(diff, table), _right(diff, table), places[:2])
    if not rows.is_related:
        if not is_related(diff):
            return []
        words = f"vocabulary of {sizes[0]:,} tokens replaced by one of {sizes[1]:,}: no row is kept"
        numbers = {"from": sizes[0], "to": sizes[1], "shared": 0}
        return [explained(diff, "vocabulary_resized", names, words, numbers)]
    new = _new_rows(diff, table, rows)
    numbers = _numbers(sizes, rows, new)
    text = _text(sizes, rows, new, places[2])
    return [explained(diff, "vocabulary_resized", names, text, numbers)]


def _is_resized(table: Table) -> bool:
    return (
        table.left.shape[0] != table.right.shape[0]
        and table.left.shape[1:] == table.right.shape[1:]
    )


def _has_tokens(delta: Delta, sizes: tuple[int, int]) -> bool:
    """Did it change along one dimension only, by just as many as the table of tokens?"""
    left, right = delta.pair.left, delta.pair.right
    if delta.kind != "reshaped" or not (left and right) or len(left.shape) != len(right.shape):
        return False
    moved = [pair for pair in zip(left.shape, right.shape, strict=True) if pair[0] != pair[1]]
    return moved == [sizes]


def _places(
    table: Table, evidence: Evidence
) -> tuple[NDArray[Any], NDArray[Any], Alignment | None]:
    """Pair the rows by token where both tokenizers are at hand, by place where not."""
    import numpy as np

    by_token = aligned(table, evidence, same_prefix=False)
    if isinstance(by_token, Alignment) and len(by_token.left):
        return by_token.left, by_token.right, by_token
    first = np.arange(min(table.left.shape[0], table.right.shape[0]))
    return first, first, None


def _left(diff: Diff, table: Table) -> Any:
    return diff.values("left", table.left.name)


def _right(diff: Diff, table: Table) -> Any:
    return diff.values("right", table.right.name)


def _new_rows(diff: Diff, table: Table, rows: Rows) -> NewRows | None:
    import numpy as np

    is_new = np.ones(table.right.shape[0], bool)
    is_new[rows.right] = False
    fresh = np.flatnonzero(is_new)
    return describe_new(_right(diff, table), fresh, np.sort(rows.right)) if len(fresh) else None


def _numbers(sizes: tuple[int, int], rows: Rows, new: NewRows | None) -> dict[str, Any]:
    numbers: dict[str, Any] = {
        "from": sizes[0],
        "to": sizes[1],
        "shared": len(rows.left),
        "identical": rows.identical,
        "relative_l2": rows.relative_l2,
        "removed": sizes[0] - len(rows.left),
    }
    if new:
        numbers["new"] = new.number
        numbers["new_rows"] = new.kind
    multiple = _padded(sizes, new)
    return numbers | ({"multiple_of": multiple} if multiple else {})


def _padded(sizes: tuple[int, int], new: NewRows | None) -> int | None:
    """Return what the size was rounded up to, where the new rows hold nothing trained."""
    if new is None or new.kind in ("other", "copied") or new.number != sizes[1] - sizes[0]:
        return None
    fits = (each for each in _MULTIPLES if sizes[1] % each == 0 and sizes[0] % each)
    multiple = next(fits, None)
    return multiple if multiple and sizes[1] - sizes[0] < multiple else None


def _text(sizes: tuple[int, int], rows: Rows, new: NewRows | None, tokens: Alignment | None) -> str:
    parts = [_shared(rows)]
    removed = sizes[0] - len(rows.left)
    if removed:
        is_end = rows.order == "place" and tokens is None
        parts.append(f"{'the last ' if is_end else ''}{counted(removed, 'row')} removed")
    if new:
        parts.append(new.text)
    multiple = _padded(sizes, new)
    size = f"{sizes[0]:,} to {sizes[1]:,}" + (f" (a multiple of {multiple})" if multiple else "")
    return f"vocabulary resized from {size}: {', '.join(parts)}"


def _shared(rows: Rows) -> str:
    import numpy as np

    number = len(rows.left)
    if rows.order == "content":
        in_order = bool((np.diff(rows.right[np.argsort(rows.left)]) > 0).all())
        return f"{counted(number, 'row')} kept{'' if in_order else ' in another order'}"
    if rows.identical == number:
        return "shared rows identical"
    if rows.rounded:
        return "shared rows identical but for rounding"
    if rows.identical:
        return f"{number - rows.identical:,} of {counted(number, 'shared row')} moved"
    return f"shared rows moved (relative L2 {rows.relative_l2:.2g})"
