"""torchmortem 0.1.1 itself, attached to the same training, its titles read as our classes."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ..configs.config import Config
from ..verdicts import Alarm

FILE = "torchmortem.json"

# It names symptoms in titles; each is counted as right for every class it can mean.
_MEANING = {
    "Vanishing gradients": {"vanishing"},
    "Exploding gradients": {"exploding"},
    "Gradient stalling": {"vanishing", "dead", "not-training"},
    "High gradient noise": {"oscillating"},
    "Training divergence": {"diverging", "exploding"},
    "Loss plateau": {"plateau", "slow"},
    "Catapult phase": {"spike"},
    "Edge of stability": {"lr-high"},
    "Rank collapse": {"symmetry"},
    "Activation saturation": {"vanishing"},
    "Update ratio too low": {"slow", "lr-low"},
    "Update ratio too high": {"lr-high"},
    "Weight norm explosion": {"exploding"},
    "Stagnant weight norms": {"not-training", "slow", "lr-low"},
    "Inter-layer weight norm": {"vanishing", "exploding"},
    "Dead units": {"dead"},
}


def watched(config: Config, seed: int, folder: Path) -> None:
    """Train once more under its eyes and keep what it says beside the run."""
    kept = folder / FILE
    if kept.exists():
        return
    from torchmortem import Autopsy

    from ..loop import Loop, one_thread

    logging.getLogger("torchmortem").setLevel(logging.CRITICAL)
    with one_thread():
        loop = Loop(config, seed)
        autopsy = Autopsy(loop.model, optimizer=loop.optimiser)
        with autopsy:
            loop.run(_Steps(autopsy))
    report = autopsy.get_report()
    found = report.findings if report is not None else []
    kept.write_text(json.dumps([_plain(each) for each in found]))


class _Steps:
    def __init__(self, autopsy: Any) -> None:
        self._autopsy = autopsy

    def step(self, loss: Any = None, **_scalars: Any) -> None:
        self._autopsy.step(loss=float(loss))


def _plain(finding: Any) -> dict[str, Any]:
    return {
        "severity": finding.severity.name,
        "title": finding.title,
        "layers": list(finding.affected_layers),
        "last_step": int(finding.step_range[1]),
    }


def alarms(said: Iterable[dict[str, Any]], *, critical_only: bool = False) -> list[Alarm]:
    """Read its findings, the worst first, as alarms."""
    taken = {"CRITICAL"} if critical_only else {"CRITICAL", "WARNING"}
    kept = [each for each in said if each["severity"] in taken]
    kept.sort(key=lambda each: each["severity"] != "CRITICAL")
    return [
        Alarm(
            _names(each["title"]), each["last_step"], each["severity"] == "CRITICAL",
            tuple(each["layers"]),
        )
        for each in kept
    ]  # fmt: skip


def _names(title: str) -> frozenset[str]:
    meant = [names for start, names in _MEANING.items() if title.startswith(start)]
    return frozenset(meant[0]) if meant else frozenset({"unknown"})
