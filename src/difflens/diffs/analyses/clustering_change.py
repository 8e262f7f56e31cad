"""Whether rows of an embedding or classifier group differently than before, beyond noise."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple

from difflens.core.policy import Threshold
from difflens.measure.resources import one_thread_each
from difflens.stats.clustering import (
    adjusted_mutual_information,
    adjusted_rand,
    k_means,
    silhouette,
)

from ..answer import Answer
from ..diff import Diff
from ..evidence.records import Evidence
from ..methods.representations import (
    SEED,
    Alignment,
    Sample,
    aligned,
    class_table,
    embedding_table,
    sampled,
)
from . import analysis

if TYPE_CHECKING:
    from numpy.typing import NDArray

_CHOICES = [8, 16, 32, 64]


@analysis(
    needs="values",
    thresholds={
        "k": Threshold(0, "the number of groups; 0 takes the one of 8, 16, 32, 64 that fits best"),
        "sample": Threshold(1000, "the most rows that are grouped; from more, a sample is drawn"),
        "restarts": Threshold(10, "starts of k-means, of which the best is kept"),
        "repeats": Threshold(10, "groupings a side from other seeds: the noise of k-means itself"),
        "noise_quantile": Threshold(
            0.05, "change is claimed below this quantile of the self-agreement"
        ),
        "stable_ari": Threshold(0.5, "below this median self-agreement there are no stable groups"),
        "listed": Threshold(20, "how many moved rows are listed"),
    },
    fields={
        "verdict": "changed: ari below noise_ceiling; within noise: not; no stable clusters: a side"
        " does not agree with itself",
        "ari": "adjusted Rand index between the groupings of left and right",
        "noise_ceiling": "the `noise_quantile` of all self-agreements of both sides",
        "cluster_count": "k, by the largest mean silhouette of both sides where it was not given",
        "ami": "adjusted mutual information between the groupings of left and right",
        "ari_self_a": "median adjusted Rand index of left with itself from other seeds",
        "ari_self_b": "median adjusted Rand index of right with itself from other seeds",
        "moved_rows": "rows outside the right group that their left group fits best",
    },
)
def clustering_change(diff: Diff, evidence: Evidence, answer: Answer) -> None:
    """Whether tokens or classes group differently than before, beyond the noise of grouping."""
    answer.seeded(SEED)
    table = embedding_table(diff) or class_table(diff)
    if table is None:
        why = f"none of the {len(diff.deltas)} tensors is an embedding or a classifier"
        needs = "an embedding or classifier on both sides"
        answer.lack_rest(needs=needs, why=why, status="not_applicable")
        return
    answer.assume(f"the rows of {table.right.name} are grouped, each of length one")
    rows = aligned(table, evidence, same_prefix=False)
    if isinstance(rows, str):
        answer.lack_rest(needs="tokenizer files beside both models", why=rows)
        return
    sample = sampled(diff, table, rows, answer["sample"])
    found = _grouped(answer, sample)
    if found is None:
        why = f"{len(sample.chosen)} usable rows are too few"
        answer.lack_rest(needs="at least 32 rows that mean the same", why=why)
        return
    _say(answer, found)
    _moved(answer, found, sample, rows)
    _assume(answer, sample, rows, found)
    _finding(answer, found, table.name)


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
        answer.say(field, value, uncertainty=sure or None)


def _moved(answer: Answer, found: Groupings, sample: Sample, rows: Alignment) -> None:
    import numpy as np

    places = sample.chosen[np.flatnonzero(moved(found.left, found.right))]
    first = [_named(int(place), rows) for place in places[: answer["listed"]]]
    value = {"count": len(places), "of": len(sample.chosen), "first": first}
    answer.say("moved_rows", value)


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


# k-means finds groups in anything; only what it finds again from other starts can be said to have
# changed. Rows are of length one. Beyond 64 dimensions the leading 64 principal coordinates are
# grouped: those in which the best k groups lie (Ding and He 2004).

DIMENSIONS = 64
_FEWEST_A_GROUP = 4  # rows a group, on average, below which groups mean nothing


class Groupings(NamedTuple):
    """One grouping a side with the same k, their agreement, and the noise of each side alone."""

    k: int
    left: NDArray[Any]
    right: NDArray[Any]
    ari: float
    ami: float
    left_self: list[float]
    right_self: list[float]
    silhouettes: dict[int, float]


def reduced(rows: NDArray[Any]) -> NDArray[Any]:
    """Return the leading principal coordinates of rows that have more than `DIMENSIONS`."""
    import numpy as np

    if rows.shape[1] <= DIMENSIONS or len(rows) <= DIMENSIONS:
        return rows
    centred = rows - rows.mean(axis=0)
    values, vectors = np.linalg.eigh(np.asarray(centred @ centred.T, np.float64))
    kept = np.sqrt(np.maximum(values[-DIMENSIONS:], 0))
    return np.asarray(vectors[:, -DIMENSIONS:] * kept, rows.dtype)


def groupings(
    left: NDArray[Any],
    right: NDArray[Any],
    ks: list[int],
    *,
    restarts: int,
    repeats: int,
    seed: int,
) -> Groupings | None:
    """Group both sides with the k whose mean silhouette is largest; None if k fits nowhere."""
    left, right = reduced(left), left if right is left else reduced(right)
    ks = [k for k in ks if k * _FEWEST_A_GROUP <= len(left)]
    if not ks:
        return None
    found = {k: [k_means(side, k, restarts, seed) for side in (left, right)] for k in ks}
    scores = {k: _score((left, right), found[k]) for k in ks}
    k = max(ks, key=lambda each: scores[each])
    first, second = found[k]
    others = range(seed + 1, seed + 1 + repeats)
    return Groupings(
        k,
        first,
        second,
        adjusted_rand(first, second),
        adjusted_mutual_information(first, second),
        [adjusted_rand(first, k_means(left, k, restarts, each)) for each in others],
        [adjusted_rand(second, k_means(right, k, restarts, each)) for each in others],
        scores,
    )


def moved(left: NDArray[Any], right: NDArray[Any]) -> NDArray[Any]:
    """Say which rows left their group, once each left group has its best partner on the right."""
    import numpy as np
    from scipy.optimize import linear_sum_assignment

    table = np.zeros((left.max() + 1, right.max() + 1))
    np.add.at(table, (left, right), 1)
    partner = dict(zip(*linear_sum_assignment(table, maximize=True), strict=True))
    return np.array(
        [partner.get(before, -1) != after for before, after in zip(left, right, strict=True)], bool
    )


def _score(sides: tuple[NDArray[Any], NDArray[Any]], labels: list[NDArray[Any]]) -> float:
    found = [silhouette(rows, each) or 0.0 for rows, each in zip(sides, labels, strict=True)]
    return sum(found) / len(found)
