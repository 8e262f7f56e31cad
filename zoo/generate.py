"""Trains the runs of the zoo once and keeps them on disk under the hash of their knobs."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from .configs.config import Config
from .configs.controls import Control
from .configs.faults import Fault
from .labels import Label, divergence, onset_of, passes_gate
from .parts import PARTS

OUTCOME = "outcome.json"


@dataclass(frozen=True)
class Job:
    """One run to be trained."""

    name: str
    config: Config
    seed: int
    record: bool = True  # a parent or a mended run is trained for its result alone
    way: str = "zoo"  # how it is recorded: as the zoo does, every step, or by the defaults

    @property
    def folder(self) -> str:
        """The name of the run's folder."""
        name = f"{self.name}-s{self.seed}-{self.config.key}"
        return name if self.way == "zoo" else f"{name}-{self.way}"


def home() -> Path:
    """Return the folder of the runs: $DIFFLENS_ZOO, or .zoo beside the package."""
    named = os.environ.get("DIFFLENS_ZOO")
    return Path(named) if named else Path(__file__).parents[1] / ".zoo"


def jobs_of(part: str) -> Iterator[Job]:
    """Yield the runs of a part, with the parents that the gate of its faults asks for."""
    faults = PARTS[part].faults
    for each in PARTS[part].configurations:
        yield from (Job(each.id, each.config, seed) for seed in each.seeds)
    yield from {_parent_job(fault, seed): None for fault in faults for seed in fault.seeds}


def _parent_job(fault: Fault, seed: int) -> Job:
    return Job(f"parent-{fault.parent_name}", fault.parent.config, seed, record=False)


def train(job: Job, folder: Path) -> dict[str, Any]:
    """Train one run, recorded into its folder, unless it is there."""
    from .loop import Loop, one_thread
    from .recording import recorded, unrecorded

    target = folder / "runs" / job.folder
    kept = target / OUTCOME
    if kept.exists():
        done: dict[str, Any] = json.loads(kept.read_text())
        return done
    shutil.rmtree(target, ignore_errors=True)
    target.parent.mkdir(parents=True, exist_ok=True)
    with one_thread():
        loop = Loop(job.config, job.seed)
        with recorded(loop, target, job.way) if job.record else unrecorded() as watch:
            measured = loop.run(watch)
    target.mkdir(exist_ok=True)
    outcome = {
        **measured,
        "losses": watch.losses,
        "val_losses": watch.validated,
        "accuracies": loop.accuracies,
        "steps": len(watch.losses),
        "read": watch.read,
        "alerts": watch.alerts,
    }
    kept.write_text(json.dumps(outcome))
    return outcome


def train_all(jobs: Iterable[Job], folder: Path, *, processes: int = 2) -> dict[str, Any]:
    """Train what is not there yet, side by side; give the outcomes by folder name."""
    wanted = {job.folder: job for job in jobs}
    found: dict[str, Any] = {}
    spawn = get_context("spawn")
    with ProcessPoolExecutor(processes, mp_context=spawn) as pool:
        waiting = {pool.submit(train, job, folder): name for name, job in wanted.items()}
        for number, done in enumerate(as_completed(waiting), 1):
            found[waiting[done]] = done.result()
            if number % 50 == 0 or number == len(waiting):
                sys.stderr.write(f"{number} of {len(waiting)} runs\n")
    return found


def labels_of(folder: Path) -> list[Label]:
    """Label every run that is there."""
    kept = {
        path.parent.name: json.loads(path.read_text())
        for path in sorted((folder / "runs").glob(f"*/{OUTCOME}"))
        if not path.parent.name.startswith("mended-")
    }
    labels: list[Label] = []
    for part, (faults, controls) in PARTS.items():
        for fault in faults:
            labels.extend(_fault_labels(fault, part, kept))
        for control in controls:
            labels.extend(_control_labels(control, part, kept))
    return labels


def write_labels(folder: Path) -> list[Label]:
    """Write `labels.json` and give what it holds."""
    labels = labels_of(folder)
    text = json.dumps([each.to_dict() for each in labels], indent=1)
    (folder / "labels.json").write_text(text + "\n")
    return labels


def _fault_labels(fault: Fault, part: str, kept: dict[str, Any]) -> Iterator[Label]:
    parent, config = fault.parent, fault.config
    there = {seed: kept.get(Job(fault.id, config, seed).folder) for seed in fault.seeds}
    missed = [parent.missed(_measured(each, parent.metric)) for each in there.values() if each]
    above = [
        parent.reached(_measured(each, parent.metric))
        for seed in fault.seeds
        if (each := kept.get(_parent_job(fault, seed).folder))
    ]
    for seed, outcome in there.items():
        if outcome is None:
            continue
        yield Label(
            id=Job(fault.id, config, seed).folder, config=fault.id, key=config.key, seed=seed,
            part=part, healthy=False, cause=fault.cause, fault_class=fault.name,
            accept=fault.accept, onset_step=onset_of(fault.onset, outcome), layers=fault.layers,
            steps=len(outcome["losses"]), heals=not passes_gate(missed),
            dropped=not passes_gate(above),
            divergence_step=_foreseeable(fault, outcome), metric=parent.metric,
            parent_target=parent.target, margin=parent.margin,
            measured=outcome[parent.metric],
        )  # fmt: skip


def _foreseeable(fault: Fault, outcome: dict[str, Any]) -> int | None:
    """Return the step of a divergence; what strikes out of a clear sky is none to be foreseen."""
    sudden = fault.name in {"nan", "spike"} or fault.config.switch_step is not None
    return None if sudden else divergence(outcome["losses"])


def _control_labels(control: Control, part: str, kept: dict[str, Any]) -> Iterator[Label]:
    parent, config = control.parent, control.config
    for seed in control.seeds:
        outcome = kept.get(Job(control.id, config, seed).folder)
        if outcome is None:
            continue
        yield Label(
            id=Job(control.id, config, seed).folder, config=control.id, key=config.key, seed=seed,
            part=part, healthy=True, cause="", fault_class="", accept=(),
            onset_step=None, layers=(), steps=len(outcome["losses"]), heals=False,
            dropped=not parent.reached(_measured(outcome, parent.metric)), divergence_step=None,
            metric=parent.metric, parent_target=parent.target, margin=parent.margin,
            measured=outcome[parent.metric],
        )  # fmt: skip


def _measured(outcome: dict[str, Any], metric: str) -> float:
    return float(outcome[metric])
