"""What a diff says: one file an analysis, each a pure function of it.

Every file of this folder is an analysis; what several of them share lies in its sub-packages.
"""

from __future__ import annotations

from ..diffs import Diff
from ..evidences import Evidence
from ..protocols import Analysis
from ..records import Envelope, Policy
from ..registry import Registry

analysis: Registry[Analysis] = Registry("analysis", "difflens.analyses")

_NO_EVIDENCE = Evidence()
_DEFAULTS = Policy()


def analyse(
    name: str, diff: Diff, evidence: Evidence = _NO_EVIDENCE, policy: Policy = _DEFAULTS
) -> Envelope:
    """Ask one analysis, once: whoever asks the same again gets the same envelope."""
    entry = analysis[name]
    # Both are kept with the answer, so that no other one can come to have their identity.
    key = ("analysis", entry.name, id(evidence), id(policy))
    answer: tuple[Envelope, Evidence, Policy] = diff.remember(
        key, lambda: (ask(entry.name, diff, evidence, policy), evidence, policy)
    )
    return answer[0]


def ask(
    name: str, diff: Diff, evidence: Evidence = _NO_EVIDENCE, policy: Policy = _DEFAULTS
) -> Envelope:
    """Ask one analysis afresh; findings that it only yields are gathered into an envelope."""
    answer = analysis[name].plugin(diff, evidence, policy)
    if isinstance(answer, Envelope):
        return answer
    findings = tuple(answer)
    title = analysis[name].name.replace("-", "_")
    return Envelope(
        title,
        "ok",
        {"findings": len(findings)},
        uncertainty={"findings": "exact"},
        method=f"{title}/1",
        findings=findings,
    )
