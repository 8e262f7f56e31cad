"""Shows how right the answers were: by kind, by base, ranks by dtype, and what was wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import NamedTuple

from ..scores import Rate, rate
from ..table import markdown
from .verdicts import OUTCOMES, Verdict

_RANKS = ("exact", "below", "above", "unnamed")


# What was done, in a few groups; whatever is two things at once is a group of its own.
TOPICS = {
    "storage": "cast quantised dequantised palette",
    "values": "scaled sign_flipped pruned zeroed sparse_edit row_edit noise",
    "few directions": "low_rank outer_product abliterated",
    "training": "trained",
    "order": "permuted permuted_inconsistently transposed exchanged rotated rescaled_channels",
    "replaced or destroyed": "reinitialised corrupted",
    "merges": "averaged slerp extrapolated task_arithmetic ties dare ema adapter_merged",
    "beside the weights": "config_changed tokens_changed state_changed",
    "not related": "unrelated",
    "unchanged": "unchanged",
}
_TOPIC = {kind: topic for topic, kinds in TOPICS.items() for kind in kinds.split()}


def topic(kind: str) -> str:
    """Return the group of a kind.

    >>> (
    ...     topic("pruned"),
    ...     topic("pruned + cast"),
    ...     topic("layers_removed"),
    ...     topic("averaged, not shown"),
    ... )
    ('values', 'several at once', 'structure', 'merges')
    """
    if " + " in kind:
        return "several at once"
    return _TOPIC.get(kind.partition(",")[0], "structure")


class Scored(NamedTuple):
    """A pair, what was said of it, and how right that was."""

    id: str
    part: str
    base: str
    kind: str
    dtype: str
    verdict: Verdict
    sentence: str
    said: tuple[str, ...]
    expected: tuple[str, ...]
    seconds: float
    building: float


def outcomes(results: list[Scored], key: Callable[[Scored], str], head: str) -> str:
    """Count outcomes by group, each with its Wilson interval, and all together."""
    groups: dict[str, list[Scored]] = {}
    for each in results:
        groups.setdefault(key(each), []).append(each)
    rows = [_row(name, groups[name]) for name in sorted(groups)]
    return markdown((head, "pairs", *OUTCOMES), [*rows, _row("all", results)])


def _row(name: str, group: list[Scored]) -> tuple[str, ...]:
    counts = Counter(each.verdict.outcome for each in group)
    return (name, str(len(group)), *(shown(counts[each], len(group)) for each in OUTCOMES))


def shown(hits: int, n: int) -> str:
    """Show a count with its share and interval.

    >>> shown(3, 4), shown(0, 4)
    ('3 (0.30-0.95)', '0 (0.00-0.49)')
    """
    share: Rate = rate([True] * hits + [False] * (n - hits))
    return f"{hits} ({share.low:.2f}-{share.high:.2f})"


def ranks(results: list[Scored]) -> str:
    """Count how often the rank of an update was exact, by the dtype it was stored in."""
    ranked = [each for each in results if each.verdict.rank]
    rows = []
    for dtype in sorted({each.dtype for each in ranked}):
        group = [each for each in ranked if each.dtype == dtype]
        counts = Counter(each.verdict.rank for each in group)
        rows.append((dtype, str(len(group)), *(shown(counts[each], len(group)) for each in _RANKS)))
    return markdown(("stored in", "pairs", *_RANKS), rows)


def names_given(results: list[Scored]) -> str:
    """Count names on pairs on which nothing was done, or which are not related."""
    rows = []
    for kind in ("unchanged", "unrelated"):
        group = [each for each in results if each.kind == kind]
        false = [each for each in group if each.verdict.outcome == "wrong"]
        if group:
            rows.append((kind, str(len(group)), shown(len(false), len(group))))
    return markdown(("nothing to name", "pairs", "a name was given"), rows)


def faults(results: Iterable[Scored], *outcomes_shown: str) -> str:
    """List the answers that were not right, with the reason and the sentence."""
    lines = []
    for each in results:
        if each.verdict.outcome in outcomes_shown:
            reasons = "; ".join(each.verdict.reasons[:3])
            lines.append(
                f"{each.verdict.outcome}: {each.base}/{each.id}: {reasons}\n    {each.sentence}"
            )
    return "\n".join(lines)
