"""`python -m zoo.changes`: builds labelled pairs, asks about each, prints how right it was."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path

from . import table
from .bases import home
from .evaluate import PARTS, pairs_of, score_all
from .pairs import Pair
from .table import Scored
from .verdicts import Verdict


def main(arguments: list[str] | None = None) -> int:
    """Build, ask, score and print; 1 where --strict and an answer was wrong."""
    options = _options(arguments)
    pairs = list(_wanted(options))
    if not pairs:
        sys.stderr.write("no pair is of that part, kind and base\n")
        return 2
    results = score_all(pairs, options.processes)
    _show(results, verbose=options.verbose)
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps([_plain(each) for each in results], indent=1) + "\n")
    wrong = any(each.verdict.outcome == "wrong" for each in results)
    return 1 if wrong and options.strict else 0


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="zoo.changes", description=__doc__)
    add = parser.add_argument
    add("--part", choices=tuple(PARTS), default="dev", help="which pairs")
    add("--only", action="append", metavar="KIND", help="pairs of this kind, or of this id")
    add("--base", action="append", metavar="NAME", help="pairs of this base model")
    add("--processes", type=int, default=2)
    add("--json", type=Path, default=home().parent / "changes.json", help="results go here")
    add("--strict", action="store_true", help="exit 1 where an answer is wrong")
    add("-v", "--verbose", action="store_true", help="list vague and mixed answers too")
    return parser.parse_args(arguments)


def _wanted(options: argparse.Namespace) -> Iterator[Pair]:
    for pair in pairs_of(options.part):
        parts = {pair.id, pair.kind, *pair.kind.split(" + ")}
        if options.only and not parts & set(options.only):
            continue
        if not options.base or pair.base in options.base:
            yield pair


def _plain(each: Scored) -> dict[str, object]:
    verdict: Verdict = each.verdict
    return {**each._asdict(), "verdict": verdict._asdict()}


def _show(results: list[Scored], *, verbose: bool) -> None:
    building = sum(each.building for each in results)
    asking = sum(each.seconds for each in results)
    texts = [
        table.outcomes(results, lambda each: each.kind, "kind"),
        table.outcomes(results, lambda each: table.topic(each.kind), "what was done"),
        table.outcomes(results, lambda each: each.base, "base"),
        table.outcomes(results, lambda each: each.dtype, "stored in"),
        table.ranks(results),
        table.names_given(results),
        table.faults(results, "wrong", *(("vague", "mixed") if verbose else ())),
        f"{len(results)} pairs; seconds to build them {building:.0f}, to ask {asking:.0f}",
    ]
    sys.stdout.write("\n\n".join(text for text in texts if text) + "\n")


if __name__ == "__main__":
    sys.exit(main())
