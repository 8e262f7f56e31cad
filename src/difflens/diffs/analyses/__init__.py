"""What a diff says: one file per analysis, each a pure function that fills its answer.

Every file of this folder is an analysis; what several of them share lies in `methods` and
`quality` beside it.
"""

from __future__ import annotations

from collections.abc import Callable

from difflens.core.errors import UnknownName
from difflens.core.findings import Envelope
from difflens.core.policy import Policy
from difflens.core.registry import Registry

from ..answer import Answer
from ..diff import Diff
from ..evidence.records import Evidence

Analysis = Callable[[Diff, Evidence, Answer], None]

# Options of `@analysis`, each declared once and handed to the function in its `Answer`:
# `needs` is "tensors" or "values" if there is no answer without, and is checked before the call;
# `fields` maps each field to its basis, the three or four that matter most first;
# `thresholds` maps names to `Threshold`s, which the user may set in a policy;
# `gate` is the field whose word decides an exit code, `gates` are words for `required` in a policy;
# `constants` are fields that may be equal for very different models;
# `measures` are the measures of whole tensors that it asks for, which one pass can take.
analysis: Registry[Analysis] = Registry("analysis", __name__, "difflens.analyses")

_NO_EVIDENCE = Evidence()
_DEFAULTS = Policy()


def analyse(
    name: str, diff: Diff, evidence: Evidence | None = None, policy: Policy | None = None
) -> Envelope:
    """Ask one analysis, once: whoever asks the same again gets the same envelope."""
    entry = analysis[name]
    evidence, policy = evidence or _NO_EVIDENCE, policy or _DEFAULTS
    # Both are stored with the answer, so that no other one can come to have their identity.
    key = ("analysis", entry.name, id(evidence), id(policy))
    answer: tuple[Envelope, Evidence, Policy] = diff.remember(
        key, lambda: (ask(entry.name, diff, evidence, policy), evidence, policy)
    )
    return answer[0]


def ask(
    name: str, diff: Diff, evidence: Evidence = _NO_EVIDENCE, policy: Policy = _DEFAULTS
) -> Envelope:
    """Ask one analysis afresh, unless it needs tensors or values that are not there."""
    entry = analysis[name]

    def other(wanted: str) -> Envelope:
        try:
            analysis[wanted]
        except UnknownName:
            return Envelope(wanted, "not_applicable", {})
        return analyse(wanted, diff, evidence, policy)

    answer = Answer(
        entry.name.replace("-", "_"),
        policy,
        thresholds=entry.options.get("thresholds"),
        fields=entry.options.get("fields"),
        ask=other,
    )
    needs = entry.options.get("needs")
    if needs and not diff.pairs:
        answer.lack_rest(needs="tensors", why="neither model holds any", status="not_applicable")
    elif needs == "values" and not diff.has_values:
        why, needs = "only headers were read", "tensor values"
        if diff.is_estimated:
            why, needs = "a fingerprint holds no values", "the model's bytes (--exact)"
        answer.lack_rest(needs=needs, why=why, status="not_enough_information")
    else:
        entry.plugin(diff, evidence, answer)
    return answer.envelope()
