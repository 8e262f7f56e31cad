"""Factors of risk that the change itself shows: structure, size, precision, faults, descent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from difflens.core.dtypes import FLOATS, bits
from difflens.core.records import TensorInfo

from ..answer import Question
from .changes.energy import is_comparable, is_rounding_only, moved_parameters, relative_l2

Level = Literal["low", "medium", "unknown", "high", "critical"]
LEVELS: tuple[Level, ...] = ("low", "medium", "unknown", "high", "critical")


class Factor(NamedTuple):
    """A factor: level, why, the rule and the numbers; `needs` fills one that is unknown."""

    name: str
    level: Level
    why: str
    rule: str
    numbers: dict[str, float | None] = {}  # noqa: RUF012  nobody writes into it
    needs: str = ""
    mitigation: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "name": self.name,
            "level": self.level,
            "why": self.why,
            "rule": self.rule,
            "evidence": self.numbers,
            "needs": self.needs,
        }


def stepped(value: float, steps: Sequence[float]) -> Level:
    """Name the level of a number: low, then medium, high and critical from each step on.

    >>> stepped(0.05, [0.01, 0.1])
    'medium'
    """
    names: tuple[Level, ...] = ("low", "medium", "high", "critical")
    return names[min(sum(value >= step for step in steps), len(names) - 1)]


def highest(levels: Sequence[Level]) -> Level:
    """Return the worst: unknown is worse than medium, for nobody looked."""
    return max(levels, key=LEVELS.index, default="low")


_VALUES = "tensor values (leave --shape-only out)"
_DELTAS = "relative_l2"  # the metric of --history that holds the sizes of earlier changes
_LEAST_PAST = 5
_NARROW = 16  # bits below which a number is no plain float of training


def structure(asked: Question) -> Factor:
    """Tensors that came, went or have another shape."""
    count = max(len(asked.diff.pairs), 1)
    odd = sum(
        not (pair.left and pair.right) or pair.left.shape != pair.right.shape
        for pair in asked.diff.pairs
    )
    share = odd / count
    level: Level = "low" if not odd else max_of("medium", stepped(share, asked.answer["structure"]))
    return Factor(
        "structure",
        level,
        f"{odd} tensors were added, removed or reshaped",
        "any is medium; then by their part of all tensors",
        {"tensors": float(odd)},
        mitigation="load the right model in the serving code before traffic reaches it",
    )


def max_of(one: Level, other: Level) -> Level:
    """Return the worse of two levels."""
    return highest([one, other])


def magnitude(asked: Question) -> Factor:
    """How far the parameters moved, against storage rounding and against earlier changes."""
    rule = "within storage rounding is low; then by relative L2, and by rank among past changes"
    if not asked.diff.has_values:
        return Factor("magnitude", "unknown", "only headers were read", rule, needs=_VALUES)
    if not is_comparable(asked.diff):
        why = "no parameter is in both models in one shape"
        return Factor("magnitude", "unknown", why, rule, needs="models that share parameters")
    moved = moved_parameters(asked.diff)
    far = relative_l2(moved)
    if far is None:
        why = "what moved has no finite size to relate to"
        return Factor("magnitude", "unknown", why, rule, needs="finite weights on the left")
    if all(is_rounding_only(each.scan) for each in moved):
        return Factor(
            "magnitude",
            "low",
            "no parameter moved beyond storage rounding",
            rule,
            {"relative_l2": far},
        )
    level, why = stepped(far, asked.answer["magnitude"]), f"relative L2 {far:.3g} of what moved"
    past = [each.value for each in asked.evidence.history if each.metric == _DELTAS]
    share = None
    if len(past) >= _LEAST_PAST:
        share = sum(value <= far for value in past) / len(past)
        why += f", above {share:.0%} of {len(past)} earlier changes"
        if share >= asked.answer["unusual"]:
            level = max_of(level, "high")
    numbers = {"relative_l2": far, "above_share_of_past": share}
    advice = "evaluate before release, begin with a part of the traffic"
    return Factor("magnitude", level, why, rule, numbers, mitigation=advice)


def precision(asked: Question) -> Factor:
    """Numbers stored in fewer bits than before."""
    pairs = [(pair.left, pair.right) for pair in asked.diff.pairs if pair.left and pair.right]
    fewer = [
        (left, right)
        for left, right in pairs
        if left.dtype in FLOATS and _width(right) < _width(left)
    ]
    narrow = sum(_width(right) < _NARROW for _, right in fewer)
    level: Level = "high" if narrow else "medium" if fewer else "low"
    why = f"{len(fewer)} tensors are stored in fewer bits, {narrow} of them below {_NARROW}"
    return Factor(
        "precision",
        level,
        why if fewer else "no tensor is stored in fewer bits than before",
        f"fewer bits are medium, fewer than {_NARROW} high",
        {"tensors": float(len(fewer)), "narrow": float(narrow)},
        mitigation="compare outputs with --sample and --model-code, and evaluate the stored model",
    )


def _width(info: TensorInfo) -> float:
    """Return the bits of an element; an encoding of blocks has fewer than any plain float."""
    return float(bits(info.dtype)) if info.stored is None else _NARROW / 2


def anomalies(asked: Question) -> Factor:
    """What --anomaly-detection found."""
    found = asked.answer.ask("anomaly_detection")
    word, rule = found.fields.get("severity"), "the severity of the worst finding; none is low"
    if word is None:
        return Factor("anomalies", "unknown", "nothing was looked at", rule, needs=_VALUES)
    levels: dict[str, Level] = {
        "none": "low",
        "info": "low",
        "low": "low",
        "medium": "medium",
        "high": "high",
        "critical": "critical",
    }
    count = found.fields["affected"]["count"]
    return Factor(
        "anomalies",
        levels[word],
        f"{found.fields['type']}, {count} affected",
        rule,
        {"affected": float(count)},
        mitigation="look at the findings of --anomaly-detection, and at the checkpoint before",
    )


def lineage(asked: Question) -> Factor:
    """Whether the right model comes from the left one."""
    rule = "derived or the same is low, nothing in common high"
    verdict = asked.answer.ask("lineage").fields.get("verdict")
    if verdict in {None, "inconclusive"}:
        why = "whether one comes from the other cannot be told"
        return Factor("lineage", "unknown", why, rule, needs="layers that can be compared")
    known = verdict in {"identical", "same_up_to_rounding", "derived"}
    return Factor(
        "lineage",
        "low" if known else "high",
        f"verdict: {verdict}",
        rule,
        mitigation="make sure that the right file is the one that was meant",
    )
