"""What may go wrong with the right model: factors with their rules, and what nobody looked at."""

from __future__ import annotations

from ..answers import Answer
from ..diffs import Diff
from ..evidences import Evidence
from ..measure.scan import Scan
from ..records import Envelope, Policy, Severity, Threshold
from . import analyse, analysis
from .quality.settings import Settings
from .release.chances import chances
from .release.change_factors import anomalies, lineage, magnitude, precision, structure
from .release.evidence_factors import coverage, quality, vocabulary
from .release.factor import LEVELS, Factor, Level, Situation, highest

NAME = "risk_assessment"
THRESHOLDS = {
    "required": Threshold(
        ["structure", "magnitude", "anomalies", "quality"],
        "factors without which the level is unknown",
    ),
    "structure": Threshold([0.0, 0.1, 0.5], "part of odd tensors that is medium, high, critical"),
    "magnitude": Threshold([0.01, 0.1, 1.0], "relative L2 that is medium, high, critical"),
    "unusual": Threshold(0.95, "part of the past changes above which a change is unusual: high"),
    "alpha": Threshold(0.05, "chance of a false alarm, over all metrics together (Holm)"),
    "latency_quantile": Threshold(0.95, "the quantile of the latencies that is compared"),
    "resamples": Threshold(1999, "how often examples are drawn anew for a probability"),
    "seed": Threshold(0, "seed of the resampling"),
}
_ALL = (structure, magnitude, anomalies, coverage, quality, lineage, vocabulary, precision)
_FIELDS = ("overall_risk_level", "factors", "unknowns", "mitigations", "probabilities")
_TOLD: dict[Level, Severity] = {"high": "high", "critical": "critical"}


@analysis(needs=[Scan], thresholds=THRESHOLDS, constants=("probabilities",))
def risk_assessment(diff: Diff, evidence: Evidence, policy: Policy) -> Envelope:
    """What speaks for a risk, factor by factor; what nobody looked at is unknown, not low."""
    answer = Answer(NAME, policy, THRESHOLDS)
    Settings.of(answer)
    if not diff.pairs:
        for field in _FIELDS:
            answer.lack(field, needs="tensors", why="neither model holds any")
        return answer.envelope("not_applicable")
    limits = {name: answer[name] for name in THRESHOLDS}
    case = Situation(
        diff, evidence, policy, limits, lambda name: analyse(name, diff, evidence, policy)
    )
    factors = sorted((factor(case) for factor in _ALL), key=_rank)
    _say(answer, factors)
    _probabilities(answer, evidence, policy)
    for each in factors:
        if each.level in _TOLD and diff.has_values:
            numbers = each.numbers or {"level": float(LEVELS.index(each.level))}
            answer.find("", f"{each.name}: {each.why}", numbers, _TOLD[each.level])
    answer.seeded(answer["seed"])
    return answer.envelope()


def _rank(factor: Factor) -> int:
    return -LEVELS.index(factor.level)


def _say(answer: Answer, factors: list[Factor]) -> None:
    required = answer["required"]
    counted = [each.level for each in factors if each.level != "unknown" or each.name in required]
    level = highest(counted)
    reason = next(each for each in factors if each.level == level and
                  (level != "unknown" or each.name in required))  # fmt: skip
    answer.say("overall_risk_level", level, basis=f"the highest, {reason.name}: {reason.why}")
    answer.say("factors", [each.told() for each in factors], basis="each factor's own rule")
    unknown = [each for each in factors if each.level == "unknown"]
    answer.say(
        "unknowns",
        [{"factor": each.name, "needs": each.needs, "why": each.why} for each in unknown],
        basis="factors without evidence; unknown ranks above medium where it is required",
    )
    mitigations = [{"factor": each.name, "do": each.mitigation} for each in factors
                   if each.level not in {"low", "unknown"} and each.mitigation]  # fmt: skip
    mitigations += [{"factor": each.name, "do": f"hand in {each.needs}"} for each in unknown]
    answer.say("mitigations", mitigations, basis="from the factors that are not low")


def _probabilities(answer: Answer, evidence: Evidence, policy: Policy) -> None:
    found = chances(evidence, policy, answer["resamples"], answer["seed"])
    told = {
        each.metric: {"margin": each.margin, "probability": each.probability,
                      "monte_carlo_error": each.error, "independent_examples": each.n}
        for each in found
    }  # fmt: skip
    answer.either(
        "probabilities",
        told or None,
        basis="P(loss > margin): part of resampled mean losses above it, whole clusters drawn",
        needs="--eval-left/--eval-right with ids in common and a known direction",
        why="a probability is printed only where it was computed",
    )
