"""What may go wrong with the right model: factors with their rules, and what nobody looked at."""

from __future__ import annotations

from typing import NamedTuple

from difflens.core.findings import Severity
from difflens.core.policy import Policy, Threshold
from difflens.core.records import SAME

from ..answer import Answer, Question
from ..diff import Diff
from ..evidence.records import Evidence
from ..methods.factors import (
    LEVELS,
    Factor,
    Level,
    anomalies,
    highest,
    lineage,
    magnitude,
    precision,
    structure,
)
from ..methods.gates import change
from ..methods.representations import embedding_table
from ..quality.check import rule_of
from ..quality.gating import gate_outcomes, gate_trials
from ..quality.margins import limits_of, with_margins
from ..quality.outcomes import Outcome, verdict
from ..quality.sides import Sides, metrics_of, sides_of
from ..quality.trials import Settings
from . import analysis

_QUALITY_RULE = (
    "a sure loss beyond its margin is high; non-inferior is low; open is medium; no test unknown"
)
_OPTIONS = {
    "evals": "--eval-right",
    "latency": "--latency-right",
    "config": "--config-right",
    "tokenizer": "--tokenizer-right",
    "sample": "--sample and --model-code",
}
_NEEDS = "--eval-left/--eval-right, with [metrics.NAME] margin in --policy"


def quality(asked: Question) -> Factor:
    """How far the metrics are from the loss that was called bearable."""
    settings = Settings.of(asked.answer)
    found = gate_outcomes(asked.evidence, asked.answer.policy, settings, {})
    told = [each for each in found if each.counts]
    passed = verdict(told)
    if passed is not False and _is_same(asked.diff, asked.evidence):
        why = "all weights are the same bits, so nothing of them can be worse"
        return Factor("quality", "low", why, _QUALITY_RULE)
    if not told:
        why = "weights do not tell how well a model does"
        return Factor("quality", "unknown", why, _QUALITY_RULE, needs=_NEEDS)
    level: Level = "high" if passed is False else "low" if passed else "medium"
    if passed and any(each.word == "not_found" for each in told):
        level = "medium"  # no sure loss, and no margin that says how large a loss matters
    shown = [each for each in told if each.passed is passed] or told
    return Factor(
        "quality",
        level,
        "; ".join(f"{each.check.metric}: {each.why}" for each in shown[:3]),
        _QUALITY_RULE,
        dict(_distances(told)),
        needs="" if passed else _NEEDS,
        mitigation="evaluate on more examples, set margins, keep the left model ready",
    )


def _is_same(diff: Diff, evidence: Evidence) -> bool:
    """Are all weights the same bits, and nothing beside them known to differ?"""
    left, right = evidence.left, evidence.right
    beside = all(
        None in both or both[0] == both[1]
        for both in ((left.config, right.config), (left.tokens, right.tokens))
    )
    known = diff.has_values and bool(diff.deltas) and not diff.metadata
    return (
        beside
        and known
        and all(delta.kind in SAME - {"paired", "within_epsilon"} for delta in diff.deltas)
    )


def _distances(found: list[Outcome]) -> list[tuple[str, float | None]]:
    """Return the part of each margin that is left: 1 where nothing is lost, 0 at the margin."""
    return [
        (f"{each.check.metric} margin left", 1 - most / margin)
        for each in found
        if (margin := each.check.rule.margin)
        and each.check.decision
        and (most := each.check.decision.degradation_high) is not None
    ]


def coverage(asked: Question) -> Factor:
    """How much of what can be handed in was; what is missing is unknown, and no risk by itself."""
    side = asked.evidence.right
    given = {
        "evals": bool(side.evals),
        "latency": bool(side.latency),
        "config": bool(side.config),
        "tokenizer": side.tokens is not None,
        "sample": asked.evidence.activations is not None,
    }
    there = [name for name, known in given.items() if known]
    level: Level = "low" if len(there) == len(given) else "unknown"
    return Factor(
        "coverage",
        level,
        f"handed in: {', '.join(there) or 'nothing'}",
        "low where every kind of evidence was handed in, else unknown",
        {"given": float(len(there)), "kinds": float(len(given))},
        needs=", ".join(_OPTIONS[name] for name in given if name not in there),
        mitigation="hand in what is missing",
    )


def vocabulary(asked: Question) -> Factor:
    """Tokens that moved to other rows, special tokens above all."""
    rule = "a token or special token at another row is high, added or removed ones medium"
    table = embedding_table(asked.diff) if asked.diff.pairs else None
    if table is None:
        return Factor("vocabulary", "low", "there is no embedding of tokens", rule)
    found = change(asked.evidence)
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
    return Factor(
        "vocabulary",
        level,
        why,
        rule,
        numbers,
        mitigation="release the tokenizer together with the weights",
    )


_ALL = (structure, magnitude, anomalies, coverage, quality, lineage, vocabulary, precision)
_TOLD: dict[Level, Severity] = {"high": "high", "critical": "critical"}


@analysis(
    needs="tensors",
    thresholds={
        "required": Threshold(
            ["structure", "magnitude", "anomalies", "quality"],
            "factors without which the level is unknown",
        ),
        "structure": Threshold(
            [0.0, 0.1, 0.5], "part of odd tensors that is medium, high, critical"
        ),
        "magnitude": Threshold([0.01, 0.1, 1.0], "relative L2 that is medium, high, critical"),
        "unusual": Threshold(
            0.95, "part of the past changes above which a change is unusual: high"
        ),
        "alpha": Threshold(0.05, "chance of a false alarm, over all metrics together (Holm)"),
        "latency_quantile": Threshold(0.95, "the quantile of the latencies that is compared"),
        "resamples": Threshold(1999, "how often examples are drawn anew for a probability"),
        "seed": Threshold(0, "seed of the resampling"),
    },
    fields={
        "overall_risk_level": "",
        "probabilities": "P(loss > margin): part of resampled mean losses above it, whole clusters"
        " drawn",
        "factors": "each factor's own rule",
        "unknowns": "factors without evidence; unknown ranks above medium where it is required",
        "mitigations": "from the factors that are not low",
    },
    constants=("probabilities",),
)
def risk_assessment(diff: Diff, evidence: Evidence, answer: Answer) -> None:
    """What speaks for a risk, factor by factor; what nobody looked at is unknown, not low."""
    Settings.of(answer)
    asked = Question(diff, evidence, answer)
    factors = sorted((factor(asked) for factor in _ALL), key=_rank)
    _say(answer, factors)
    _probabilities(answer, evidence)
    for each in factors:
        if each.level in _TOLD and diff.has_values:
            numbers = each.numbers or {"level": float(LEVELS.index(each.level))}
            answer.find("", f"{each.name}: {each.why}", numbers, _TOLD[each.level])
    answer.seeded(answer["seed"])


def _rank(factor: Factor) -> int:
    return -LEVELS.index(factor.level)


def _say(answer: Answer, factors: list[Factor]) -> None:
    required = answer["required"]
    counted = [each.level for each in factors if each.level != "unknown" or each.name in required]
    level = highest(counted)
    reason = next(
        each
        for each in factors
        if each.level == level and (level != "unknown" or each.name in required)
    )
    answer.say("overall_risk_level", level, basis=f"the highest, {reason.name}: {reason.why}")
    answer.say("factors", [each.to_dict() for each in factors])
    unknown = [each for each in factors if each.level == "unknown"]
    answer.say(
        "unknowns",
        [{"factor": each.name, "needs": each.needs, "why": each.why} for each in unknown],
    )
    mitigations = [
        {"factor": each.name, "do": each.mitigation}
        for each in factors
        if each.level not in {"low", "unknown"} and each.mitigation
    ]
    mitigations += [{"factor": each.name, "do": f"hand in {each.needs}"} for each in unknown]
    answer.say("mitigations", mitigations)


def _probabilities(answer: Answer, evidence: Evidence) -> None:
    tried = gate_trials(evidence, Settings.of(answer))
    judged_by = with_margins(answer.policy, tried, limits_of(answer.policy))
    found = chances(evidence, judged_by, answer["resamples"], answer["seed"])
    told = {
        each.metric: {
            "margin": each.margin,
            "probability": each.probability,
            "monte_carlo_error": each.error,
            "independent_examples": each.n,
        }
        for each in found
    }
    answer.either(
        "probabilities",
        told or None,
        needs=evidence.lacking(
            "--eval-left/--eval-right", instead="ids in common, and a metric of known direction"
        ),
        why="a probability is printed only where it was computed",
    )


_AT_ONCE = 2_000_000  # counts held in memory at a time
_FEWEST = 10  # independent examples (or clusters) below which resampling says nothing


class Chance(NamedTuple):
    """P(loss > margin | the paired examples), and from how many independent ones."""

    metric: str
    margin: float
    probability: float
    error: float  # Monte-Carlo
    n: int


def chances(evidence: Evidence, policy: Policy, resamples: int, seed: int) -> list[Chance]:
    """Resample every metric whose examples are paired; without a margin any loss counts."""
    left, right = evidence.left.evals, evidence.right.evals
    found = (
        _chance(sides_of(left, right, metric), metric, policy, resamples, seed)
        for metric in metrics_of(left, right)
    )
    return [each for each in found if each]


def _chance(
    sides: Sides | None, metric: str, policy: Policy, resamples: int, seed: int
) -> Chance | None:
    """Return the part of resampled mean losses above the margin; whole clusters are drawn."""
    import numpy as np

    rule, better = rule_of(metric, policy)
    if better is None or sides is None or not sides.is_paired or len(sides.left) < _FEWEST:
        return None
    losses = np.subtract(sides.left, sides.right) * (1 if better == "higher" else -1)
    names = sides.left_clusters or range(len(sides.left))
    places = np.unique(names, return_inverse=True)[1]
    sums, sizes = np.bincount(places, losses), np.bincount(places)
    n, margin = len(sums), rule.margin or 0.0
    if n < _FEWEST:
        return None
    random = np.random.default_rng(seed)
    above, step = 0, max(1, _AT_ONCE // n)
    for start in range(0, resamples, step):
        drawn = random.integers(0, n, (min(step, resamples - start), n))
        above += int((sums[drawn].sum(axis=1) > margin * sizes[drawn].sum(axis=1)).sum())
    share = above / resamples
    return Chance(metric, margin, share, float((share * (1 - share) / resamples) ** 0.5), n)
