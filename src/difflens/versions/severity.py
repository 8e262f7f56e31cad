"""How bad a regression is, and how well a model stands: by the policy's numbers alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..records import Policy, Threshold
from ..regression_results import RegressionSeverity as Severity

SECTION = "regressions"
THRESHOLDS = {
    "minor": Threshold(1.0, "sure loss, in margins, from which a regression is Minor; less passes"),
    "major": Threshold(5.0, "the same for Major"),
    "critical": Threshold(10.0, "the same for Critical"),
    "negligible_cost": Threshold(0.05, "share of the health that a Negligible regression takes"),
    "minor_cost": Threshold(0.15, "the same for Minor"),
    "major_cost": Threshold(0.4, "the same for Major"),
    "critical_cost": Threshold(1.0, "the same for Critical"),
}
_STEPS = ((Severity.CRITICAL, "critical"), (Severity.MAJOR, "major"), (Severity.MINOR, "minor"))
_UNIT = 0.01  # of the baseline: what stands for a margin of zero


def in_force(policy: Policy) -> dict[str, float]:
    """Give the user's thresholds, and the defaults of the others."""
    return {
        name: float(policy.threshold(SECTION, name, each.value))
        for name, each in THRESHOLDS.items()
    }


def severity(
    loss: float, margin: float, baseline: float, steps: Mapping[str, float]
) -> tuple[Severity, str]:
    """Name the step that a sure loss has reached, counted in margins, and the rule behind it."""
    unit = margin or _UNIT * abs(baseline)
    if not unit:
        return Severity.MINOR, "neither a margin nor a baseline to measure it by"
    times = loss / unit
    reached = next((name for name, step in _STEPS if times >= steps[step]), Severity.NEGLIGIBLE)
    of = f"the margin {margin:.4g}" if margin else f"1 % of the baseline, {unit:.4g}"
    limits = ", ".join(f"{step} from {steps[step]:g}" for _, step in reversed(_STEPS))
    return reached, f"a loss of {loss:.4g} is {times:.3g} times {of}; {limits}"


def health(found: Iterable[Severity], steps: Mapping[str, float]) -> float:
    """Give the product of 1 - cost over all regressions: 1 is none, 0 is one critical.

    >>> health([], in_force(Policy()))
    1.0
    """
    score = 1.0
    for each in found:
        score *= 1 - steps[f"{each.value.lower()}_cost"]
    return max(0.0, min(1.0, score))
