"""From a check to its outcome: regressed, ok, not found, breached, or unknown; and how severe.

With a margin the interval decides (non-inferiority): wholly beyond is `regressed`, wholly within
is `ok`, else `inconclusive`. Without one only a sure loss is `regressed`; its absence is
`not_found`, never "the same". Two single numbers can breach a limit of the user, no more.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

from ...records import Severity
from ...stats.equivalence import non_inferior
from .check import Check

Word = Literal[
    "regressed", "ok", "not_found", "breached", "within_limit", "inconclusive", "unknown"
]
FAILED = frozenset({"regressed", "breached"})
PASSED = frozenset({"ok", "not_found", "within_limit"})


class Outcome(NamedTuple):
    """What a check means for a gate; `limit` is the least loss that is sure."""

    check: Check
    word: Word
    severity: Severity | None
    limit: float | None
    why: str

    @property
    def passed(self) -> bool | None:
        """Did it pass? None where that cannot be said."""
        return self.word in PASSED if self.word in PASSED | FAILED else None


def outcome(check: Check, alpha: float, steps: Mapping[Severity, float]) -> Outcome:
    """Judge one check; `steps` are losses relative to left from which a severity holds."""
    if check.direction is None:
        name = check.metric
        why = f"which way {name} is better is not known: set [metrics.{name}] direction"
        return Outcome(check, "unknown", None, None, why)
    word, limit, why = _tested(check, alpha) if check.statistical else _limits(check)
    severity = _severity(limit, check.left, steps) if word in FAILED else None
    return Outcome(check, word, severity, limit, why)


def _tested(check: Check, alpha: float) -> tuple[Word, float | None, str]:
    made, found, margin = check.comparison, check.decision, check.rule.margin
    if made is None or found is None or found.word == "not_enough_data":
        return "unknown", None, found.reason if found else "nothing was compared"
    low = found.degradation_low
    if low is None:
        return "unknown", None, made.note or found.reason
    sure = check.adjusted is None or check.adjusted < alpha
    if low > (margin or 0.0) and sure:
        beyond = f"beyond the margin {margin:g}" if margin else "and is not noise"
        return "regressed", low, f"worse by at least {low:.4g}, {beyond}"
    if margin is None:
        high = found.degradation_high or 0.0
        return "not_found", low, f"no sure loss; one of up to {max(high, 0.0):.4g} is possible"
    if check.direction and non_inferior(made, margin, check.direction, alpha).holds:
        return "ok", low, f"worse by less than the margin {margin:g}"
    return "inconclusive", low, f"the interval reaches over the margin {margin:g}"


def _limits(check: Check) -> tuple[Word, float | None, str]:
    """Hold two single numbers against what the user set; nothing is tested."""
    loss, margin, threshold = check.degradation, check.rule.margin, check.rule.threshold
    if loss is None or check.right is None:
        return "unknown", None, check.note
    if margin is not None and loss > margin:
        return "breached", loss, f"worse by {loss:.4g}, {margin:g} is allowed; {check.note}"
    if threshold is not None:
        bad = check.right < threshold if check.direction == "higher" else check.right > threshold
        if bad:
            return "breached", loss, f"{check.right:.4g} is beyond the limit {threshold:g}"
    if margin is None and threshold is None:
        name = check.metric
        return "unknown", None, f"set [metrics.{name}] margin or threshold; {check.note}"
    return "within_limit", loss, f"within the user's limit; {check.note}"


def _severity(
    limit: float | None, left: float | None, steps: Mapping[Severity, float]
) -> Severity | None:
    """Name the step that the sure part of the loss, relative to left, has reached."""
    if limit is None or not left:
        return "low" if limit is not None else None
    loss = limit / abs(left)
    reached: list[Severity] = [name for name, step in steps.items() if loss >= step]
    return reached[-1] if reached else "low"
