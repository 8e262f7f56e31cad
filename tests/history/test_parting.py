"""Where two runs part, told exactly."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

from difflens.history.frame import MISSING
from difflens.history.parting import run_diff
from difflens.history.writer import RunWriter
from difflens.runs import LAYER_FIELDS, Layer, RunInfo

NAMES = ("embed", "block", "head")
GRADIENT = LAYER_FIELDS.index("grad_l2")


def block(step: int) -> np.ndarray:
    return np.random.default_rng(step).random((7, 3)).astype(np.float32)


def recorded(folder, steps=range(20), change=None, names=NAMES, loss=lambda step: 1 / (step + 1)):
    info = RunInfo("run", layers=tuple(Layer(name, (2, 2)) for name in names))
    with RunWriter(folder, info) as writer:
        for step in steps:
            numbers = block(step)[:, : len(names)]
            if change:
                change(step, numbers)
            writer.append(step, {"loss": loss(step)}, numbers)
    return folder


def test_a_run_is_the_same_as_itself_whatever_the_clock_says(tmp_path):
    found = run_diff(recorded(tmp_path / "left"), recorded(tmp_path / "right"))

    assert (found.differs, found.steps, found.parted) == (False, 20, ())


@given(step=some.integers(0, 19), layer=some.integers(0, 2), field=some.integers(0, 6),
       size=some.sampled_from([1e-7, 1e-5, 1e-2, 1.0]))  # fmt: skip
def test_the_first_number_that_differs_is_named(tmp_path_factory, step, layer, field, size):
    folder = tmp_path_factory.mktemp("runs")

    def change(now, numbers):
        if now >= step:
            numbers[field, layer] = np.nextafter(
                numbers[field, layer] * np.float32(1 + size), np.float32(9)
            )

    found = run_diff(recorded(folder / "left"), recorded(folder / "right", change=change))

    first = found.parted[0]
    assert (first.step, first.layer, first.field) == (step, NAMES[layer], LAYER_FIELDS[field])
    assert first.layers == (NAMES[layer],)
    assert found.differs


def test_a_gap_that_grows_is_dated_at_every_size(tmp_path):
    def change(step, numbers):
        if step >= 5:
            numbers[GRADIENT, 1] *= np.float32(1 + 10.0 ** (step - 12))

    found = run_diff(recorded(tmp_path / "left"), recorded(tmp_path / "right", change=change))

    assert [each.tolerance for each in found.parted] == [0.0, 1e-6, 1e-3, 0.1]
    steps = [each.step for each in found.parted]
    assert steps == sorted(steps)
    assert steps[0] in (5, 6)
    assert found.parted[2].step == 10


def test_a_nan_on_one_side_is_a_difference_and_on_both_is_none(tmp_path):
    def spoil(step, numbers):
        if step == 7:
            numbers[GRADIENT, 2] = np.nan

    left = recorded(tmp_path / "left", change=spoil)

    assert not run_diff(left, recorded(tmp_path / "again", change=spoil)).differs
    first = run_diff(left, recorded(tmp_path / "right")).parted[0]
    assert (first.step, first.layer, first.left) == (7, "head", "NaN")


def test_what_was_not_recorded_is_not_a_nan(tmp_path):
    def spoil(value):
        def change(step, numbers):
            if step == 7:
                numbers[GRADIENT, 2] = value

        return change

    left = recorded(tmp_path / "left", change=spoil(MISSING))
    first = run_diff(left, recorded(tmp_path / "right", change=spoil(np.nan))).parted[0]

    assert (first.step, first.left, first.right) == (7, None, "NaN")


def test_a_loss_alone_that_differs_is_named_without_a_layer(tmp_path):
    right = recorded(tmp_path / "right", loss=lambda step: 1 / (step + 1) + (step == 4))
    first = run_diff(recorded(tmp_path / "left"), right).parted[0]

    assert (first.step, first.layer, first.field) == (4, "", "loss")


def test_steps_and_layers_of_one_side_are_counted(tmp_path):
    right = recorded(tmp_path / "right", steps=range(0, 30, 2), names=NAMES[:2])
    found = run_diff(recorded(tmp_path / "left"), right)

    assert (found.steps, found.left_only_steps, found.right_only_steps) == (10, 10, 5)
    assert found.left_only_layers == ("head",)
    assert found.differs


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_sides_can_be_swapped(tmp_path, order):
    def change(step, numbers):
        numbers[GRADIENT, 1] += np.float32(step > 3)

    runs = [recorded(tmp_path / "a"), recorded(tmp_path / "b", change=change)]
    found = run_diff(runs[order[0]], runs[order[1]])

    assert (found.parted[0].step, found.parted[0].layer) == (4, "block")
