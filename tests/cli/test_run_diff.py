"""`difflens run-diff`: what it says, and its exit code."""

import json

import pytest
from cli.command import assert_refused
from training.history.test_parting import GRADIENT, recorded, sampled


def change(step, numbers):
    if step >= 6:
        numbers[GRADIENT, 1] *= 2


def test_the_same_run_twice(difflens, tmp_path):
    left, right = recorded(tmp_path / "left"), recorded(tmp_path / "right")
    done = difflens("run-diff", left, right)

    assert done.code == 0
    assert "the same: every number of 20 steps" in done.out


def test_where_they_part_is_the_verdict(difflens, tmp_path):
    left, right = recorded(tmp_path / "left"), recorded(tmp_path / "right", change=change)
    done = difflens("run-diff", left, right)

    assert done.code == 1
    assert "they part at step 6: grad_l2 of block" in done.out


@pytest.mark.parametrize("output", ["json", "yaml", "markdown", "html"])
def test_every_output_is_written(difflens, tmp_path, output):
    left, right = recorded(tmp_path / "left"), recorded(tmp_path / "right", change=change)
    done = difflens("run-diff", left, right, "-o", output)

    assert done.code == 1
    assert "block" in done.out
    if output == "json":
        assert json.loads(done.out)["parted"][0]["step"] == 6


def test_what_is_no_run_is_refused(difflens, tmp_path):
    left = recorded(tmp_path / "left")

    assert_refused(difflens("run-diff", left, tmp_path / "nowhere"), "no such file")


def test_steps_whose_layers_were_not_read_are_counted(difflens, tmp_path):
    left, right = sampled(tmp_path / "left", range(0, 20, 2)), recorded(tmp_path / "right")
    done = difflens("run-diff", left, right)

    assert done.code == 0
    assert "the same: every number that both recorded of 20 steps" in done.out
    assert "the layers of 10 steps, which one run or both did not read" in done.out
