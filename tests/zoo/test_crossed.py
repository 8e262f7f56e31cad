"""Crosses: a known mutation on another parent, and nothing of what is held back."""

from __future__ import annotations

from dataclasses import replace

from zoo.configs.crossed import SEEDS
from zoo.configs.faults import ALL_PARENTS
from zoo.parts import PARTS

CROSSED = PARTS["crossed"]
KNOWN = {fault.id: fault for part in ("tune", "trial") for fault in PARTS[part].faults}


def test_a_cross_is_the_mutation_of_a_known_fault_on_another_parent():
    for each in CROSSED.faults:
        origin = KNOWN[each.id.removesuffix(f"-{each.parent_name}")]

        assert each.parent_name != origin.parent_name
        assert each.config == replace(ALL_PARENTS[each.parent_name].config, **origin.changes)
        assert each.config != each.parent.config
        assert each.name == origin.name


def test_parents_come_from_faults_that_may_be_looked_at():
    parents = {fault.parent_name for fault in KNOWN.values()}

    assert {fault.parent_name for fault in CROSSED.faults} <= parents
    assert {each.id.removeprefix("varied-") for each in CROSSED.controls} == parents


def test_a_control_differs_from_its_parent_in_one_knob():
    for each in CROSSED.controls:
        parent = ALL_PARENTS[each.id.removeprefix("varied-")].config
        knobs = vars(each.config)

        assert len([name for name, value in vars(parent).items() if knobs[name] != value]) == 1


def test_no_seed_is_one_of_the_report():
    held_back = {seed for each in PARTS["report"].configurations for seed in each.seeds}

    assert not held_back & set(SEEDS)
