"""Where two runs part, told exactly."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

from difflens.training.history.frame import MISSING
from difflens.training.history.parting import run_diff
from difflens.training.history.writer import RunWriter
from difflens.training.records.runs import LAYER_FIELDS, Layer, RunInfo

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


def sampled(folder, read, *, steps=20, change=None, loss=lambda step: 1 / (step + 1), lr=True):
    """Record a run whose layers are read at some steps, with what the hooks tell at these alone."""
    info = RunInfo("run", schema=2, layers=tuple(Layer(name, (2, 2)) for name in NAMES))
    with RunWriter(folder, info) as writer:
        for step in range(steps):
            scalars = {"loss": loss(step)}
            if step in read and lr:
                scalars |= {"lr": 0.1, "clip_factor": 1.0}
            numbers = block(step)
            if change:
                change(step, numbers)
            writer.append(step, scalars, numbers, is_read=step in read)
    return folder


def test_a_step_that_one_run_did_not_read_is_no_difference(tmp_path):
    left, right = sampled(tmp_path / "left", range(0, 20, 2)), recorded(tmp_path / "right")
    third = sampled(tmp_path / "third", range(0, 20, 3))

    found = [run_diff(left, right), run_diff(right, left), run_diff(left, third)]

    assert [each.differs for each in found] == [False, False, False]
    assert [(each.steps, each.read_steps) for each in found] == [(20, 10), (20, 10), (20, 4)]


def test_steps_that_both_read_are_compared_whatever_lies_between(tmp_path):
    def change(step, numbers):
        numbers[GRADIENT, 1] += np.float32(step >= 4)

    left = sampled(tmp_path / "left", range(0, 20, 2))
    first = run_diff(left, sampled(tmp_path / "right", range(0, 20, 3), change=change)).parted[0]

    assert (first.step, first.layer, first.field) == (6, "block", "grad_l2")


def test_the_loss_of_a_step_that_was_not_read_is_compared(tmp_path):
    left = sampled(tmp_path / "left", range(0, 20, 2))
    right = sampled(
        tmp_path / "right", range(0, 20, 5), loss=lambda step: 1 / (step + 1 + step // 7)
    )

    first = run_diff(left, right).parted[0]

    assert (first.step, first.field) == (7, "loss")


def test_a_field_that_one_run_did_not_read_at_a_step_is_no_difference(tmp_path):
    def forget(step, numbers):
        if step % 2:
            numbers[LAYER_FIELDS.index("weight_l2") :] = MISSING

    left = recorded(tmp_path / "left", change=forget)

    assert not run_diff(left, recorded(tmp_path / "right")).differs


@pytest.mark.parametrize("field", ["grad_l2", "weight_l2"])
def test_of_a_last_step_that_is_read_when_the_run_is_over_the_weights_are_compared(tmp_path, field):
    """Gradients may be cleared by then, and how often the optimizer stepped is not known."""
    left = sampled(tmp_path / "left", range(19), lr=False)
    late = block(19)
    late[LAYER_FIELDS.index(field)] += 1
    late[LAYER_FIELDS.index("update_l2")] = MISSING
    info = RunInfo("run", schema=2, layers=tuple(Layer(name, (2, 2)) for name in NAMES))
    with RunWriter(left, info, resume=True) as writer:
        writer.append(19, {"loss": 9.0}, late)

    found = run_diff(left, recorded(tmp_path / "right"))

    assert [each.field for each in found.parted[:1]] == [field] * (field == "weight_l2")
