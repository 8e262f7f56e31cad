"""`python -m bench.blame`: plants faults, blames them, prints what it took, in Markdown.

`--part chosen` are the networks that the rules were chosen on, `held-back` those they were not.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from math import log2
from pathlib import Path
from statistics import median
from typing import Any

import torch

from difflens.core.errors import DifflensError

from .networks import CHOSEN, HELD_BACK, trained
from .noise import SEPARATIONS, noise_rows
from .plants import Plant, plants
from .runs import Outcome, reversed_prior, run, shares_errors

_BARS = {
    "single": 4, "two independent": 8, "three interacting": 12, "layers swapped": 6,
    "head to rows": 8, "coupled innocents": None, "diffuse": None,
}  # fmt: skip


def main() -> int:
    """Do what was asked for."""
    parser = argparse.ArgumentParser(prog="bench.blame", description=__doc__)
    add = parser.add_argument
    add("--part", choices=["chosen", "held-back"], default="chosen")
    add("--only", action="append", metavar="KIND", help="kinds of plants; all by default")
    add("--network", action="append", metavar="NAME", help="networks; all by default")
    add("--noise", type=int, default=0, metavar="N", help="noisy blames for each separation")
    add("--separation", action="append", type=float, help="of the noisy ones; 0.5, 1, 2, 3")
    add("--seed", type=int, default=None)
    add("--json", type=Path, help="the outcomes go here")
    add("-v", "--verbose", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    kinds, seed = (CHOSEN, 1) if options.part == "chosen" else (HELD_BACK, 1001)
    outcomes: list[Outcome] = []
    singles: list[Plant] = []
    for kind in kinds:
        if options.network and kind.name not in options.network:
            continue
        began = time.monotonic()
        network = trained(kind, options.seed or seed)
        took = time.monotonic() - began
        say(f"{kind.name}: {len(network.good)} tensors, trained in {took:.0f} s")
        for plant in plants(network, options.seed or seed):
            if options.only and not any(plant.kind.startswith(each) for each in options.only):
                continue
            outcomes.append(outcome := run(plant))
            if plant.kind.startswith("single"):
                singles.append(plant)
                outcomes.append(reversed_prior(plant))
            if plant.kind == "diffuse":
                of_score, of_passing = shares_errors(plant, outcome.result)
                outcome.extra |= {"shares off by": of_score, "power off by": of_passing}
            if options.verbose or not outcome.is_right:
                say(f"  {'ok ' if outcome.is_right else 'BAD'} {outcome.line()}")
    print(table(outcomes))
    if options.noise:
        print(noise_rows(singles, options.noise, options.separation or SEPARATIONS))
    if options.json:
        options.json.write_text(json.dumps([each.as_dict() for each in outcomes], indent=1))
    return 0


def table(outcomes: list[Outcome]) -> str:
    """Write one row for each kind of plant."""
    lines = [
        "| planted | plants | right | proved | evaluations | most | hybrids alone | bar |",
        "|---|---|---|---|---|---|---|---|",
    ]
    kinds = dict.fromkeys(each.group for each in outcomes)
    for kind in kinds:
        some = [each for each in outcomes if each.group == kind]
        runs = [each.evaluations for each in some]
        bar: Any = _BARS.get(kind)
        if kind == "single, prior reversed":
            bar = f"{median(2 * log2(each.units) + 4 for each in some):.0f}"
        lines.append(
            f"| {kind} | {len(some)} | {sum(each.is_right for each in some)} "
            f"| {sum(each.is_proved for each in some)} | {median(runs):g} | {max(runs)} "
            f"| {median(each.hybrids for each in some):g} | {bar or ''} |"
        )
    for key, words in (("shares off by", "a number"), ("power off by", "passing or failing")):
        errors = [each.extra[key] for each in outcomes if key in each.extra and each.is_right]
        if errors:
            most, middle = 100 * max(errors), 100 * median(errors)
            said = f"off by {most:.1f} points at most, {middle:.1f} in the median"
            lines.append(f"\nShares of {words}: {said}.")
    return "\n".join(lines)


def say(text: str) -> None:
    """Write progress to stderr."""
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except DifflensError as error:
        sys.exit(f"bench: {error}")
