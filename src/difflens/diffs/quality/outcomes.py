"""From a check to its outcome: regressed, ok, not found, breached, or unknown; and how severe.

With a margin the interval decides (non-inferiority): surely beyond is `regressed`, wholly within
is `ok`, else `inconclusive`. Without one only a sure loss is `regressed`; its absence is
`not_found`, never "the same". A limit in the metric's own units is held against the interval of
the right value, or against the value where there is none; two single numbers are held against
what the user set, and nothing is tested.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil
from typing import Literal, NamedTuple

from difflens.core.findings import Severity
from difflens.stats.comparison import Comparison
from difflens.stats.decision import Direction, degradation

from .check import Check, is_over, margin_of
from .margins import direction_needs

Word = Literal[
    "regressed", "ok", "not_found", "breached", "within_limit", "inconclusive", "unknown"
]
FAILED = frozenset({"regressed", "breached"})
_THRESHOLD = "a threshold on two single numbers, no test"
_TOO_MANY = 1e4  # times as many examples, above which their number helps nobody
_STEPS = 1000  # between as many examples and too many: one is 1 % more
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
        """Did it pass? None if that cannot be said."""
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
    said = _describe(check, alpha)
    severity = _severity(said.limit, check.left, steps) if said.word in FAILED else None
    return Outcome(check, said.word, severity, said.limit, said.why, said.needs)


def describe_gain(found: Outcome) -> str:
    """Say how much better right is, where a rule with the sides exchanged has found a loss."""
    margin = found.check.rule.margin
    if found.check.statistical:
        beyond = f"beyond the margin {margin:g}" if margin else "which is not noise"
        return f"better by at least {found.limit:.4g}, {beyond}"
    return (
        f"better by {found.limit:.4g}, {margin:g} is the margin; {_THRESHOLD}; {found.check.note}"
    )


def verdict(found: list[Outcome]) -> bool | None:
    """Say whether all passed; None if one is open, or where none says anything."""
    words = [each.passed for each in found if each.counts]
    if False in words:
        return False
    return None if None in words or not words else True


def _describe(check: Check, alpha: float) -> _Said:
    if check.direction is None:
        why = f"which way {check.metric} is better is not known"
        return _Said("unknown", None, why, direction_needs(check.metric))
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
        return _Said("unknown", None, why, f"more examples or repeats of {name}: {why}")
    low = check.sure_loss
    if low is None or found.degradation_high is None:
        why = made.note or "no interval is known"
        return _Said("unknown", None, why, f"more examples or repeats of {name}: {why}")
    if is_over(check, margin_of):
        beyond = f"beyond the margin {margin:g}" if margin else "which is not noise"
        return _Said("regressed", low, f"worse by at least {low:.4g}, {beyond}")
    if margin is None:
        most = max(found.degradation_high, 0.0)
        return _Said("not_found", low, f"no sure loss; one of up to {most:.4g} is possible")
    ends = degradation(made, better).interval(1 - 2 * alpha)
    if ends and ends[1] < margin:
        return _Said("ok", low, _within(ends, margin))
    why = f"a loss of {found.degradation_high:.4g} is possible, the margin is {margin:.4g}"
    return _Said("inconclusive", low, why, _deciding(check, better, margin, ends))


def _within(ends: tuple[float, float], margin: float) -> str:
    """Say what an interval within the margin shows: a gain is no loss below the margin."""
    if ends[1] < 0:
        return f"better by at least {-ends[1]:.4g}"
    return f"worse by less than the margin {margin:g}, if at all"


def _deciding(
    check: Check, better: Direction, margin: float, ends: tuple[float, float] | None
) -> str:
    """Say what would decide: so many examples, if the loss stays as it is, or another margin."""
    made, loss, low = check.comparison, check.degradation, check.sure_loss
    setting = f"[metrics.{check.metric}] margin in --policy"
    if made is None or loss is None or low is None or ends is None or check.source == "history":
        return f"more examples of {check.metric}, or a wider {setting}"
    wider = f"a {setting} above {ends[1]:.3g}"
    times = _times(check, made, better, margin)
    if times is None:
        return f"many more examples of {check.metric}, or {wider}"
    more = ceil(made.n_right * times)
    return f"about {more:,} examples of {check.metric} (there are {made.n_right:,}), or {wider}"


def _times(check: Check, made: Comparison, better: Direction, margin: float) -> float | None:
    """Return how many times the examples would decide, with the same results and the same test."""
    from bisect import bisect_left

    is_within = (check.degradation or 0.0) < margin

    def decides(step: int) -> bool:
        ends = _of_more(check, made, _TOO_MANY ** (step / _STEPS), is_within=is_within)
        if ends is None:
            return False
        worse = degradation(made._replace(low=ends[0], high=ends[1]), better)
        if worse.low is None or worse.high is None:
            return False
        return worse.high < margin if is_within else worse.low > margin

    step = bisect_left(range(_STEPS + 1), True, key=decides)
    return None if step > _STEPS else float(_TOO_MANY ** (step / _STEPS))


def _of_more(
    check: Check, made: Comparison, times: float, *, is_within: bool
) -> tuple[float, float] | None:
    """Return the interval of so many times the examples, at the level at which it would decide."""
    level = made.level if is_within else check.sure_level or made.level
    if check.trial.enlarged and not made.standard_error:
        return check.trial.enlarged(times, level)
    ends = made.interval(2 * level - 1 if is_within else level) or made.interval(made.level)
    if ends is None:
        return None
    below, above = made.difference - ends[0], ends[1] - made.difference
    return made.difference - below / times**0.5, made.difference + above / times**0.5


def _two_numbers(check: Check) -> _Said:
    loss, margin = check.degradation, check.rule.margin
    if margin is None or loss is None:
        needs = f"[metrics.{check.metric}] margin or threshold in --policy"
        return _Said("unknown", None, f"no limit was set; {check.note}", needs)
    if loss > margin:
        why = f"worse by {loss:.4g}, {margin:g} is allowed; {_THRESHOLD}; {check.note}"
        return _Said("breached", loss, why)
    why = f"worse by no more than {margin:g}; {_THRESHOLD}; {check.note}"
    return _Said("within_limit", loss, why)


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
