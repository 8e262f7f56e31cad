"""Labels and verdicts for the tests of the zoo."""

from __future__ import annotations

from typing import Any

from zoo.labels import Label
from zoo.scores import Judged
from zoo.verdicts import Alarm, Verdict


def a_label(**changes: Any) -> Label:
    """Return a label of a faulty run, with changes."""
    plain: dict[str, Any] = {
        "id": "V1-s3", "config": "V1", "key": "k", "seed": 3, "part": "report",
        "healthy": False, "cause": "sigmoid", "fault_class": "vanishing",
        "accept": ("slow",), "onset_step": 0, "layers": (), "steps": 300, "heals": False,
        "dropped": False, "divergence_step": None, "metric": "val_accuracy",
        "parent_target": 0.9, "margin": 0.03, "measured": 0.1,
    }  # fmt: skip
    return Label(**{**plain, **changes})


def a_healthy_label(**changes: Any) -> Label:
    """Return a label of a healthy run."""
    return a_label(
        **{"healthy": True, "fault_class": "", "accept": (), "onset_step": None} | changes
    )


def judged(
    label: Label, *said: tuple[str, int], layers: tuple[str, ...] = (), **more: Any
) -> Judged:
    """Return a verdict with alarms by name and step, the first of which also stands at the end."""
    alarms = tuple(Alarm(frozenset({name}), step, layers=layers, **more) for name, step in said)
    return Judged(label, Verdict(alarms, alarms))
