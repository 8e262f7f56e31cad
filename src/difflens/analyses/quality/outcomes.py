"""From a check to its outcome: regressed, ok, not found, breached, or unknown; and how severe.

With a margin the interval decides (non-inferiority): surely beyond is `regressed`, wholly within
is `ok`, else `inconclusive`. Without one only a sure loss is `regressed`; its absence is
`not_found`, never "the same". A limit in the metric's own units is held against the interval of
the right value, or against the value where there is none; two single numbers are held against
what the user set, and nothing is tested.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

from ...records import Severity
from ...stats.equivalence import Direction, degradation
from .check import Check
from .checks import is_over, margin_of

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
    needs: str = ""

    @property
    def passed(self) -> bool | None:
        """Did it pass? None where that cannot be said."""
        return self.word in PASSED if self.word in PASSED | FAILED else None

    @property
    def counts(self) -> bool:
        """Does it speak at all? Two single numbers without a limit say nothing of passing."""
        return self.check.statistical or self.word != "unknown"


class _Said(NamedTuple):
    word: Word
    limit: float | None
    why: str
    needs: str = ""


def outcome(check: Check, alpha: float, steps: Mapping[Severity, float]) -> Outcome:
    """Judge one check; `steps` are losses relative to left from which a severity holds."""
    said = _said(check, alpha)
    severity = _severity(said.limit, check.left, steps) if said.word in FAILED else None
    return Outcome(check, said.word, severity, said.limit, said.why, said.needs)


def verdict(found: list[Outcome]) -> bool | None:
    """Say whether all passed; None where one is open, or where none says anything."""
    words = [each.passed for each in found if each.counts]
    if False in words:
        return False
    return None if None in words or not words else True


def _said(check: Check, alpha: float) -> _Said:
    if check.direction is None:
        needs = f"[metrics.{check.metric}] direction in --policy"
        return _Said("unknown", None, f"which way {check.metric} is better is not known", needs)
    change = _tested(check, check.direction, alpha) if check.statistical else _two_numbers(check)
    level = _limited(check, check.direction)
    if level is None or change.word == "regressed":
        return change
    if change.word == "unknown" and not check.statistical:
        return level
    if level.word == "breached" or change.word in PASSED:
        return level if level.word != "within_limit" else change
    return change


def _tested(check: Check, better: Direction, alpha: float) -> _Said:
    made, found, margin = check.comparison, check.decision, check.rule.margin
    name = check.metric
    if made is None or found is None or not check.is_enough:
        why = found.reason if found else "nothing was compared"
        return _Said("unknown", None, why, f"more examples or repeats of {name}")
    low = check.sure_loss
    if low is None or found.degradation_high is None:
        why = made.note or "no interval is known"
        return _Said("unknown", None, why, f"more examples or repeats of {name}")
    if is_over(check, margin_of):
        beyond = f"beyond the margin {margin:g}" if margin else "which is not noise"
        return _Said("regressed", low, f"worse by at least {low:.4g}, {beyond}")
    if margin is None:
        most = max(found.degradation_high, 0.0)
        return _Said("not_found", low, f"no sure loss; one of up to {most:.4g} is possible")
    ends = degradation(made, better).interval(1 - 2 * alpha)
    if ends and ends[1] < margin:
        return _Said("ok", low, f"worse by less than the margin {margin:g}")
    why = f"a loss of {found.degradation_high:.4g} is possible, the margin is {margin:g}"
    return _Said("inconclusive", low, why, f"more examples of {name}, or a wider margin")


def _two_numbers(check: Check) -> _Said:
    loss, margin = check.degradation, check.rule.margin
    if margin is None or loss is None:
        needs = f"[metrics.{check.metric}] margin or threshold in --policy"
        return _Said("unknown", None, f"no limit was set; {check.note}", needs)
    if loss > margin:
        return _Said("breached", loss, f"worse by {loss:.4g}, {margin:g} is allowed; {check.note}")
    return _Said("within_limit", loss, f"worse by no more than {margin:g}; {check.note}")


def _limited(check: Check, better: Direction) -> _Said | None:
    """Hold the right value against the user's limit in its own units, if there is one."""
    limit = check.rule.threshold
    if limit is None:
        return None
    low, high = check.right_interval
    least, most = (check.right if end is None else end for end in (low, high))
    near, far = (most, least) if better == "higher" else (least, most)
    over = [_is_beyond(end, limit, better) for end in (near, far)]
    loss = check.sure_loss if check.statistical else check.degradation
    said = f"{check.right:.4g} against the limit {limit:g}"
    if all(over):
        return _Said("breached", loss, f"{said}: beyond it")
    if any(over):
        why = f"{said}: {far:.4g} is possible"
        return _Said("inconclusive", loss, why, f"more examples of {check.metric}")
    return _Said("within_limit", loss, f"{said}: within it")


def _is_beyond(value: float, limit: float, better: Direction) -> bool:
    return value < limit if better == "higher" else value > limit


def _severity(limit: float | None, left: float, steps: Mapping[Severity, float]) -> Severity | None:
    """Name the step that the sure part of the loss, relative to left, has reached."""
    if limit is None or not left:
        return "low"
    loss = limit / abs(left)
    reached: list[Severity] = [name for name, step in steps.items() if loss >= step]
    return reached[-1] if reached else "low"
