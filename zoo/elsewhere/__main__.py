"""`python -m zoo.elsewhere`: trains in Keras and JAX, and prints how right the diagnoses are."""

from __future__ import annotations

import argparse
import json
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from .. import table
from ..evaluate import by_fault, false_alarms
from ..generate import home
from ..labels import Label
from ..replay import EVERY, replay
from ..scores import Judged, score
from .chosen import FRAMEWORKS, groups
from .runs import labels_of, train_all


def main(arguments: list[str] | None = None) -> int:
    """Train what is not there, ask the diagnoses of each run, print the scores."""
    options = _options(arguments)
    found: dict[str, list[Judged]] = {}
    for framework in options.framework or FRAMEWORKS:
        wanted = list(groups(framework, options.only))
        kept = train_all(framework, wanted, options.folder, processes=options.processes)
        labels = labels_of(framework, kept)
        found[framework] = judged(labels, options.folder, options.processes, options.every)
    scores = {name: score(each) for name, each in found.items()}
    if len(found) > 1:
        scores["together"] = score([each for several in found.values() for each in several])
    sys.stdout.write("\n\n".join([_counted(found), table.rule_sets(scores), *_parts(found)]) + "\n")
    figures: dict[str, Any] = {
        name: {
            "score": scores[name].to_dict(),
            "faults": by_fault(each),
            "false_alarms": false_alarms(each),
        }
        for name, each in found.items()
    }
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps(figures, indent=1) + "\n")
    return 0


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="zoo.elsewhere", description=__doc__)
    add = parser.add_argument
    add("--framework", action="append", choices=FRAMEWORKS, help="one of them; all by default")
    add("--folder", type=Path, default=home() / "elsewhere", help="where the runs are kept")
    add("--processes", type=int, default=2)
    add("--every", type=int, default=EVERY, help="steps between two looks of the replay")
    add("--only", action="append", metavar="NAME", help="a fault or control, as V1 or H3")
    add("--json", type=Path, default=home() / "elsewhere.json", help="results go here")
    return parser.parse_args(arguments)


def judged(
    labels: list[Label], folder: Path, processes: int = 2, every: int = EVERY
) -> list[Judged]:
    """Replay each run and ask the diagnoses, side by side."""
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        asked = [pool.submit(replay, folder / label.id, every=every) for label in labels]
        return [Judged(label, done.result()) for label, done in zip(labels, asked, strict=True)]


def _counted(found: dict[str, list[Judged]]) -> str:
    lines = []
    for name, several in found.items():
        kept = [each.label for each in several if not each.label.dropped]
        faulty = [each for each in kept if not each.healthy and not each.heals]
        healthy = [each for each in kept if each.healthy]
        heals = len(kept) - len(faulty) - len(healthy)
        lines.append(
            f"{name}: {len(faulty)} faulty runs of {len({each.config for each in faulty})} faults, "
            f"{len(healthy)} healthy runs, {heals} that heal, "
            f"{len(several) - len(kept)} dropped by the gate"
        )
    return "\n".join(lines)


def _parts(found: dict[str, list[Judged]]) -> list[str]:
    parts = []
    for name, several in found.items():
        parts += [f"By fault, {name}:", table.faults(by_fault(several))]
        parts += [json.dumps(each) for each in false_alarms(several)]
    return parts


if __name__ == "__main__":
    sys.exit(main())
