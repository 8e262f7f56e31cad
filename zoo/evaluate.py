"""Asks difflens and its peers about every run of a part, and scores what they say."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import Future, ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from .configs.config import Config
from .data import load
from .labels import Label
from .parts import PARTS
from .peers import peer_verdicts, torchmortem
from .replay import EVERY, replay
from .scores import Judged, Score, delay, score
from .verdicts import Verdict

OURS = "difflens"


def configs() -> dict[str, Config]:
    """Return the knobs of every fault and control by its name."""
    return {each.id: each.config for part in PARTS.values() for each in part.configurations}


def ask(
    label: Label, folder: Path, *, every: int = EVERY, peers: bool = True
) -> dict[str, Verdict]:
    """Ask all rule sets about one run."""
    run = folder / "runs" / label.id
    said = {OURS: replay(run, every=every)}
    if peers:
        config = configs()[label.config]
        examples = len(load(config, label.seed).inputs)
        said |= peer_verdicts(run, max(1, examples // (config.batch * config.accumulate)))
    return said


def ask_all(
    labels: Iterable[Label],
    folder: Path,
    *,
    processes: int = 2,
    every: int = EVERY,
    peers: bool = True,
) -> dict[str, list[Judged]]:
    """Ask about many runs, side by side; give the verdicts by rule set."""
    given = list(labels)
    found: dict[str, list[Judged]] = {}
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        asked = [pool.submit(ask, label, folder, every=every, peers=peers) for label in given]
        for label, done in zip(given, asked, strict=True):
            for name, verdict in _answer(label, done).items():
                found.setdefault(name, []).append(Judged(label, verdict))
    return found


def _answer(label: Label, done: Future[dict[str, Verdict]]) -> dict[str, Verdict]:
    try:
        return done.result()
    except Exception as error:
        raise RuntimeError(f"run {label.id} could not be judged: {error}") from error


def autopsies(labels: Iterable[Label], folder: Path, *, processes: int = 2) -> None:
    """Let torchmortem watch the same trainings, where it is installed."""
    known = configs()
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        waiting = [
            pool.submit(
                torchmortem.watched, known[each.config], each.seed, folder / "runs" / each.id
            )
            for each in labels
        ]
        for each in waiting:
            each.result()


def scores_of(found: dict[str, list[Judged]]) -> dict[str, Score]:
    """Score every rule set."""
    return {name: score(judged) for name, judged in found.items()}


def by_fault(judged: Iterable[Judged]) -> list[dict[str, Any]]:
    """Return a line a fault: how many runs were noticed, named and located, and how late."""
    groups: dict[str, list[Judged]] = {}
    for each in judged:
        if not each.label.healthy and not each.label.dropped:
            groups.setdefault(each.label.config, []).append(each)
    return [_line(name, group) for name, group in groups.items()]


def _line(name: str, group: list[Judged]) -> dict[str, Any]:
    label, result = group[0].label, score(group)
    said = [each.verdict.last[0] for each in group if each.verdict.last]
    return {
        "fault": name,
        "cause": label.cause,
        "class": label.fault_class,
        "heals": label.heals,
        "runs": len(group),
        "noticed": sum(bool(each.verdict.alarms) for each in group),
        "right_first": result.right_first.hits,
        "right_last": result.right_last.hits,
        "layer_third": result.layer_third.hits if label.layers else None,
        "delays": [delay(each) for each in group],
        "said": sorted({name for alarm in said for name in alarm.names}),
    }


def false_alarms(judged: Iterable[Judged]) -> list[dict[str, Any]]:
    """Name the healthy runs that were called faulty, and what was said of them."""
    return [
        {
            "id": each.label.id,
            "said": [sorted(alarm.names) for alarm in each.verdict.alarms],
            "critical": any(alarm.critical for alarm in each.verdict.alarms),
            "step": each.verdict.alarms[0].step,
        }
        for each in judged
        if each.label.healthy and not each.label.dropped and each.verdict.alarms
    ]
