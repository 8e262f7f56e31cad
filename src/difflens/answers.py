"""Builds an envelope field by field: no null goes without its reason, no label without its policy.

>>> from .records import Policy, Threshold
>>> answer = Answer("size", Policy(), {"large": Threshold(10, "a choice")})
>>> answer.say("count", 12, basis="elements of both models", uncertainty="exact")
>>> answer.say("is_large", 12 > answer["large"], basis="count above `large`")
>>> answer.lack("speed", needs="--latency-left/--latency-right", why="nothing was timed")
>>> envelope = answer.envelope()
>>> envelope.status, envelope.fields["speed"], envelope.policy["large"]["source"]
('partial', None, 'default')
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from .records import Envelope, Finding, Interval, Missing, Policy, Severity, Threshold

Status = Literal["ok", "partial", "not_enough_information", "not_applicable", "error"]


class Answer:
    """An envelope in the making."""

    def __init__(
        self,
        name: str,
        policy: Policy,
        thresholds: Mapping[str, Threshold] | None = None,
        *,
        version: int = 1,
    ) -> None:
        """Take the thresholds in force: the user's where there is one, else the default."""
        self.name = name
        self._method = f"{name}/{version}"
        self._policy = {
            key: {
                "value": policy.threshold(name, key, threshold.value),
                "source": "user" if key in policy.thresholds.get(name, {}) else "default",
            }
            for key, threshold in (thresholds or {}).items()
        }
        self._fields: dict[str, Any] = {}
        self._basis: dict[str, str] = {}
        self._uncertainty: dict[str, Interval | str] = {}
        self._missing: list[Missing] = []
        self._assumptions: list[str] = []
        self._findings: list[Finding] = []

    def __getitem__(self, threshold: str) -> Any:
        """Give the threshold in force."""
        return self._policy[threshold]["value"]

    def say(
        self,
        field: str,
        value: Any,
        *,
        basis: str = "",
        uncertainty: Interval | str | None = None,
    ) -> None:
        """Answer one field. A value that is None needs `lack` instead."""
        if value is None:
            raise ValueError(f"{self.name}: {field} is null; say what it needs with `lack`")
        self._fields[field] = value
        if basis:
            self._basis[field] = basis
        if uncertainty is not None:
            self._uncertainty[field] = uncertainty

    def lack(self, field: str, *, needs: str, why: str) -> None:
        """Leave one field null: what would fill it, and why it cannot be known without."""
        self._fields[field] = None
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
        if value is not None:
            self.say(field, value, basis=basis, uncertainty=uncertainty)
            return
        self.lack(field, needs=needs, why=why)
        if basis:
            self._basis[field] = basis

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
        """Add a finding; the subject is a tensor of the diff, or empty for the whole."""
        self._findings.append(Finding(self.name, subject, text, dict(evidence), severity))

    def seeded(self, seed: int) -> None:
        """Name the seed of the resampling behind the numbers."""
        self._method = f"{self._method} seed={seed}"

    def envelope(self, status: Status | None = None) -> Envelope:
        """Close it; the status follows from what is known where none is given."""
        if status is None:
            known = sum(value is not None for value in self._fields.values())
            status = "ok" if not self._missing else "partial" if known else "not_enough_information"
        return Envelope(
            self.name,
            status,
            self._fields,
            basis=self._basis,
            uncertainty=self._uncertainty,
            missing=tuple(self._missing),
            assumptions=tuple(self._assumptions),
            policy=self._policy,
            method=self._method,
            findings=tuple(self._findings),
        )
