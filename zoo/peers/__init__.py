"""Rule sets of others, written anew from their documents, asked about the same runs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from ..verdicts import Alarm, Verdict
from . import autotrainer, sagemaker, seed_analyzer, seed_animator, torchmortem
from .seen import Seen, seen

Peer = Callable[[Seen], list[Alarm]]

PEERS: dict[str, Peer] = {
    "SageMaker Debugger": sagemaker.alarms,
    "SageMaker, no loss rules": sagemaker.alarms_but_loss,
    "AutoTrainer": autotrainer.alarms,
    "seed analyzer": seed_analyzer.alarms,
    "seed animator": seed_animator.alarms,
}
LIVE = {"SageMaker Debugger", "SageMaker, no loss rules", "AutoTrainer", "seed animator"}


def peer_verdicts(folder: Path, epoch: int) -> dict[str, Verdict]:
    """Ask every rule set about a recorded run; torchmortem where it watched the training."""
    run = seen(folder, epoch)
    found: dict[str, Verdict] = {}
    for name, peer in PEERS.items():
        alarms = tuple(sorted(peer(run), key=lambda alarm: alarm.step))
        found[name] = Verdict(alarms, alarms, live=name in LIVE)
    kept = folder / torchmortem.FILE
    if kept.exists():
        said = json.loads(kept.read_text())
        for name, critical in (("torchmortem", False), ("torchmortem, critical only", True)):
            alarms = tuple(torchmortem.alarms(said, critical_only=critical))
            found[name] = Verdict(alarms, alarms, live=False)
    return found
