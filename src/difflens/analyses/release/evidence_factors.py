"""Factors of risk that only evidence shows: quality, its coverage, the vocabulary."""

from __future__ import annotations

from ...diffs import Diff
from ...evidences import Evidence
from ...records import SAME
from ..quality.checks import checks
from ..quality.outcomes import Outcome, outcome, verdict
from ..quality.settings import Settings
from ..representations.vocabulary import embedding_table
from .factor import Factor, Level, Situation
from .vocabulary import change

_QUALITY_RULE = (
    "a sure loss beyond its margin is high; non-inferior is low; open is medium; no test unknown"
)
_OPTIONS = {
    "evals": "--eval-right", "latency": "--latency-right", "config": "--config-right",
    "tokenizer": "--tokenizer-right", "sample": "--sample and --model-code",
}  # fmt: skip
_NEEDS = "--eval-left/--eval-right, with [metrics.NAME] margin in --policy"


def quality(case: Situation) -> Factor:
    """How far the metrics are from the loss that was called bearable."""
    settings = Settings(case.limits["alpha"], case.limits["latency_quantile"], case.limits["seed"])
    known = checks(case.evidence, case.policy, settings, diff=case.diff)
    found = [outcome(each, settings.alpha, {}) for each in known]
    told = [each for each in found if each.counts]
    if not told:
        return _untested(case)
    passed = verdict(told)
    level: Level = "high" if passed is False else "low" if passed else "medium"
    if passed and any(each.word == "not_found" for each in told):
        level = "medium"  # no sure loss, and no margin that says how large a loss matters
    shown = [each for each in told if each.passed is passed] or told
    return Factor(
        "quality", level, "; ".join(f"{each.check.metric}: {each.why}" for each in shown[:3]),
        _QUALITY_RULE, dict(_distances(told)), needs="" if passed else _NEEDS,
        mitigation="evaluate on more examples, set margins, keep the left model ready",
    )  # fmt: skip


def _untested(case: Situation) -> Factor:
    if _is_same(case.diff, case.evidence):
        why = "all weights are the same bits, so nothing of them can be worse"
        return Factor("quality", "low", why, _QUALITY_RULE)
    why = "weights do not tell how well a model does"
    return Factor("quality", "unknown", why, _QUALITY_RULE, needs=_NEEDS)


def _is_same(diff: Diff, evidence: Evidence) -> bool:
    left, right = evidence.left, evidence.right
    beside = left.config == right.config and left.tokens == right.tokens
    known = diff.has_values and bool(diff.deltas) and not diff.metadata
    return beside and known and all(delta.kind in SAME - {"paired", "within_epsilon"}
                                    for delta in diff.deltas)  # fmt: skip


def _distances(found: list[Outcome]) -> list[tuple[str, float | None]]:
    """Give the part of each margin that is left: 1 where nothing is lost, 0 at the margin."""
    return [
        (f"{each.check.metric} margin left", 1 - most / margin)
        for each in found
        if (margin := each.check.rule.margin)
        and each.check.decision
        and (most := each.check.decision.degradation_high) is not None
    ]


def coverage(case: Situation) -> Factor:
    """How much of what can be handed in was."""
    side = case.evidence.right
    given = {
        "evals": bool(side.evals), "latency": bool(side.latency), "config": bool(side.config),
        "tokenizer": side.tokens is not None, "sample": case.evidence.activations is not None,
    }  # fmt: skip
    there = [name for name, known in given.items() if known]
    level: Level = "low" if len(there) == len(given) else "medium" if there else "unknown"
    return Factor(
        "coverage", level, f"handed in: {', '.join(there) or 'nothing'}",
        "all kinds of evidence are low, some medium, none unknown",
        {"given": float(len(there)), "kinds": float(len(given))},
        needs=", ".join(_OPTIONS[name] for name in given if name not in there),
        mitigation="hand in what is missing",
    )  # fmt: skip


def vocabulary(case: Situation) -> Factor:
    """Tokens that moved to other rows, special tokens above all."""
    rule = "a token or special token at another row is high, added or removed ones medium"
    table = embedding_table(case.diff) if case.diff.pairs else None
    if table is None:
        return Factor("vocabulary", "low", "there is no embedding of tokens", rule)
    found = change(case.evidence)
    if found is None:
        rows = table.left.shape[0], table.right.shape[0]
        why = f"{rows[0]} and {rows[1]} rows, and no two tokenizers say what they mean"
        return Factor(
            "vocabulary", "unknown", why, rule, needs="--tokenizer-left/--tokenizer-right"
        )
    moved = found.moved + len(found.special)
    level: Level = "high" if moved else "medium" if found.added + found.removed else "low"
    why = f"{found.added} tokens added, {found.removed} removed, {found.moved} at another row"
    if found.special:
        why += f"; special tokens changed: {', '.join(found.special[:3])}"
    numbers: dict[str, float | None] = {
        "added": found.added,
        "removed": found.removed,
        "moved": found.moved,
        "special": len(found.special),
    }
    return Factor("vocabulary", level, why, rule, numbers,
                  mitigation="release the tokenizer together with the weights")  # fmt: skip
