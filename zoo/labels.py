"""What is true of each run of the zoo: the labels that diagnoses are held against."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from fnmatch import fnmatch
from typing import Any

_GATE = 0.8  # share of the seeds on which a mutant must miss its parent's target
_FAR_UP = 3.0  # a loss that stays this many times above where it began has diverged
_FOR_GOOD = 10  # steps for which it must have stayed there, unless it is no number any more


@dataclass(frozen=True)
class Label:
    """One run: what was injected, since when, and what it came to."""

    id: str  # of the run, and the name of its folder
    config: str  # of the fault or control
    key: str  # of the knobs
    seed: int
    part: str  # tune or report
    healthy: bool
    cause: str
    fault_class: str
    accept: tuple[str, ...]
    onset_step: int | None
    layers: tuple[str, ...]  # patterns of the layers at fault
    steps: int
    heals: bool  # an alarm is allowed and not required
    dropped: bool  # a control or parent that misses its target tells nothing
    divergence_step: int | None
    metric: str
    parent_target: float
    margin: float
    measured: float | None

    @property
    def right(self) -> frozenset[str]:
        """The classes that count as right."""
        return frozenset((self.fault_class, *self.accept))

    def to_dict(self) -> dict[str, Any]:
        """Return the label with its class under the name people look for."""
        named = asdict(self)
        named["class"] = named.pop("fault_class")
        return named


def passes_gate(missed: list[bool]) -> bool:
    """Does a mutant miss its target on at least four seeds of five?

    >>> passes_gate([True, True, True, True, False]), passes_gate([True, True, True, False, False])
    (True, False)
    """
    return bool(missed) and sum(missed) >= _GATE * len(missed) - 1e-9


def divergence(losses: list[float]) -> int | None:
    """Return the step from which on the loss is lost: not finite, or far above where it began.

    A loss that comes back did not diverge, and one that leaps up and down did not because the run
    ends on a leap. One below zero (negated) diverges downwards.
    """
    level = _FAR_UP * max(abs(losses[0]), 1e-8) if losses and math.isfinite(losses[0]) else 0.0
    gone = [not math.isfinite(each) or abs(each) > level for each in losses]
    if not gone or not gone[-1]:
        return None
    since = len(gone) - next((i for i, each in enumerate(reversed(gone)) if not each), len(gone))
    stays = len(gone) - since >= _FOR_GOOD or not all(map(math.isfinite, losses[since:]))
    return since if stays else None


def onset_of(onset: int | str, outcome: dict[str, Any]) -> int | None:
    """Return the step at which a fault shows: what was injected, or what the run itself says."""
    losses = outcome["losses"]
    if onset == "nonfinite":
        return next((i for i, each in enumerate(losses) if not math.isfinite(each)), None)
    if onset == "lowest-validation":
        validated = {int(step): loss for step, loss in outcome["val_losses"].items()}
        return min(validated, key=lambda step: validated[step])
    if onset == "divergence":
        gone = divergence(losses)
        return _turn(losses) if gone is None else gone
    return int(onset)


def _turn(losses: list[float]) -> int:
    """Return the step at which the mean of ten losses is lowest: from there on it rises."""
    means = [sum(losses[i : i + 10]) / 10 for i in range(max(len(losses) - 9, 1))]
    finite = [(mean, i) for i, mean in enumerate(means) if math.isfinite(mean)]
    return min(finite)[1] + 10 if finite else 0


def at_fault(names: tuple[str, ...], patterns: tuple[str, ...]) -> list[bool]:
    """Tell which of the layers a finding names are at fault; a module stands for its tensors.

    >>> at_fault(("hidden.2", "output.weight"), ("hidden.2.*",))
    [True, False]
    """
    return [
        any(fnmatch(each, one) or fnmatch(each + ".", one) for one in patterns) for each in names
    ]
