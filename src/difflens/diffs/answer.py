"""The answer of an analysis, built field by field: no null without a reason, no unnamed threshold.

>>> from difflens.core.policy import Policy, Threshold

from .diff import Diff
from .evidence.records import Evidence
>>> fields = {"count": "elements of both models", "is_large": "count above `large`", "speed": ""}
>>> answer = Answer(
...     "size", Policy(), thresholds={"large": Threshold(10, "a choice")}, fields=fields
... )
>>> answer.say("count", 12, uncertainty="exact")
>>> answer.say("is_large", 12 > answer["large"])
>>> answer.lack("speed", needs="--latency-left/--latency-right", why="nothing was timed")
>>> envelope = answer.envelope()
>>> envelope.status, envelope.fields["speed"], envelope.policy["large"]["source"]
('partial', None, 'default')
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple

from difflens.core.findings import Envelope, Finding, Interval, Missing, Severity
from difflens.core.policy import Policy, Threshold

from .diff import Diff
from .evidence.records import Evidence

Status = Literal["ok", "partial", "not_enough_information", "not_applicable", "error"]

_ONLY_FINDINGS = {"findings": ""}  # the one field of an analysis that declares none: their number


class Answer:
    """An envelope in the making: what an analysis declared, and what it has said so far."""

    def __init__(
        self,
        name: str,
        policy: Policy,
        *,
        thresholds: Mapping[str, Threshold] | None = None,
        fields: Mapping[str, str] | None = None,
        ask: Callable[[str], Envelope] | None = None,
    ) -> None:
        """Begin with what the decorator was given: `fields` maps each field to its basis.

        A threshold in force is the user's, if the policy has one, and the default otherwise.
        `ask` returns what another analysis says of the same models.
        """
        self.name = name
        self.policy = policy
        self.limits: dict[str, Any] = {
            key: policy.threshold(name, key, threshold.value)
            for key, threshold in (thresholds or {}).items()
        }
        self._declared = dict(fields or _ONLY_FINDINGS)
        self._ask = ask
        self._method = f"{name}/1"
        self._status: Status | None = None
        self._fields: dict[str, Any] = {}
        self._basis: dict[str, str] = {}
        self._uncertainty: dict[str, Interval | str] = {}
        self._missing: list[Missing] = []
        self._assumptions: list[str] = []
        self._findings: list[Finding] = []

    def __getitem__(self, threshold: str) -> Any:
        """Return the threshold in force."""
        return self.limits[threshold]

    def ask(self, name: str) -> Envelope:
        """Ask another analysis about the same models; where there is none, nothing is known."""
        return self._ask(name) if self._ask else Envelope(name, "not_applicable", {})

    def say(
        self, field: str, value: Any, *, basis: str = "", uncertainty: Interval | str | None = None
    ) -> None:
        """Answer one field, by default on its declared basis. A null needs `lack` instead."""
        if value is None:
            raise ValueError(f"{self.name}: {field} is null; say what it needs with `lack`")
        self._set(field, value, basis or self._declared.get(field, ""))
        if uncertainty is not None:
            self._uncertainty[field] = uncertainty

    def lack(self, field: str, *, needs: str, why: str, basis: str = "") -> None:
        """Leave one field null: what would fill it, and why it cannot be known without."""
        self._set(field, None, basis)
        self._missing.append(Missing(field, needs, why))

    def either(
        self,
        field: str,
        value: Any,
        *,
        basis: str = "",
        uncertainty: Interval | str | None = None,
        needs: str,
        why: str,
    ) -> None:
        """Answer the field where the value is known, else say what it needs."""
        if value is None:
            self.lack(field, needs=needs, why=why, basis=basis or self._declared.get(field, ""))
        else:
            self.say(field, value, basis=basis, uncertainty=uncertainty)

    def lack_rest(self, *, needs: str, why: str, status: Status | None = None) -> None:
        """Leave every field null that has no answer yet; `status` is that of the whole answer."""
        for field in self._declared:
            if field not in self._fields:
                self.lack(field, needs=needs, why=why)
        self._status = status

    def assume(self, text: str) -> None:
        """State an assumption that matters for reading the numbers."""
        if text not in self._assumptions:
            self._assumptions.append(text)

    def find(
        self,
        subject: str,
        text: str,
        evidence: Mapping[str, float | None],
        severity: Severity = "info",
    ) -> None:
        """Add a finding; the subject is a tensor of the diff, or empty for all of it."""
        self._findings.append(Finding(self.name, subject, text, dict(evidence), severity))

    def seeded(self, seed: int) -> None:
        """Name the seed of the resampling behind the numbers."""
        self._method = f"{self._method} seed={seed}"

    def envelope(self) -> Envelope:
        """Close the answer: fields in the order of their declaration, a status if none was set."""
        if self._declared == _ONLY_FINDINGS:
            self.say("findings", len(self._findings), uncertainty="exact")
        return Envelope(
            self.name,
            self._status or self._known(),
            {field: self._fields[field] for field in self._declared if field in self._fields},
            basis=self._basis,
            uncertainty=self._uncertainty,
            missing=tuple(self._missing),
            assumptions=tuple(self._assumptions),
            policy={key: self._source(key) for key in self.limits},
            method=self._method,
            findings=tuple(self._findings),
        )

    def _set(self, field: str, value: Any, basis: str) -> None:
        if field not in self._declared:
            known = ", ".join(self._declared)
            raise ValueError(f"{self.name}: {field} is not declared; `fields` are: {known}")
        self._fields[field] = value
        if basis:
            self._basis[field] = basis

    def _known(self) -> Status:
        if not self._missing:
            return "ok"
        is_known = any(value is not None for value in self._fields.values())
        return "partial" if is_known else "not_enough_information"

    def _source(self, key: str) -> dict[str, Any]:
        by_user = key in self.policy.thresholds.get(self.name, {})
        return {"value": self.limits[key], "source": "user" if by_user else "default"}


class Question(NamedTuple):
    """What an analysis looks at, for those that ask many parts the same: gates, detectors."""

    diff: Diff
    evidence: Evidence
    answer: Answer
