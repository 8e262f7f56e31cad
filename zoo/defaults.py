"""`python -m zoo.defaults`: what the monitor's defaults see, beside a reading of every step.

One run of each configuration is trained three times from the same seed: as the zoo records it
(every step, with activations), every step without activations, and as a user has it who sets
nothing. The last is asked twice: in the replay, and by what it told while it trained.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import Any

from .generate import OUTCOME, Job, home, jobs_of, train_all, write_labels
from .labels import Label
from .parts import PARTS
from .replay import replay
from .scores import Judged, Rate, score
from .table import markdown

WAYS = {"zoo": "every step, with activations", "every": "every step", "auto": "the defaults"}


def main(arguments: list[str] | None = None) -> int:
    """Train what is not there, ask, and print the table."""
    options = _options(arguments)
    jobs = _first_seeds(job for part in options.part for job in jobs_of(part))
    if options.share > 1:
        jobs = _some(jobs, options.share)
    every = [replace(job, way=way) for job in jobs for way in (WAYS if job.record else ("zoo",))]
    train_all(every, options.folder, processes=options.processes)
    wanted = {job.folder for job in jobs}
    labels = [each for each in write_labels(options.folder) if each.id in wanted]
    text, figures = _compared(labels, options.folder, options.processes)
    sys.stdout.write(text + "\n")
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1) + "\n")
    return 0


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="zoo.defaults", description=__doc__)
    add = parser.add_argument
    add("--part", choices=tuple(PARTS), action="append", help="which runs; report unless said")
    add("--folder", type=Path, default=home(), help="where the runs are kept")
    add("--processes", type=int, default=2)
    add("--share", type=int, default=1, help="one configuration in so many")
    add("--json", type=Path, help="results go here")
    options = parser.parse_args(arguments)
    options.part = options.part or ["report"]
    return options


def _first_seeds(jobs: Iterable[Job]) -> list[Job]:
    """Return one job of each configuration, the parents of its seed among them."""
    first: dict[str, Job] = {}
    for job in jobs:
        if job.name not in first or job.seed < first[job.name].seed:
            first[job.name] = job
    return list(first.values())


def _some(jobs: list[Job], share: int) -> list[Job]:
    """Return one recorded job in so many, and all that the gate asks for."""
    return [*[job for job in jobs if job.record][::share], *[job for job in jobs if not job.record]]


def _asked(label: Label, folder: Path, way: str) -> tuple[str, str, Any, dict[str, Any]]:
    run = folder / "runs" / (label.id if way == "zoo" else f"{label.id}-{way}")
    told = json.loads((run / OUTCOME).read_text()) if way != "zoo" else {}
    return label.id, way, replay(run), told


def _compared(labels: list[Label], folder: Path, processes: int) -> tuple[str, dict[str, Any]]:
    known = {each.id: each for each in labels}
    judged: dict[str, list[Judged]] = {way: [] for way in WAYS}
    shares, live = list[float](), list[float]()
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        asked = [pool.submit(_asked, each, folder, way) for each in labels for way in WAYS]
        for done in asked:
            name, way, verdict, told = done.result()
            label = known[name]
            judged[way].append(Judged(label, verdict))
            if way == "auto":
                shares.append(told["read"] / told["steps"])
                if not (label.healthy or label.heals or label.dropped or label.onset_step is None):
                    live.append(_live_delay(label, told))
    scores = {way: score(each) for way, each in judged.items()}
    faulty = scores["every"].recall.n
    rows = [
        (WAYS[way], _rate(found.recall), _rate(found.right_first), _rate(found.false_alarms),
         _number(found.nan_delay), _number(found.delay))
        for way, found in scores.items()
    ]  # fmt: skip
    heads = ("read", "recall", "right first", "false alarms", "NaN delay", "delay")
    text = "\n\n".join([
        f"{faulty} faulty runs, {scores['every'].false_alarms.n} healthy ones, one seed each",
        markdown(heads, rows),
        _beside(shares, live),
        "Noticed or named otherwise than at every step:",
        *_differences(judged),
    ])  # fmt: skip
    return text, {way: found.to_dict() for way, found in scores.items()} | {"shares": shares}


def _beside(shares: list[float], live: list[float]) -> str:
    in_time = sum(map(math.isfinite, live))
    return (
        f"Under the defaults {sum(shares) / len(shares):.1%} of the steps were read (mean of the "
        f"runs, the least {min(shares):.1%}). A finding was told live {_number(median(live))} "
        f"steps after the onset (median), in {in_time} of {len(live)} runs before the end."
    )


def _live_delay(label: Label, told: dict[str, Any]) -> float:
    """Return the steps from the onset until somebody was told; infinite where it was too late."""
    steps = [step for step, _ in told["alerts"] if step < told["steps"]]
    return max(min(steps) - (label.onset_step or 0), 0) if steps else math.inf


def _differences(judged: dict[str, list[Judged]]) -> list[str]:
    lines = []
    for one, other in zip(judged["every"], judged["auto"], strict=True):
        said = [_first(each) for each in (one, other)]
        if said[0][0] != said[1][0]:
            label = one.label
            what = "healthy" if label.healthy else label.fault_class
            lines.append(f"{label.id} ({what}): {said[0]} against {said[1]}")
    return lines


def _first(judged: Judged) -> tuple[str, int]:
    first = judged.verdict.first
    return ("nothing", -1) if first is None else (min(first.names), first.step)


def _rate(found: Rate) -> str:
    return "-" if found.value is None else f"{found.value:.3f} ({found.hits} of {found.n})"


def _number(found: float | None) -> str:
    return "-" if found is None or not math.isfinite(found) else f"{found:g}"


if __name__ == "__main__":
    sys.exit(main())
