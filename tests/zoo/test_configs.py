"""The zoo's own rules: complete labels, one-line mutations, parents that have a target."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest

from zoo.configs import Config
from zoo.configs.controls import FAMILIES
from zoo.configs.faults import ALL_PARENTS, FAULTS
from zoo.configs.parents import PARENTS
from zoo.parts import ALL_FAULTS, PARTS

NAMES = {
    "vanishing", "exploding", "dead", "oscillating", "slow", "plateau", "not-training", "wiring",
    "loss-pairing", "data", "nan", "spike", "over-fit", "lr-high", "lr-low", "symmetry",
    "diverging",
}  # fmt: skip
SPECIFIED = [
    "V1", "V2", "V3", "V4", "V6", "E1", "E2", "E3", "E6", "D1", "D3", "D4", "O1", "O2", "O3", "S1",
    "S2", "S4", "S5", "P1", "W1", "W2", "W3", "W4", "W5", "L1", "L2", "X1", "X2", "N1", "N2", "K1",
    "F1",
]  # fmt: skip
HEALTHY = {f"H{i}" for i in (*range(1, 15), 16, 18)}
ALL = list(ALL_FAULTS)
every_fault = pytest.mark.parametrize("fault", ALL, ids=lambda fault: fault.id)


def test_every_fault_and_control_of_the_specification_is_there():
    assert [fault.id for fault in FAULTS] == SPECIFIED
    assert set(FAMILIES) >= HEALTHY


def test_the_report_has_runs_enough_of_every_class():
    faults, controls = PARTS["report"]

    # A rate that is too low is labelled as what it does to the run; both names are right there.
    assert {fault.name for fault in faults} >= NAMES - {"lr-low"}
    assert len(faults) >= 55
    assert sum(bool(fault.layers) for fault in faults) >= 12
    assert all(len(fault.seeds) == 5 for fault in faults)
    assert len(controls) >= 25
    assert sum(len(control.seeds) for control in controls) >= 180


@pytest.mark.parametrize("part", sorted(set(PARTS) - {"report"}))
def test_the_report_shares_no_run_with_a_part_on_which_rules_are_chosen(part):
    known, fresh = (PARTS[each].configurations for each in (part, "report"))

    assert not {each.config.key for each in known} & {each.config.key for each in fresh}
    assert not {each.id for each in known} & {each.id for each in fresh}


def test_the_tenth_part_has_runs_of_every_class():
    faults, controls = PARTS["tenth"]

    assert {fault.name for fault in faults} == NAMES
    assert len(faults) >= 22
    assert sum(bool(fault.layers) for fault in faults) >= 6
    assert len(controls) >= 12
    assert {each.seeds for each in (*faults, *controls)} == {(120, 121, 122)}


@pytest.mark.parametrize("part", sorted(set(PARTS) - {"tenth"}))
def test_the_tenth_part_shares_no_configuration_name_or_seed_with_another(part):
    known, fresh = (PARTS[each].configurations for each in (part, "tenth"))

    assert not {each.config.key for each in known} & {each.config.key for each in fresh}
    assert not {each.id for each in known} & {each.id for each in fresh}
    assert not {seed for each in known for seed in each.seeds} & {
        seed for each in fresh for seed in each.seeds
    }


def test_no_configuration_of_the_tenth_part_is_a_parent_or_written_twice():
    keys = [each.config.key for each in PARTS["tenth"].configurations]

    assert len(set(keys)) == len(keys)
    assert not set(keys) & {parent.config.key for parent in ALL_PARENTS.values()}


def test_no_parent_of_the_third_set_was_known_before_it_was_written():
    written = {
        fault.parent_name
        for part in ("rehearsal", "third", "closing")
        for fault in PARTS[part].faults
    }
    known = {
        fault.parent_name for part in ("tune", "trial", "former") for fault in PARTS[part].faults
    }

    assert not written & known
    assert written | known <= set(ALL_PARENTS)


@every_fault
def test_a_fault_carries_a_class_that_the_diagnoses_know(fault):
    assert {fault.name, *fault.accept} <= NAMES
    assert fault.name not in fault.accept
    assert fault.cause


@every_fault
def test_a_fault_is_a_mutation_of_its_parent_and_nothing_more(fault):
    parent = fault.parent.config
    changed = {
        each.name
        for each in fields(Config)
        if getattr(fault.config, each.name) != getattr(parent, each.name)
    }

    assert changed
    assert changed <= set(fault.changes)


def test_no_two_faults_are_the_same_run_and_no_control_is_a_fault():
    """Seeds included: a part may hold the configurations of another with seeds of its own."""
    faults = [(fault.config.key, seed) for fault in ALL for seed in fault.seeds]
    controls = [each for part in PARTS.values() for each in part.controls]

    assert len(set(faults)) == len(faults)
    assert not {key for key, _ in faults} & {control.config.key for control in controls}
    assert len({control.id for control in controls}) == len(controls)


def test_the_key_tells_every_knob_apart_and_nothing_else():
    assert Config().key == Config().key
    assert replace(Config(), lr=2e-3).key != Config().key
    assert replace(Config(), skip_nonfinite=True).key != Config().key
    assert replace(Config(), jitter=0.1).key != Config().key
    assert replace(Config(), switched=(("lr", 1.0),)).key != Config().key


def test_a_knob_that_came_later_does_not_rename_the_runs_that_are_kept():
    assert Config().key == "a7afee0eaa9b"


def test_a_target_is_reached_from_the_right_side():
    accurate, low = PARENTS["mlp"], PARENTS["gpt"]

    assert accurate.reached(accurate.target)
    assert not accurate.missed(accurate.target - accurate.margin / 2)
    assert accurate.missed(accurate.target - 2 * accurate.margin)
    assert low.reached(low.target)
    assert low.missed(low.target + 2 * low.margin)


def test_a_result_that_is_no_number_misses_every_target():
    for parent in PARENTS.values():
        assert parent.missed(float("nan"))
        assert not parent.reached(float("nan"))
