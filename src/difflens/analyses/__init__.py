"""What a diff says: one file an analysis, each a pure function of it."""

from __future__ import annotations

from ..diffs import Diff
from ..protocols import Analysis
from ..records import Envelope, Evidence, Policy
from ..registry import Registry

analysis: Registry[Analysis] = Registry("analysis", "difflens.analyses")

_NO_EVIDENCE = Evidence()
_DEFAULTS = Policy()


def analyse(
    name: str, diff: Diff, evidence: Evidence = _NO_EVIDENCE, policy: Policy = _DEFAULTS
) -> Envelope:
    """Ask one analysis; findings that it only yields are gathered into an envelope."""
    entry = analysis[name]
    answer = entry.plugin(diff, evidence, policy)
    if isinstance(answer, Envelope):
        return answer
    findings = tuple(answer)
    title = entry.name.replace("-", "_")
    return Envelope(
        title,
        "ok",
        {"findings": len(findings)},
        uncertainty={"findings": "exact"},
        method=f"{title}/1",
        findings=findings,
    )
