"""`make zoo`: trains what is not there, asks every rule set, prints how right each was."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from . import table
from .evaluate import OURS, ask_all, autopsies, by_fault, false_alarms, scores_of
from .fixes import mended
from .generate import Job, home, jobs_of, train_all, write_labels
from .labels import Label
from .parts import PARTS
from .replay import EVERY
from .scores import Judged, Rate


def main(arguments: list[str] | None = None) -> int:
    """Do what was asked for; 1 where --strict and a bar was missed."""
    options = _options(arguments)
    folder: Path = options.folder
    for part in PARTS if options.part == "all" else (options.part,):
        wanted = [job for job in jobs_of(part) if _is_wanted(job, options.only)]
        train_all(wanted, folder, processes=options.processes)
    labels = [each for each in write_labels(folder) if options.part in ("all", each.part)]
    if options.only:
        labels = [each for each in labels if each.config in options.only]
    if options.one_seed:
        labels = _of_first_seeds(labels)
    if options.train:
        return 0
    if options.torchmortem:
        autopsies(labels, folder, processes=options.processes)
    found = ask_all(
        labels, folder, processes=options.processes, every=options.every, peers=options.peers
    )
    result, missed = _results(labels, found, options)
    _show(result["text"])
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps(result["figures"], indent=1) + "\n")
    return 1 if missed and options.strict else 0


def _is_wanted(job: Job, only: list[str] | None) -> bool:
    """Is it asked for? Parents always are: without them no fault passes the gate."""
    return not only or job.name in only or job.name.startswith("parent-")


def _of_first_seeds(labels: list[Label]) -> list[Label]:
    """Return one run of each configuration."""
    first: dict[str, Label] = {}
    for each in sorted(labels, key=lambda label: label.seed):
        first.setdefault(each.config, each)
    return list(first.values())


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="zoo", description=__doc__)
    add = parser.add_argument
    add("--part", choices=(*PARTS, "all"), default="report", help="which runs")
    add("--folder", type=Path, default=home(), help="where the runs are kept")
    add("--processes", type=int, default=2)
    add("--every", type=int, default=EVERY, help="steps between two looks of the replay")
    add("--only", action="append", metavar="NAME", help="a fault or control, as V1 or H3")
    add("--one-seed", action="store_true", help="ask about one run of each configuration")
    add("--train", action="store_true", help="train and label, ask nobody")
    add("--no-peers", dest="peers", action="store_false", help="ask difflens alone")
    add("--no-fixes", dest="fixes", action="store_false", help="do not train the mended runs")
    add("--torchmortem", action="store_true", help="train once more under torchmortem")
    add("--json", type=Path, default=home() / "results.json", help="results go here")
    add("--strict", action="store_true", help="exit 1 where a bar is missed")
    return parser.parse_args(arguments)


def _results(
    labels: list[Label], found: dict[str, list[Judged]], options: argparse.Namespace
) -> tuple[dict[str, Any], bool]:
    scores, ours = scores_of(found), found[OURS]
    fixed: Rate | None = None
    repairs: list[dict[str, Any]] = []
    if options.fixes:
        pairs = [(each.label, each.verdict) for each in ours]
        fixed, repairs = mended(pairs, options.folder, processes=options.processes)
    told, lines = table.bars(scores[OURS], fixed), by_fault(ours)
    text = [
        f"{_counted(labels)}; part: {options.part}", table.rule_sets(scores),
        "By fault:", table.faults(lines),
        "Healthy runs called faulty:", *(json.dumps(each) for each in false_alarms(ours)),
        "Remedies that did not work:",
        *(json.dumps(each) for each in repairs if not each["mended"]), "Against the bars:", told,
    ]  # fmt: skip
    figures = {
        "scores": {name: each.to_dict() for name, each in scores.items()},
        "faults": lines,
        "false_alarms": false_alarms(ours),
        "mended": fixed._asdict() if fixed else None,
        "repairs": repairs,
    }
    return {"text": text, "figures": figures}, "MISSED" in told


def _counted(labels: list[Label]) -> str:
    kept = [each for each in labels if not each.dropped]
    faulty = [each for each in kept if not each.healthy and not each.heals]
    healthy = [each for each in kept if each.healthy]
    dropped = len(labels) - len(kept)
    heals = len(kept) - len(faulty) - len(healthy)
    causes = len({each.config for each in faulty})
    return (
        f"{len(faulty)} faulty runs of {causes} faults, {len(healthy)} healthy runs, "
        f"{heals} that heal, {dropped} dropped by the gate"
    )


def _show(lines: list[str]) -> None:
    sys.stdout.write("\n\n".join(lines) + "\n")


if __name__ == "__main__":
    sys.exit(main())
