"""Asks of every detector which runs need it: `python -m zoo.needed`.

Each detector, and with `--conditions` each part of a condition, is left out in turn, and every
recorded run in which it spoke is replayed: who is noticed, named, located or mended less well, or
called faulty though healthy, needs it.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
import warnings
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

from .generate import home, labels_of
from .labels import Label
from .switches import BOARD, FALSE, TRUE, Switch, install
from .trials import Held, Outcome, Trial, tried

_FIGURES = ("recall", "right_first", "right_last", "layer", "ahead", "false_alarm", "critical")


class Need(NamedTuple):
    """A switch held at a value: the runs it was tried on, and those that it makes worse."""

    switch: Switch
    value: bool
    runs: int  # in which it would have been something else
    tried: int
    worse: dict[str, list[str]]


def main(arguments: list[str] | None = None) -> int:
    """Replay the runs and print who needs what."""
    options = _options(arguments)
    install()
    begun = time.monotonic()
    labels = [each for each in labels_of(options.folder) if not each.dropped and not each.heals]
    labels = [each for each in labels if options.part in ("all", each.part)]
    held = _held(options.off)
    covered = _each_tried(labels, options, held, {}, 0)
    _say(f"{len(covered)} of {len(labels)} runs covered in {time.monotonic() - begun:.0f} s")
    wanted = _wanted(covered, options, held)
    chosen = [each for each in labels if each.id in wanted]
    found = _each_tried(chosen, options, held, wanted, time.monotonic() - begun)
    _say(f"{len(found)} of {len(wanted)} runs tried in {time.monotonic() - begun:.0f} s")
    needs = list(_needs(covered, found, wanted))
    if options.json:
        options.json.write_text(json.dumps(_written(labels, covered, needs)))
    sys.stdout.write(table(needs) + "\n")
    return 0


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="zoo.needed", description=__doc__)
    add = parser.add_argument
    add("--part", default="all", help="which runs")
    add("--folder", type=Path, default=home(), help="where the runs are kept")
    add("--processes", type=int, default=2)
    add("--every", type=int, default=20, help="steps between two looks of the replay")
    add("--sample", type=int, default=50, help="runs that each switch is tried on at most")
    add("--conditions", action="store_true", help="try parts of conditions as well")
    add("--off", type=Path, help="JSON: [module, function, text, value] of what is left out")
    add("--seconds", type=float, default=1e9, help="what is not asked by then is left out")
    add("--json", type=Path, help="all that was seen goes here")
    return parser.parse_args(arguments)


def _held(file: Path | None) -> dict[int, bool]:
    """Read what is held all the time."""
    if file is None:
        return {}
    listed = {(*each[:3],): bool(each[3]) for each in json.loads(file.read_text())}
    places = {(each.module, each.function, each.text): at for at, each in enumerate(BOARD.switches)}
    return {places[key]: value for key, value in listed.items() if key in places}


def _each_tried(
    labels: Iterable[Label],
    options: argparse.Namespace,
    held: Mapping[int, bool],
    wanted: Mapping[str, Mapping[int, frozenset[bool]]],
    spent: float,
) -> list[Trial]:
    """Try all runs side by side, the most work first, until the time is over."""
    ends = time.monotonic() + options.seconds - spent
    order = sorted(labels, key=lambda label: -len(wanted.get(label.id, ())))
    found: list[Trial] = []
    with ProcessPoolExecutor(options.processes, mp_context=get_context("fork")) as pool:
        waiting = [
            pool.submit(
                _tried, label, options.folder, options.every, held, wanted.get(label.id, {})
            )
            for label in order
        ]
        for each in waiting:
            if time.monotonic() > ends:
                pool.shutdown(wait=False, cancel_futures=True)
                break
            found.append(each.result())
    return found


def _tried(
    label: Label,
    folder: Path,
    every: int,
    held: Mapping[int, bool],
    wanted: Mapping[int, frozenset[bool]],
) -> Trial:
    warnings.simplefilter("ignore")
    return tried(label, folder, every=every, held=held, wanted=wanted)


def _wanted(
    covered: list[Trial], options: argparse.Namespace, held: Mapping[int, bool]
) -> dict[str, dict[int, frozenset[bool]]]:
    """Choose for each switch the runs in which it would be something else, a sample of many."""
    runs: dict[Held, list[str]] = {}
    for trial in covered:
        for number, bits in trial.seen.items():
            for value in _values(number, options.conditions):
                if number not in held and bits & (FALSE if value else TRUE):
                    runs.setdefault((number, value), []).append(trial.run)
    wanted: dict[str, dict[int, set[bool]]] = {}
    lot = random.Random(0)  # noqa: S311
    for (number, value), names in runs.items():
        for name in lot.sample(names, min(len(names), options.sample)):
            wanted.setdefault(name, {}).setdefault(number, set()).add(value)
    return {
        name: {number: frozenset(values) for number, values in each.items()}
        for name, each in wanted.items()
    }


def _values(number: int, conditions: bool) -> tuple[bool, ...]:
    """Return what a switch may be held at: a detector is left out, a bound as well."""
    kind = BOARD.switches[number].kind
    if kind == "detector" or not conditions:
        return (False,) if kind == "detector" else ()
    return (True, False) if kind == "condition" else (False,)


def _needs(
    covered: list[Trial], found: list[Trial], wanted: Mapping[str, Mapping[int, frozenset[bool]]]
) -> Iterator[Need]:
    runs: dict[Held, int] = {}
    for trial in covered:
        for number, bits in trial.seen.items():
            for value in (True, False):
                differs = bool(bits & (FALSE if value else TRUE))
                runs[number, value] = runs.get((number, value), 0) + differs
    asked: dict[Held, int] = {}
    worse: dict[Held, dict[str, list[str]]] = {}
    for trial in found:
        for number, values in wanted[trial.run].items():
            for value in values:
                asked[number, value] = asked.get((number, value), 0) + 1
        for one, names in trial.worse.items():
            worse.setdefault(one, {})[trial.run] = names
    for number, switch in enumerate(BOARD.switches):
        for value in (True, False):
            one = (number, value)
            yield Need(switch, value, runs.get(one, 0), asked.get(one, 0), worse.get(one, {}))


def _written(labels: list[Label], covered: list[Trial], needs: list[Need]) -> dict[str, Any]:
    return {
        "figures": figures(labels, {each.run: each.outcome for each in covered}),
        "outcomes": [each.to_dict() for each in covered],
        "needs": [{**each._asdict(), "switch": vars(each.switch)} for each in needs],
    }


def figures(labels: list[Label], outcomes: Mapping[str, Outcome]) -> dict[str, dict[str, Any]]:
    """Return for each part and figure how many runs have it, of how many."""
    counted: dict[str, dict[str, Any]] = {}
    for label in labels:
        if label.id not in outcomes:
            continue
        part = counted.setdefault(label.part, {name: [0, 0] for name in _FIGURES})
        for name in _FIGURES:
            about_healthy = name in {"false_alarm", "critical"}
            if about_healthy != label.healthy or (name == "layer" and not label.layers):
                continue
            part[name][0] += getattr(outcomes[label.id], name)
            part[name][1] += 1
    return counted


def table(needs: Iterable[Need]) -> str:
    """Name each detector with the faults whose runs need it, as a table in Markdown."""
    lines = ["| detector | speaks in | needed by |", "| --- | --- | --- |"]
    for need in needs:
        if need.switch.kind == "detector" and not need.value:
            faults = sorted({run.split("-s")[0] for run in need.worse})
            said = ", ".join(faults[:6]) + (f" and {len(faults) - 6} more" * (len(faults) > 6))
            lines.append(f"| `{need.switch.name}` | {need.runs} | {said or 'none'} |")
    return "\n".join(lines)


def _say(line: str) -> None:
    sys.stderr.write(line + "\n")


if __name__ == "__main__":
    sys.exit(main())
