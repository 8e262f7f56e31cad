"""What the finders of changes of structure say of two models, for the tests beside this file."""

from difflens import diff
from difflens.core.policy import Policy
from difflens.diffs.answer import Answer
from difflens.diffs.evidence.records import Evidence
from difflens.diffs.methods.changes.explained import Explained
from difflens.diffs.methods.structure import FINDERS


def found(left, right, evidence: Evidence | None = None) -> list[Explained]:
    """List the records, in order."""
    compared = diff(left, right)
    answer = Answer("structure", Policy())
    return [
        record for finder in FINDERS for record in finder(compared, evidence or Evidence(), answer)
    ]


def kinds(left, right, evidence: Evidence | None = None) -> list[str]:
    """List the kinds of the records, in order."""
    return [record.kind for record in found(left, right, evidence)]
