"""Switches on conditions and detectors, and who needs them."""

import ast
from textwrap import dedent

import numpy as np
import pytest
from zoo_runs import a_healthy_label, a_label

from zoo.needed import Need, figures, table
from zoo.switches import FALSE, TRUE, Board, Switch, rewritten
from zoo.trials import Outcome, are_alike

_MODULE = dedent('''
    """A module with two conditions, a bound and a detector."""
    from __future__ import annotations
    _MOST = 3

    def both(a, b):
        return a > 1 and b > 1

    def inside(values):
        return (values > 1) & (values < 5)

    def bounded(a):
        return min(a, _MOST)

    def found(a) -> list[RunFinding]:
        return [a] if a > 0 else []
''')


@pytest.fixture
def module():
    board = Board()
    tree = rewritten(_MODULE, "difflens.training.diagnoses.one", board)
    tree.body = [each for each in tree.body if not isinstance(each, ast.ImportFrom)][1:]
    names = {"_board_": board, "RunFinding": object}
    future = ast.parse("from __future__ import annotations").body
    tree.body = future + tree.body
    exec(compile(tree, "one", "exec"), names)  # noqa: S102 - our own text, rewritten
    return board, names


def number_of(board, text):
    (found,) = [at for at, each in enumerate(board.switches) if each.text == text]
    return found


def test_a_module_with_switches_does_what_it_did(module):
    _, names = module
    assert names["both"](2, 2)
    assert not names["both"](2, 1)
    assert names["inside"](np.array([0, 3, 9])).tolist() == [False, True, False]
    assert names["bounded"](7) == 3
    assert (names["found"](1), names["found"](0)) == ([1], [])


def test_a_condition_that_is_held_at_true_is_left_out_of_an_and(module):
    board, names = module
    board.held[number_of(board, "b > 1")] = True
    assert names["both"](2, 0)
    assert not names["both"](0, 0)


def test_a_part_of_a_mask_is_left_out_alike(module):
    board, names = module
    board.held[number_of(board, "values < 5")] = True
    assert names["inside"](np.array([0, 3, 9])).tolist() == [False, True, True]


def test_a_bound_that_is_held_bounds_nothing(module):
    board, names = module
    board.held[number_of(board, "min(a, _MOST)")] = False
    assert names["bounded"](7) == 7


def test_a_detector_that_is_off_finds_nothing(module):
    board, names = module
    board.held[number_of(board, "found")] = False
    assert names["found"](1) == []


def test_a_switch_knows_what_it_saw(module):
    board, names = module
    names["both"](2, 1)
    seen = board.clear()
    assert seen[number_of(board, "a > 1")] == TRUE
    assert seen[number_of(board, "b > 1")] == FALSE
    names["both"](0, 1)  # what is not asked is not seen
    assert number_of(board, "b > 1") not in board.clear()


def an_outcome(**changes):
    right = dict.fromkeys(("recall", "right_first", "right_last"), True)
    wrong = dict.fromkeys(("false_alarm", "critical", "layer", "ahead"), False)
    plain = {**right, **wrong, "fix": ("scale_lr", {"factor": 0.1})}
    return Outcome(**(plain | changes))


@pytest.mark.parametrize(
    ("changes", "worse"),
    [
        ({}, []),
        ({"layer": True}, []),
        ({"recall": False}, ["recall"]),
        ({"false_alarm": True}, ["false_alarm"]),
        ({"fix": None}, ["fix"]),
        ({"fix": ("scale_lr", {"factor": 0.11})}, []),
        ({"fix": ("scale_lr", {"factor": 0.5})}, ["fix"]),
    ],
)
def test_what_is_worse_is_named(changes, worse):
    assert an_outcome().worse(an_outcome(**changes)) == worse


def test_a_number_is_not_like_a_list_of_them():
    assert not are_alike(("scale_lr", {"factor": 0.1}), ("scale_lr", {"factor": [0.1]}))


def test_remedies_of_another_sign_are_not_alike():
    assert not are_alike(("scale_lr", {"factor": 0.1}), ("scale_lr", {"factor": -0.1}))


def test_the_figures_count_faulty_and_healthy_runs_apart():
    labels = [a_label(id="one", part="tune"), a_healthy_label(id="two", part="tune")]
    outcomes = {"one": an_outcome(), "two": an_outcome(recall=False)}
    tune = figures(labels, outcomes)["tune"]
    assert tune["recall"] == [1, 1]
    assert tune["false_alarm"] == [0, 1]
    assert tune["layer"] == [0, 0]


def test_the_table_names_the_faults_that_need_a_detector():
    switch = Switch("difflens.training.diagnoses.one", "found", 3, "found", "detector")
    needs = [Need(switch, False, 3, 2, {"V1-s3-00": ["recall"], "V1-s4-00": ["fix"]})]
    needs.append(Need(switch, True, 3, 2, {"V2-s3-00": ["recall"]}))
    assert table(needs).splitlines()[2:] == ["| `diagnoses.one.found` | 3 | V1 |"]
