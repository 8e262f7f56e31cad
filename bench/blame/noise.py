"""Noisy checks: how often blame is wrong, how often it cannot tell, and how many runs it takes."""

from __future__ import annotations

import random
from collections.abc import Iterable
from statistics import median

import difflens

from .networks import State
from .plants import Plant

SEPARATIONS = (0.5, 1.0, 2.0, 3.0)


def noise_rows(plants: list[Plant], number: int, separations: Iterable[float]) -> str:
    """Blame plants with single faults under normal noise; write one row for each separation."""
    lines = [
        "| d' | blames | right | wrong | undecided | runs, median |",
        "|---|---|---|---|---|---|",
    ]
    for separation in separations:
        counts, runs = {"right": 0, "wrong": 0, "undecided": 0}, []
        for at in range(number):
            word, taken = _blamed(plants[at % len(plants)], separation, at)
            counts[word] += 1
            runs.append(taken)
        cells = " | ".join(str(counts[word]) for word in ("right", "wrong", "undecided"))
        lines.append(f"| {separation} | {number} | {cells} | {median(runs):g} |")
    return "\n".join(lines)


def _blamed(plant: Plant, separation: float, seed: int) -> tuple[str, int]:
    chance = random.Random(seed)  # noqa: S311  seeded noise
    score = plant.network.score
    apart = score(plant.network.good) - score(plant.bad)

    def check(state: State) -> float:
        return score(state) + chance.gauss(0, apart / separation)

    result = difflens.blame(plant.network.good, plant.bad, check, threshold="auto")
    if result.verdict != "found":
        return "undecided", result.evaluations
    return ("right" if set(result.repair) == plant.culprits else "wrong"), result.evaluations
