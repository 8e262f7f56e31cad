"""How the meaning of tokens moved: each row, its neighbours, and the space as a whole."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from difflens.core.findings import Interval
from difflens.core.policy import Threshold
from difflens.measure.embeddings import RowMoves, row_moves, row_squares
from difflens.measure.resources import one_thread_each
from difflens.stats.bootstrap import bootstrap
from difflens.stats.similarity import Overlap, linear_cka, neighbour_overlap, procrustes

from ..answer import Answer
from ..diff import Diff
from ..evidence.records import Evidence
from ..methods.representations import (
    SEED,
    Alignment,
    Sample,
    Table,
    aligned,
    embedding_table,
    sampled,
    unused_rows,
)
from . import analysis

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from difflens.measure.embeddings import RowMoves

_NEIGHBOURS = ("nearest_neighbor_consistency", "null_consistency", "semantic_drift")


@analysis(
    needs="values",
    thresholds={
        "neighbours": Threshold(10, "how many nearest neighbours of a token are compared"),
        "sample": Threshold(2000, "how many tokens neighbours and alignment are computed on"),
        "resamples": Threshold(1999, "bootstrap resamples of tokens behind the interval"),
        "listed": Threshold(20, "how many tokens are listed one by one"),
        "same_prefix": Threshold(
            False, "asserts that the first rows mean the same where their numbers differ"
        ),
        "kept_neighbours": Threshold(
            0.9, "from this share of kept neighbours on the space only turned"
        ),
        "turned_cosine": Threshold(0.5, "below this median cosine of rows the space has turned"),
    },
    fields={
        "semantic_drift": "1 - nearest_neighbor_consistency",
        "nearest_neighbor_consistency": "mean share of a token's nearest neighbours by cosine that"
        " both sides have, among the sampled tokens",
        "null_consistency": "neighbours / (sampled tokens - 1): what unrelated rows share by"
        " chance",
        "embedding_alignment": "procrustes: min over rotations of ‖LQ - R‖ / ‖R‖, centred; cka:"
        " unbiased linear CKA; both on the sampled tokens",
        "embedding_dimension_change": "columns right minus left",
        "rows": "rows of each side, how many mean the same and how that is known",
        "row_drift": "‖r - l‖ / ‖l‖ and cosine of each aligned row: how many moved, quantiles"
        " (type 7)",
        "unused_rows": "rows that are all zeros, or as long as the initial values of the config"
        " are",
        "top_movers": "the aligned rows with the largest ‖r - l‖ / ‖l‖",
    },
)
def embedding_analysis(diff: Diff, evidence: Evidence, answer: Answer) -> None:
    """How token embeddings moved: rows, nearest neighbours, and the space as a whole."""
    answer.seeded(SEED)
    table = embedding_table(diff)
    if table is None:
        why = f"none of the {len(diff.deltas)} tensors is an embedding of tokens on both sides"
        needs = "a token embedding on both sides"
        answer.lack_rest(needs=needs, why=why, status="not_applicable")
        return
    answer.assume(f"the embedding is {table.right.name}, told by its name")
    change = table.right.shape[1] - table.left.shape[1]
    answer.say("embedding_dimension_change", change, uncertainty="exact")
    rows = aligned(table, evidence, same_prefix=bool(answer["same_prefix"]))
    _unused(answer, diff, table, evidence)
    if isinstance(rows, str):
        answer.lack_rest(needs="tokenizer files beside both models", why=rows)
        return
    answer.assume(f"rows are aligned by {rows.by}")
    _rows(answer, table, rows)
    moves = _drift(answer, diff, table, rows)
    sample = sampled(diff, table, rows, answer["sample"])
    _assume_sample(answer, sample, rows)
    with one_thread_each():  # the same bits on any machine, and no fight for its cores
        overlap = _neighbours(answer, sample)
        _alignment(answer, sample, len(rows.left))
    if moves is not None and overlap is not None:
        _turned(answer, table, moves, overlap)


def _rows(answer: Answer, table: Table, rows: Alignment) -> None:
    said: dict[str, Any] = {
        "left": table.left.shape[0],
        "right": table.right.shape[0],
        "aligned": len(rows.left),
        "by": rows.by.partition(":")[0],
    }
    for name, tokens in (("added", rows.added), ("removed", rows.removed)):
        if tokens is not None:
            said[name] = len(tokens)
            said[f"{name}_tokens"] = tokens[: answer["listed"]]
    answer.say("rows", said, uncertainty="exact")


def _drift(answer: Answer, diff: Diff, table: Table, rows: Alignment) -> RowMoves | None:
    moves = drift(diff, table, rows)
    if moves is None:
        needs = "the same number of columns on both sides"
        why = f"rows of {table.left.shape[1]} and {table.right.shape[1]} numbers have no distance"
        for field in ("row_drift", "top_movers"):
            answer.lack(field, needs=needs, why=why)
        return None
    found, summary = top_movers(moves, rows, answer["listed"])
    answer.say("row_drift", summary, uncertainty="exact")
    answer.say("top_movers", found, uncertainty="exact")
    return moves


def _neighbours(answer: Answer, sample: Sample) -> Overlap | None:
    import numpy as np

    k, n = answer["neighbours"], len(sample.chosen)
    if n <= k + 1:
        why = f"{n} usable tokens are aligned, and each needs {k} neighbours"
        for field in _NEIGHBOURS:
            answer.lack(field, needs=f"more than {k + 1} aligned tokens", why=why)
        return None
    found = neighbour_overlap(*sample.unit(), k, np.arange(n))
    spread = bootstrap(
        [found.shares], np.mean, resamples=answer["resamples"], seed=SEED, vectorised=True
    )
    method = f"{spread.method} bootstrap over tokens"
    interval = Interval(spread.low, spread.high, spread.level, method, n)
    low, high = (None if each is None else 1 - each for each in (spread.high, spread.low))
    turned = Interval(low, high, spread.level, method, n)
    values = (found.mean, found.null, 1 - found.mean)
    certain: tuple[Interval | str, ...] = (interval, "exact", turned)
    for field, value, sure in zip(_NEIGHBOURS, values, certain, strict=True):
        answer.say(field, value, uncertainty=sure)
    return found


def _alignment(answer: Answer, sample: Sample, aligned: int) -> None:
    same = sample.right is sample.left
    wide = sample.left.shape[1] == sample.right.shape[1]
    found = {
        "procrustes": 0.0 if same else procrustes(sample.left, sample.right) if wide else None,
        "cka": linear_cka(sample.left, sample.right) if len(sample.chosen) else None,
    }
    if same and found["cka"] is not None:
        found["cka"] = 1.0
    known = {name: value for name, value in found.items() if value is not None}
    if wide and len(sample.chosen) <= 2 * sample.left.shape[1]:
        size = f"{len(sample.chosen)} tokens in {sample.left.shape[1]} dimensions"
        answer.assume(f"{size}: a rotation fits chance too, so procrustes is a lower bound")
    drawn, is_exact = len(sample.chosen), same or len(sample.chosen) == aligned
    answer.either(
        "embedding_alignment",
        {**known, "tokens": drawn, "of": aligned} if known else None,
        uncertainty="exact" if is_exact else f"of a sample: {drawn:,} of {aligned:,} tokens",
        needs="at least four aligned tokens whose rows differ",
        why=f"{len(sample.chosen)} usable tokens are aligned",
    )


def _turned(answer: Answer, table: Table, moves: RowMoves, overlap: Overlap) -> None:
    import numpy as np

    known = moves.cosine[np.isfinite(moves.cosine)]
    cosine = float(np.median(known)) if len(known) else 1.0
    if cosine < answer["turned_cosine"] and overlap.mean >= answer["kept_neighbours"]:
        text = "the rows turned together: tokens kept their neighbours, so no meaning moved"
        numbers = {"median_cosine": cosine, "nearest_neighbor_consistency": overlap.mean}
        answer.find(table.name, text, numbers, "info")


def _unused(answer: Answer, diff: Diff, table: Table, evidence: Evidence) -> None:
    found, lines = unused_rows(diff, table, evidence, answer["listed"])
    answer.say("unused_rows", found, uncertainty="exact")
    for line in lines:
        answer.assume(line)


def _assume_sample(answer: Answer, sample: Sample, rows: Alignment) -> None:
    drawn = len(sample.chosen) + sample.dropped
    if drawn < len(rows.left):
        whole = f"{drawn} tokens drawn from {len(rows.left)} with seed {SEED}"
        answer.assume(f"neighbours and alignment are of {whole}")
    if sample.dropped:
        answer.assume(f"{sample.dropped} sampled rows are zero or not finite, and left out")


def drift(diff: Diff, table: Table, rows: Alignment) -> RowMoves | None:
    """Measure every aligned row; None if the sides have rows of different lengths."""
    import numpy as np

    if table.left.shape[1] != table.right.shape[1]:
        return None
    left = diff.values("left", table.left.name)
    if table.identical and np.array_equal(rows.left, rows.right):
        squares = row_squares(left)[rows.left]
        return RowMoves(squares, squares, np.zeros(len(squares)), squares)
    return row_moves(left, diff.values("right", table.right.name), rows.left, rows.right)


def top_movers(
    moves: RowMoves, rows: Alignment, most: int
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """List the rows that moved most, relative to themselves, and sum all of them up.

    A row that was all zeros has no relative distance: it stands first, by how long it is now.
    """
    import numpy as np

    relative, cosine = moves.relative_l2, moves.cosine
    moved = np.flatnonzero(moves.moved > 0)
    lengths = np.sqrt(moves.moved[moved])
    fresh = moves.left[moved] == 0
    order = np.lexsort((-lengths, -np.where(fresh, np.inf, relative[moved])))
    found = [_row(int(at), moves, rows) for at in moved[order][:most]]
    return found, {
        "rows": len(relative),
        "moved": len(moved),
        "not_finite": int((~np.isfinite(moves.moved)).sum()),
        **{f"relative_l2_{name}": value for name, value in _quantiles(relative).items()},
        **{f"cosine_{name}": value for name, value in _quantiles(cosine).items()},
    }


def _row(at: int, moves: RowMoves, rows: Alignment) -> dict[str, Any]:
    return {
        "row": int(rows.right[at]),
        "left_row": int(rows.left[at]),
        "token": rows.tokens[at] if rows.tokens is not None else None,
        "relative_l2": _number(moves.relative_l2[at]),
        "cosine": _number(moves.cosine[at]),
    }


def _number(value: Any) -> float | None:
    import numpy as np

    return float(value) if np.isfinite(value) else None


def _quantiles(values: NDArray[Any]) -> dict[str, float | None]:
    import numpy as np

    known = values[np.isfinite(values)]
    shares = {"min": 0.0, "median": 0.5, "p95": 0.95, "max": 1.0}
    if not len(known):
        return dict.fromkeys(shares)
    return {name: float(np.quantile(known, share)) for name, share in shares.items()}
