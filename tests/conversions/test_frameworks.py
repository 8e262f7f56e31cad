"""Weights kept as GGUF, Keras, Flax and TensorFlow keep them: right is the same, wrong never is."""

from pathlib import Path

import pytest
from cli.command import InProcess
from hostile.wire import checkpoint

from bench.conversions import frameworks
from difflens.core.records import TensorInfo
from difflens.diffs.pairing import pair


@pytest.fixture
def command(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return InProcess(capsys)


def answer(command, state, right: Path) -> tuple[int, str]:
    left = frameworks.save_left(state, right.parent / "left.pt")
    outcome = command(left, right, "--verify-conversion")
    return outcome.code, outcome.lines[-1]


def tensorflow(state, path: Path) -> Path:
    renamed = frameworks.tensorflow_names(state)
    tensors = {name: ("F32", array.shape, array.tobytes()) for name, array in renamed.items()}
    index, data = checkpoint(tensors)
    path.write_bytes(index)
    (path.parent / f"{path.stem}.data-00000-of-00001").write_bytes(data)
    return path


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", frameworks.WRITERS)
def test_only_the_right_conversion_is_the_same_model(kind, tmp_path, command):
    for fault, state, changed, write in frameworks.conversions(kind):
        path = tmp_path / frameworks.WRITERS[kind][1]
        path.unlink(missing_ok=True)

        code, last = answer(command, state, write(changed, path))

        assert (code, last.startswith("same model")) == (int(fault != "right"), fault == "right"), (
            fault,
            last,
        )


def test_only_the_right_tensorflow_checkpoint_is_the_same_model(tmp_path, command):
    state = frameworks.state_of("bert")

    code, last = answer(command, state, tensorflow(state, tmp_path / "m.index"))

    assert code == 0, last
    for fault, changed in frameworks.wrong(state):
        code, last = answer(command, state, tensorflow(changed, tmp_path / "m.index"))
        assert (code, last.startswith("not the same")) == (1, True), fault


def infos(**shapes: tuple[int, ...]) -> dict[str, TensorInfo]:
    names = {name.replace("__", "."): shape for name, shape in shapes.items()}
    return {name: TensorInfo(name, "F32", shape) for name, shape in names.items()}


def test_a_square_kernel_is_turned_because_of_its_name():
    (found,) = pair(infos(fc__weight=(4, 4)), infos(params__fc__kernel=(4, 4)))

    assert found.transform == "right transposed"
    assert found.right_recipe


def test_modules_of_one_shape_without_numbers_are_not_guessed():
    ours = infos(first__weight=(4, 4), last__weight=(4, 4))
    theirs = infos(layers__dense__vars__0=(4, 4), layers__dense_1__vars__0=(4, 4))

    assert all(each.left is None or each.right is None for each in pair(ours, theirs))


def test_a_kernel_whose_shape_disagrees_with_its_name_stays_alone():
    found = pair(infos(fc__weight=(3, 5)), infos(params__fc__kernel=(3, 5)))

    assert all(each.left is None or each.right is None for each in found)
