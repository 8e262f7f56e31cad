"""One gate: what it asked, what the answer was, and what would answer it."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from ...answers import Answer
from ...diffs import Diff
from ...evidences import Evidence
from ...records import Policy

Word = Literal["pass", "fail", "unknown", "not_applicable"]


class Asked(NamedTuple):
    """What gates look at: the models, the evidence, the policy and the thresholds in force."""

    diff: Diff
    evidence: Evidence
    policy: Policy
    answer: Answer


class Gate(NamedTuple):
    """A gate and its answer; `needs` is what would settle one that is unknown."""

    name: str
    word: Word
    evidence: str
    needs: str = ""

    def told(self, *, required: bool) -> dict[str, Any]:
        """Give it as plain data."""
        return {"name": self.name, "result": self.word, "required": required,
                "evidence": self.evidence, "needs": self.needs}  # fmt: skip
