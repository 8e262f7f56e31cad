"""What `diagnose` says of the run decides which signs of gradients are faults.

Small batches make norms scatter, a loss that is learned leaves gradients of zero, a deep network
has faint layers: healthy runs show every one of the signs. `diagnose` counts a sign where the loss
suffers, and one definition of unhealthy serves both. Norms without a loss or without weights it
cannot judge; then the rules stand alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ..records.gradients import LayerHealth, RiskFactor

if TYPE_CHECKING:
    from ..history.history import History
    from ..records.runs import Fix, RunFinding

_NEEDED = ("grad_l2", "weight_l2", "update_l2")
_FACTS = ("dead", "exploding", "absolute", "growing")
_WORDS: dict[str, LayerHealth] = {"warning": "Warning", "critical": "Critical"}


class Verdict(NamedTuple):
    """What `diagnose` says of a run; nothing, where there is no run but series of norms."""

    is_healthy: bool = False  # it had all that it judges gradients by, and found no fault
    findings: tuple[RunFinding, ...] = ()  # that warn, or are critical
    has_loss_scale: bool = False

    @property
    def fix(self) -> Fix | None:
        """Return the remedy of the likeliest cause: it goes before all that norms advise."""
        return next((each.fix for each in self.findings if each.fix is not None), None)

    def of_layer(self, name: str) -> list[RiskFactor]:
        """Return the findings that name a layer, as risks of it."""
        return [_risk(each) for each in self.findings if name in each.layers]

    def remarks(self) -> list[str]:
        """Tell the findings that name no layer: no layer below shows them."""
        return [
            f"diagnose finds a fault that is of no layer: {each.name} ({each.severity})"
            for each in self.findings
            if not each.layers
        ]


NO_VERDICT = Verdict()


def verdict_on(history: History) -> Verdict:
    """Ask `diagnose` about the run."""
    from ..diagnoses import diagnose

    diagnosed, course = diagnose(history), history.course
    known = course.scalar("loss") is not None
    known = known and all(course.field(each) is not None for each in _NEEDED)
    findings = tuple(each for each in diagnosed.findings if each.severity in _WORDS)
    scaled = history.scalars.scalar("loss_scale") is not None
    return Verdict(known and diagnosed.healthy is True, findings, scaled)


def _risk(found: RunFinding) -> RiskFactor:
    return RiskFactor(
        rule="diagnosed",
        severity=_WORDS[found.severity],
        text=f"{found.name}: {found.text}",
        measured=found.confidence or 0.0,
        threshold=0.0,
        excess=found.confidence or 0.0,
        since_step=found.since_step,
    )


def stands(risk: RiskFactor) -> bool:
    """Is it a fault even of a run that is called healthy: a fact that a loss may yet suffer from?

    Others compare layers, or judge scatter. What is not finite `diagnose` has looked at itself.
    """
    return risk.recent and risk.severity == "Critical" and risk.rule in _FACTS
