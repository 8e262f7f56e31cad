"""How the meaning of tokens moved: each row, its neighbours, and the space as a whole."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..answers import Answer
from ..diffs import Diff
from ..evidences import Evidence
from ..measure.blas import one_thread_each
from ..records import Envelope, Interval, Policy, Threshold
from ..stats.bootstrap import bootstrap
from ..stats.similarity import Overlap, linear_cka, neighbour_overlap, procrustes
from . import analysis
from .representations.drift import drift, top_movers
from .representations.samples import SEED, Sample, sampled
from .representations.unused import unused_rows
from .representations.vocabulary import Alignment, Table, aligned, embedding_table

if TYPE_CHECKING:
    from ..measure.embeddings import RowMoves

NAME = "embedding_analysis"
THRESHOLDS = {
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
}
_BASIS = {
    "embedding_dimension_change": "columns right minus left",
    "rows": "rows of each side, how many mean the same and how that is known",
    "row_drift": "‖r - l‖ / ‖l‖ and cosine of each aligned row: how many moved, quantiles (type 7)",
    "top_movers": "the aligned rows with the largest ‖r - l‖ / ‖l‖",
    "nearest_neighbor_consistency": "mean share of a token's nearest neighbours by cosine that both"
    " sides have, among the sampled tokens",
    "null_consistency": "neighbours / (sampled tokens - 1): what unrelated rows share by chance",
    "semantic_drift": "1 - nearest_neighbor_consistency",
    "embedding_alignment": "procrustes: min over rotations of ‖LQ - R‖ / ‖R‖, centred; cka:"
    " unbiased linear CKA; both on the sampled tokens",
    "unused_rows": "rows that are all zeros, or as long as the initial values of the config are",
}
_NEIGHBOURS = ("nearest_neighbor_consistency", "null_consistency", "semantic_drift")


@analysis(needs=[], thresholds=THRESHOLDS)
def embedding_analysis(diff: Diff, evidence: Evidence, policy: Policy) -> Envelope:
    """How token embeddings moved: rows, nearest neighbours, and the space as a whole."""
    answer = Answer(NAME, policy, THRESHOLDS)
    answer.seeded(SEED)
    if not diff.has_values:
        return _silent(answer, "tensor values", "only headers were read", known=True)
    table = embedding_table(diff)
    if table is None:
        why = f"none of the {len(diff.deltas)} tensors is an embedding of tokens on both sides"
        return _silent(answer, "a token embedding on both sides", why, known=False)
    answer.assume(f"the embedding is {table.right.name}, told by its name")
    change = table.right.shape[1] - table.left.shape[1]
    answer.say("embedding_dimension_change", change, basis=_BASIS["embedding_dimension_change"],
               uncertainty="exact")  # fmt: skip
    rows = aligned(table, evidence, same_prefix=bool(answer["same_prefix"]))
    _unused(answer, diff, table, evidence)
    if isinstance(rows, str):
        return _unaligned(answer, rows)
    answer.assume(f"rows are aligned by {rows.by}")
    _rows(answer, table, rows)
    moves = _drift(answer, diff, table, rows)
    sample = sampled(diff, table, rows, answer["sample"])
    _assume_sample(answer, sample, rows)
    with one_thread_each():  # the same bits on any machine, and no fight for its cores
        overlap = _neighbours(answer, sample)
        _alignment(answer, sample)
    if moves is not None and overlap is not None:
        _turned(answer, table, moves, overlap)
    return answer.envelope()


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
    answer.say("rows", said, basis=_BASIS["rows"], uncertainty="exact")


def _drift(answer: Answer, diff: Diff, table: Table, rows: Alignment) -> RowMoves | None:
    moves = drift(diff, table, rows)
    if moves is None:
        needs = "the same number of columns on both sides"
        why = f"rows of {table.left.shape[1]} and {table.right.shape[1]} numbers have no distance"
        for field in ("row_drift", "top_movers"):
            answer.lack(field, needs=needs, why=why)
        return None
    found, summary = top_movers(moves, rows, answer["listed"])
    answer.say("row_drift", summary, basis=_BASIS["row_drift"], uncertainty="exact")
    answer.say("top_movers", found, basis=_BASIS["top_movers"], uncertainty="exact")
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
    spread = bootstrap([found.shares], np.mean, resamples=answer["resamples"], seed=SEED,
                       vectorised=True)  # fmt: skip
    method = f"{spread.method} bootstrap over tokens"
    interval = Interval(spread.low, spread.high, spread.level, method, n)
    low, high = (None if each is None else 1 - each for each in (spread.high, spread.low))
    turned = Interval(low, high, spread.level, method, n)
    values = (found.mean, found.null, 1 - found.mean)
    certain: tuple[Interval | str, ...] = (interval, "exact", turned)
    for field, value, sure in zip(_NEIGHBOURS, values, certain, strict=True):
        answer.say(field, value, basis=_BASIS[field], uncertainty=sure)
    return found


def _alignment(answer: Answer, sample: Sample) -> None:
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
    answer.either(
        "embedding_alignment",
        known or None,
        basis=_BASIS["embedding_alignment"],
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
    answer.say("unused_rows", found, basis=_BASIS["unused_rows"], uncertainty="exact")
    for line in lines:
        answer.assume(line)


def _assume_sample(answer: Answer, sample: Sample, rows: Alignment) -> None:
    drawn = len(sample.chosen) + sample.dropped
    if drawn < len(rows.left):
        whole = f"{drawn} tokens drawn from {len(rows.left)} with seed {SEED}"
        answer.assume(f"neighbours and alignment are of {whole}")
    if sample.dropped:
        answer.assume(f"{sample.dropped} sampled rows are zero or not finite, and left out")


def _unaligned(answer: Answer, why: str) -> Envelope:
    for field in _BASIS:
        if field not in ("embedding_dimension_change", "unused_rows"):
            answer.lack(field, needs="tokenizer files beside both models", why=why)
    return answer.envelope()


def _silent(answer: Answer, needs: str, why: str, *, known: bool) -> Envelope:
    for field in _BASIS:
        answer.lack(field, needs=needs, why=why)
    return answer.envelope("not_enough_information" if known else "not_applicable")
