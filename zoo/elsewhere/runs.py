"""Trains the runs of a framework, each once, and labels them by the gate of the zoo."""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from ..configs.controls import Control
from ..configs.faults import Fault
from ..configs.parents import Parent
from ..generate import OUTCOME
from ..labels import Label, divergence, onset_of, passes_gate
from .chosen import MORE_SEEDS, Group, controls, faults, parent_group, refuse_unknown

Outcomes = dict[str, dict[str, Any]]


def prepare(framework: str) -> None:
    """Make a process one of a framework: Keras reads its backend when it is imported."""
    os.environ["KERAS_BACKEND"] = framework.removeprefix("keras-")
    # Two processes share two cores; the networks are too small to be worth more of them.
    os.environ["OMP_NUM_THREADS"] = "1"
    os.environ["XLA_FLAGS"] = (
        "--xla_cpu_multi_thread_eigen=false --xla_backend_optimization_level=0"
    )


def train_group(group: Group, folder: Path) -> Outcomes:
    """Train the seeds of a configuration that are not there yet."""
    refuse_unknown(group.config)
    found: Outcomes = {}
    for seed in group.seeds:
        if seed in MORE_SEEDS and group.target and _all_reach(group.target, found):
            break
        name = group.folder(seed)
        target = folder / name
        kept = target / OUTCOME
        if not kept.exists():
            shutil.rmtree(target, ignore_errors=True)
            target.parent.mkdir(parents=True, exist_ok=True)
            outcome = _train(group, seed, None if group.target else target)
            target.mkdir(exist_ok=True)
            kept.write_text(json.dumps(outcome))
        found[name] = json.loads(kept.read_text())
    return found


def _all_reach(parent: Parent, found: Outcomes) -> bool:
    return all(parent.reached(_figure(each, parent)) for each in found.values())


def _train(group: Group, seed: int, target: Path | None) -> dict[str, Any]:
    if group.framework == "jax":
        from .optax_loop import train
    else:
        from .keras_loop import train
    began = time.process_time()
    outcome = train(group.config, seed, target)
    return outcome | {"seconds": time.process_time() - began}


def train_all(framework: str, groups: list[Group], folder: Path, *, processes: int = 2) -> Outcomes:
    """Train side by side, in processes of the framework; the deepest networks first."""
    found: Outcomes = {}
    ordered = sorted(groups, key=lambda group: -group.config.depth * group.config.steps)
    spawn = get_context("spawn")
    with ProcessPoolExecutor(
        processes, mp_context=spawn, initializer=prepare, initargs=(framework,)
    ) as pool:
        waiting = {pool.submit(train_group, group, folder): group for group in ordered}
        for done in as_completed(waiting):
            found |= done.result()
    sys.stderr.write(f"{framework}: {len(found)} runs\n")
    return found


def labels_of(framework: str, kept: Outcomes) -> list[Label]:
    """Label the runs that are there."""
    labels: list[Label] = []
    for fault in faults():
        labels.extend(_of_fault(framework, fault, kept))
    for control in controls():
        labels.extend(_of_control(framework, control, kept))
    return labels


def _there(group: Group, kept: Outcomes) -> dict[int, dict[str, Any]]:
    return {seed: kept[name] for seed in group.seeds if (name := group.folder(seed)) in kept}


def _of_fault(framework: str, fault: Fault, kept: Outcomes) -> Iterator[Label]:
    parent, group = fault.parent, Group(framework, fault.id, fault.config)
    there = _there(group, kept)
    above = _there(parent_group(framework, fault.parent_name, parent), kept)
    heals = not passes_gate([parent.missed(_figure(each, parent)) for each in there.values()])
    reached = passes_gate([parent.reached(_figure(each, parent)) for each in above.values()])
    sudden = fault.name in {"nan", "spike"}
    for seed, outcome in there.items():
        yield Label(
            **_known(group, seed, outcome, parent),
            healthy=False, cause=fault.cause, fault_class=fault.name, accept=fault.accept,
            onset_step=onset_of(fault.onset, outcome),
            layers=tuple(pattern_of(framework, each) for each in fault.layers),
            heals=heals, dropped=not reached,
            divergence_step=None if sudden else divergence(outcome["losses"]),
        )  # fmt: skip


def _of_control(framework: str, control: Control, kept: Outcomes) -> Iterator[Label]:
    group, parent = Group(framework, control.id, control.config), control.parent
    for seed, outcome in _there(group, kept).items():
        yield Label(
            **_known(group, seed, outcome, parent),
            healthy=True, cause="", fault_class="", accept=(), onset_step=None, layers=(),
            heals=False, divergence_step=None,
            dropped=not parent.reached(_figure(outcome, parent)),
        )  # fmt: skip


def _known(group: Group, seed: int, outcome: dict[str, Any], parent: Parent) -> dict[str, Any]:
    return {
        "id": group.folder(seed), "config": group.name, "key": group.config.key, "seed": seed,
        "part": "elsewhere", "steps": len(outcome["losses"]), "metric": parent.metric,
        "parent_target": parent.target, "margin": parent.margin,
        "measured": outcome[parent.metric],
    }  # fmt: skip


def _figure(outcome: dict[str, Any], parent: Parent) -> float:
    return float(outcome[parent.metric])


def pattern_of(framework: str, pattern: str) -> str:
    """Write a pattern of layers as a framework names them.

    >>> pattern_of("keras-jax", "hidden.[0-5].*"), pattern_of("jax", "hidden.*")
    ('*/hidden_[0-5]/*', 'hidden.*')
    """
    if not framework.startswith("keras"):
        return pattern
    if pattern == "hidden.*":
        return "*/hidden_*"
    return "*/" + pattern.replace("hidden.", "hidden_").replace(".*", "/*")
