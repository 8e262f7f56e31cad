"""Blames one plant, and says whether the answer is right, proved, and that nothing was changed."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import torch

import difflens
from difflens.repair.blame import story, units
from difflens.repair.blame.shares import grouped
from difflens.stats.shapley import Coalition, exact, normalised

from .networks import State
from .plants import Plant


class Outcome:
    """What blame said of a plant, and what it took."""

    def __init__(self, plant: Plant, result: difflens.Blame, units: int, group: str = "") -> None:
        """Judge the answer."""
        self.plant, self.result, self.units = plant, result, units
        self.group = group or ("single" if plant.kind.startswith("single") else plant.kind)
        self.evaluations, self.hybrids = result.evaluations, result.hybrids
        self.is_right = is_right(plant, result)
        proof = result.proof
        self.is_proved = bool(proof.bad_without_repair_passes and proof.good_with_cause_fails)
        self.extra: dict[str, float] = {}

    def line(self) -> str:
        """Describe it in one line."""
        return (
            f"{self.plant.network.kind.name}, {self.plant.kind}: {self.evaluations} evaluations, "
            f"{sorted(self.plant.culprits)[:3]}: {self.result.sentence[:160]} "
            f"{self.result.repair[:4]} {self.result.cause[:4]}"
        )

    def as_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "network": self.plant.network.kind.name, "kind": self.plant.kind, "group": self.group,
            "right": self.is_right, "proved": self.is_proved, "evaluations": self.evaluations,
            "hybrids": self.hybrids, "sentence": self.result.sentence, **self.extra,
        }  # fmt: skip


def run(plant: Plant) -> Outcome:
    """Blame with a check that passes or not; the models must be as they were."""
    good, bad = plant.network.good, plant.bad
    before = _copies(good), _copies(bad)
    result = difflens.blame(good, bad, plant.passes)
    for state, copy in zip((good, bad), before, strict=True):
        if not all(torch.equal(state[name], value) for name, value in copy.items()):
            raise RuntimeError("blame changed a model")
    return Outcome(plant, result, result.units)


def reversed_prior(plant: Plant) -> Outcome:
    """Do the same with the least suspicious units first."""
    make = units.make_units

    def upside_down(*arguments: Any) -> Any:
        return [unit._replace(score=(0.0, 0.0)) for unit in reversed(make(*arguments))]

    with patch.object(story, "make_units", upside_down):
        result = difflens.blame(plant.network.good, plant.bad, plant.passes)
    return Outcome(plant, result, result.units, "single, prior reversed")


def is_right(plant: Plant, result: difflens.Blame) -> bool:
    """Is the answer what was planted, and nothing more?"""
    if plant.kind == "diffuse":
        return result.verdict == "diffuse"
    if result.verdict != "found":
        return False
    repair = {name for name in result.repair if plant.bad[name].is_floating_point()}
    if plant.cause:
        return set(result.cause) == plant.cause and repair <= plant.culprits and len(repair) == 1
    if repair != plant.culprits:
        return False
    if plant.rows is not None:
        said = next(iter(result.culprits[0].rows.values()), "")
        start, stop = plant.rows
        return said.startswith(f"rows {start}-{stop - 1}")
    return True


def shares_errors(plant: Plant, result: difflens.Blame) -> tuple[float, float]:
    """Compare the shares with the exact ones, of the score and of passing: the largest errors."""
    good, bad = plant.network.good, plant.bad
    answer = difflens.blame(good, bad, plant.network.score, threshold=plant.threshold)
    if not (answer.shares and result.shares):
        return 1.0, 1.0
    changed = [name for name in good if not torch.equal(good[name], bad[name])]
    groups = list(grouped(changed).values())
    best = plant.network.score(good)
    known: dict[Coalition, float] = {}

    def damage(coalition: Coalition) -> float:
        if coalition not in known:
            names = {name for each in coalition for name in groups[each]}
            state = {name: bad[name] if name in names else value for name, value in good.items()}
            known[coalition] = best - plant.network.score(state)
        return known[coalition]

    def fails(coalition: Coalition) -> float:
        return float(damage(coalition) > best - plant.threshold)

    errors = []
    for value, blame in ((damage, answer), (fails, result)):
        true = normalised(exact(len(groups), value))
        apart = zip(true, blame.shares.values(), strict=True)
        errors.append(max(abs(one - other) for one, other in apart))
    return errors[0], errors[1]


def _copies(state: State) -> State:
    return {name: value.clone() for name, value in state.items()}
