"""How likely a metric lost more than its margin, by resampling the examples that were seen."""

from __future__ import annotations

from typing import NamedTuple

from ...evidences import Evidence
from ...records import Policy
from ..quality.check import rule_of
from ..quality.joins import Join, join, metrics_of

_AT_ONCE = 2_000_000  # counts held in memory at a time
_FEWEST = 10  # independent examples (or clusters) below which resampling says nothing


class Chance(NamedTuple):
    """P(loss > margin | the paired examples), and from how many independent ones."""

    metric: str
    margin: float
    probability: float
    error: float  # Monte-Carlo
    n: int


def chances(evidence: Evidence, policy: Policy, resamples: int, seed: int) -> list[Chance]:
    """Resample every metric whose examples are paired; without a margin any loss counts."""
    left, right = evidence.left.evals, evidence.right.evals
    found = (_chance(join(left, right, metric), metric, policy, resamples, seed)
             for metric in metrics_of(left, right))  # fmt: skip
    return [each for each in found if each]


def _chance(joined: Join, metric: str, policy: Policy, resamples: int, seed: int) -> Chance | None:
    """Give the part of resampled mean losses above the margin; whole clusters are drawn."""
    import numpy as np

    rule, better = rule_of(metric, policy)
    if better is None or len(joined.ids) < _FEWEST:
        return None
    losses = np.subtract(joined.left, joined.right) * (1 if better == "higher" else -1)
    names = joined.clusters or joined.ids
    places = np.unique(names, return_inverse=True)[1]
    sums, sizes = np.bincount(places, losses), np.bincount(places)
    n, margin = len(sums), rule.margin or 0.0
    if n < _FEWEST:
        return None
    random = np.random.default_rng(seed)
    above, step = 0, max(1, _AT_ONCE // n)
    for start in range(0, resamples, step):
        drawn = random.integers(0, n, (min(step, resamples - start), n))
        above += int((sums[drawn].sum(axis=1) > margin * sizes[drawn].sum(axis=1)).sum())
    share = above / resamples
    return Chance(metric, margin, share, float((share * (1 - share) / resamples) ** 0.5), n)
