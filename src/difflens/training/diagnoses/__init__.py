"""What a history says: one file a diagnosis, each a pure function of it.

Every file of this folder is a diagnosis, and its stem is the name of what it finds; what several
of them share lies in its sub-packages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from difflens.core.policy import Policy
from difflens.core.registry import Registry

from ..history.history import History
from ..records.runs import Diagnosed, RunFinding

# Registered with `needs=` (scalars and fields without which it cannot speak), `window=` (the
# least points it wants) and `thresholds=` (name -> Threshold).
Diagnosis = Callable[["History", Policy], Iterable[RunFinding]]
diagnosis: Registry[Diagnosis] = Registry("diagnosis", __name__, "difflens.diagnoses")

_DEFAULTS = Policy()


def diagnose(history: History, policy: Policy = _DEFAULTS, *, run: str = "") -> Diagnosed:
    """Ask every diagnosis and put the most likely cause first."""
    from ..verdicts.verdict import judged

    found = [each for entry in diagnosis for each in entry.plugin(history, policy)]
    return judged(found, history, run)
