"""The laws of analyses: a pure function that shows its evidence and invents nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from math import isfinite
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from difflens.core.findings import Envelope
from difflens.core.registry import Entry
from difflens.diffs.analyses import Analysis, analysis, ask
from difflens.diffs.diff import Diff

from .laws import deeds, hold, is_described, registered
from .models import diffs
from .situations import Situation, situations

_OPTIONS = frozenset({"needs", "fields", "thresholds", "gate", "gates", "constants", "measures"})
_NEEDS = (None, "tensors", "values")
_STATUSES = ("ok", "partial", "not_enough_information", "not_applicable", "error")


class Case(NamedTuple):
    """An analysis under test, and the diffs that it must handle."""

    entry: Entry
    diffs: dict[str, Diff]

    def answer(self, name: str) -> Envelope:
        """Ask about one of the diffs."""
        return ask(self.entry.name, self.diffs[name])

    def informed(self, situation: Situation) -> Envelope:
        """Ask about a pair with all evidence."""
        return ask(self.entry.name, situation.diff, situation.evidence, situation.policy)


def check_analysis(
    plugin: Analysis, laws: tuple[Callable[[Case], None], ...] | None = None
) -> None:
    """Check an analysis against its contract."""
    entry = registered(analysis, plugin)
    with TemporaryDirectory(prefix="difflens-") as folder:
        case = Case(entry, dict(diffs(Path(folder))))
        for each in case.diffs.values():
            _ = each.deltas  # measured here, since an analysis must not open a file
        for law in laws or LAWS:
            law(case)


def it_is_described(case: Case) -> None:
    """It has a summary, and declares only what `@analysis` knows."""
    is_described(case.entry)
    options = case.entry.options
    unknown = sorted(options.keys() - _OPTIONS)
    hold(not unknown, f"{case.entry.name}: @analysis has no option {', '.join(unknown)}")
    needs = options.get("needs")
    hold(needs in _NEEDS, f"{case.entry.name}: needs={needs!r}, expected one of {_NEEDS[1:]}")
    gate = options.get("gate")
    fields = options.get("fields") or {}
    hold(gate is None or gate in fields, f"{case.entry.name}: gate={gate!r} is not in its fields")


def it_answers_every_diff(case: Case) -> None:
    """It answers every field that it declares for every diff, with a status and a method."""
    declared = set(case.entry.options.get("fields") or ("findings",))
    for name in case.diffs:
        answer = case.answer(name)
        silent = sorted(declared - answer.fields.keys())
        hold(not silent, f"{name}: {', '.join(silent)} declared and not answered")
        hold(
            answer.status in _STATUSES,
            f"{name}: status {answer.status!r} is not one of {_STATUSES}",
        )
        hold(answer.method, f"{name}: the envelope names no method")


def it_says_what_is_missing(case: Case) -> None:
    """A field that is null has a reason in `missing`; no number is NaN or infinite."""
    for name in case.diffs:
        _explained(case.answer(name), name)


def its_findings_show_evidence(case: Case) -> None:
    """A finding has the numbers that show it, and its subject is in the diff."""
    for name, diff in case.diffs.items():
        subjects = {"", *(delta.name for delta in diff.deltas)}
        for finding in case.answer(name).findings:
            hold(finding.evidence, f"{name}: {finding.text!r} has no evidence")
            known = finding.subject in subjects
            hold(known, f"{name}: {finding.subject!r} is not a tensor of the diff")


def it_finds_nothing_in_equal_models(case: Case) -> None:
    """In equal models, empty models or headers alone it finds nothing."""
    for name in ("same", "empty", "headers alone"):
        found = case.answer(name).findings
        hold(not found, f"{name}: it found {[each.text for each in found]}")


def it_is_pure(case: Case) -> None:
    """The same diff gives the same answer, without files, programs or sockets."""
    for name in case.diffs:
        first = case.answer(name)
        with deeds() as done:
            second = case.answer(name)
        hold(first == second, f"{name}: asked twice, it gave two answers")
        hold(not done, f"{name}: while answering it did {done}")


def it_answers_by_its_values(case: Case) -> None:
    """Very different pairs with all evidence do not all get the same answer."""
    answers = [case.informed(each).to_dict() for each in _situations().values()]
    alike = all(answer == answers[0] for answer in answers)
    hold(not alike, f"{case.entry.name}: three situations all got one answer")


def it_prints_no_constant(case: Case) -> None:
    """No number is the same for three very different pairs; `constants=` lists exceptions."""
    allowed = case.entry.options.get("constants", ())
    found = [dict(_numbers(case.informed(each).fields)) for each in _situations().values()]
    for field, value in found[0].items():
        same = all(other.get(field) == value for other in found[1:])
        known = field.partition(".")[0] in allowed or value in _TRIVIAL
        hold(not same or known, f"{case.entry.name}: {field} is {value} in three situations")


def it_says_what_is_missing_with_evidence_too(case: Case) -> None:
    """With all evidence too, a null has its reason, and no number is NaN or infinite."""
    for name, each in _situations().items():
        _explained(case.informed(each), name)


# Counts of faults, and shares of all or nothing, may be equal in three pairs.
_TRIVIAL = (0, 1, 0.0, 1.0, True, False)


@cache
def _situations() -> dict[str, Situation]:
    return dict(situations())


def _numbers(fields: dict[str, Any]) -> Iterator[tuple[str, float]]:
    for name, value in fields.items():
        if isinstance(value, int | float):
            yield name, value
        elif isinstance(value, dict):
            yield from ((f"{name}.{key}", each) for key, each in _numbers(value))


def _explained(answer: Envelope, name: str) -> None:
    excused = {each.field for each in answer.missing if each.needs and each.why}
    null = {field for field, value in answer.fields.items() if value is None}
    hold(null <= excused, f"{name}: null without a reason: {sorted(null - excused)}")
    _finite(answer.to_dict() | {"policy": None}, name)


LAWS = (
    it_is_described,
    it_answers_every_diff,
    it_says_what_is_missing,
    its_findings_show_evidence,
    it_finds_nothing_in_equal_models,
    it_is_pure,
    it_answers_by_its_values,
    it_prints_no_constant,
    it_says_what_is_missing_with_evidence_too,
)


def _finite(value: Any, where: str) -> None:
    if isinstance(value, float):
        hold(isfinite(value), f"{where} holds {value}")
    elif isinstance(value, dict):
        for key, part in value.items():
            _finite(part, f"{where}: {key}")
    elif isinstance(value, list | tuple):
        for part in value:
            _finite(part, where)
