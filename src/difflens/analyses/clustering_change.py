"""Whether rows of an embedding or classifier group differently than before, beyond noise."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING, Any

from ..answers import Answer
from ..diffs import Diff
from ..evidences import Evidence
from ..measure.blas import one_thread_each
from ..records import Envelope, Policy, Threshold
from . import analysis
from .representations.groupings import DIMENSIONS, Groupings, groupings, moved
from .representations.samples import SEED, Sample, sampled
from .representations.vocabulary import Alignment, aligned, class_table, embedding_table

if TYPE_CHECKING:
    from numpy.typing import NDArray

NAME = "clustering_change"
THRESHOLDS = {
    "k": Threshold(0, "the number of groups; 0 takes the one of 8, 16, 32, 64 that fits best"),
    "sample": Threshold(1000, "the most rows that are grouped; from more, a sample is drawn"),
    "restarts": Threshold(10, "starts of k-means, of which the best is kept"),
    "repeats": Threshold(10, "groupings a side from other seeds: the noise of k-means itself"),
    "noise_quantile": Threshold(
        0.05, "change is claimed below this quantile of the self-agreement"
    ),
    "stable_ari": Threshold(0.5, "below this median self-agreement there are no stable groups"),
    "listed": Threshold(20, "how many moved rows are listed"),
}
_BASIS = {
    "verdict": "changed: ari below noise_ceiling; within noise: not; no stable clusters: a side"
    " does not agree with itself",
    "ari": "adjusted Rand index between the groupings of left and right",
    "ami": "adjusted mutual information between the groupings of left and right",
    "ari_self_a": "median adjusted Rand index of left with itself from other seeds",
    "ari_self_b": "median adjusted Rand index of right with itself from other seeds",
    "noise_ceiling": "the `noise_quantile` of all self-agreements of both sides",
    "cluster_count": "k, by the largest mean silhouette of both sides where it was not given",
    "moved_rows": "rows outside the right group that their left group fits best",
}
_CHOICES = [8, 16, 32, 64]


@analysis(needs=[], thresholds=THRESHOLDS)
def clustering_change(diff: Diff, evidence: Evidence, policy: Policy) -> Envelope:
    """Whether tokens or classes group differently than before, beyond the noise of grouping."""
    answer = Answer(NAME, policy, THRESHOLDS)
    answer.seeded(SEED)
    if not diff.has_values:
        return _silent(answer, "tensor values", "only headers were read", known=True)
    table = embedding_table(diff) or class_table(diff)
    if table is None:
        why = f"none of the {len(diff.deltas)} tensors is an embedding or a classifier"
        return _silent(answer, "an embedding or classifier on both sides", why, known=False)
    answer.assume(f"the rows of {table.right.name} are grouped, each of length one")
    rows = aligned(table, evidence, same_prefix=False)
    if isinstance(rows, str):
        return _silent(answer, "tokenizer files beside both models", rows, known=True)
    sample = sampled(diff, table, rows, answer["sample"])
    found = _grouped(answer, sample)
    if found is None:
        why = f"{len(sample.chosen)} usable rows are too few"
        return _silent(answer, "at least 32 rows that mean the same", why, known=True)
    _say(answer, found)
    _moved(answer, found, sample, rows)
    _assume(answer, sample, rows, found)
    _finding(answer, found, table.name)
    return answer.envelope()


def _grouped(answer: Answer, sample: Sample) -> Groupings | None:
    if not len(sample.chosen):
        return None
    left, right = sample.unit()
    if sample.right is sample.left:
        right = left
    ks = [int(answer["k"])] if answer["k"] else _CHOICES
    how = {"restarts": answer["restarts"], "repeats": answer["repeats"], "seed": SEED}
    with one_thread_each():  # many small products: threads would wait for each other
        return groupings(left, right, ks, **how)


def _verdict(found: Groupings, ceiling: float, stable: float) -> str:
    if min(median(found.left_self), median(found.right_self)) < stable:
        return "no stable clusters"
    return "changed" if found.ari < ceiling else "within noise"


def _ceiling(answer: Answer, found: Groupings) -> float:
    import numpy as np

    both = [*found.left_self, *found.right_self]
    return float(np.quantile(both, answer["noise_quantile"]))


def _say(answer: Answer, found: Groupings) -> None:
    ceiling = _ceiling(answer, found)
    n = f"{len(found.left_self)} groupings a side from other seeds"
    for field, value, sure in (
        ("verdict", _verdict(found, ceiling, answer["stable_ari"]), ""),
        ("ari", found.ari, f"none_available: compare with noise_ceiling ({n})"),
        ("ami", found.ami, f"none_available: compare with noise_ceiling ({n})"),
        ("ari_self_a", median(found.left_self), n),
        ("ari_self_b", median(found.right_self), n),
        ("noise_ceiling", ceiling, n),
        ("cluster_count", found.k, "exact"),
    ):
        answer.say(field, value, basis=_BASIS[field], uncertainty=sure or None)


def _moved(answer: Answer, found: Groupings, sample: Sample, rows: Alignment) -> None:
    import numpy as np

    places = sample.chosen[np.flatnonzero(moved(found.left, found.right))]
    first = [_named(int(place), rows) for place in places[: answer["listed"]]]
    value = {"count": len(places), "of": len(sample.chosen), "first": first}
    answer.say("moved_rows", value, basis=_BASIS["moved_rows"])


def _named(place: int, rows: Alignment) -> dict[str, Any]:
    token = rows.tokens[place] if rows.tokens is not None else None
    return {"row": int(rows.right[place]), "left_row": int(rows.left[place]), "token": token}


def _assume(answer: Answer, sample: Sample, rows: Alignment, found: Groupings) -> None:
    answer.assume(f"rows are aligned by {rows.by}")
    drawn = len(sample.chosen) + sample.dropped
    if drawn < len(rows.left):
        answer.assume(f"{drawn} rows are drawn from {len(rows.left)} with seed {SEED}")
    if sample.dropped:
        answer.assume(f"{sample.dropped} sampled rows are zero or not finite, and left out")
    if _is_wide(sample.left) or _is_wide(sample.right):
        answer.assume(f"groups are looked for in the {DIMENSIONS} leading principal coordinates")
    tried = ", ".join(f"{k}: {score:.3f}" for k, score in found.silhouettes.items())
    answer.assume(f"mean silhouette by k: {tried}")


def _is_wide(rows: NDArray[Any]) -> bool:
    return bool(rows.shape[1] > DIMENSIONS < len(rows))


def _finding(answer: Answer, found: Groupings, subject: str) -> None:
    ceiling = _ceiling(answer, found)
    if _verdict(found, ceiling, answer["stable_ari"]) == "changed":
        text = f"rows group differently: ari {found.ari:.3f}, below the noise of {ceiling:.3f}"
        numbers = {"ari": found.ari, "noise_ceiling": ceiling, "clusters": found.k}
        answer.find(subject, text, numbers, "info")


def _silent(answer: Answer, needs: str, why: str, *, known: bool) -> Envelope:
    for field in _BASIS:
        answer.lack(field, needs=needs, why=why)
    return answer.envelope("not_enough_information" if known else "not_applicable")
