"""The scripts of examples/ run, and say what they promise."""

import pytest
from contracts.plugins import ROOT, run
from models.small import arrays, write

EXAMPLES = ROOT / "examples"


@pytest.fixture
def folder(tmp_path):
    left = arrays(a=[1, 2], b=[3, 4], c=[5, 6])
    write(tmp_path / "left.safetensors", left)
    write(tmp_path / "moved.safetensors", left | arrays(a=[1, 3], b=[3, 4.01]))
    write(tmp_path / "reshaped.safetensors", arrays(a=[1, 2, 3], b=[3, 4], d=[5]))
    return tmp_path


def test_there_are_seven_examples():
    assert {path.stem for path in EXAMPLES.glob("*.py")} == {
        "most_changed",
        "shape_gate",
        "in_memory",
        "mlflow_diff",
        "ci_gate",
        "pre_commit_models",
        "versions_walkthrough",
    }


def test_the_most_changed_tensors_are_listed_first(folder):
    done = run(
        str(EXAMPLES / "most_changed.py"), "left.safetensors", "moved.safetensors", cwd=folder
    )

    assert (done.returncode, done.stderr) == (0, "")
    first, *rest = done.stdout.splitlines()
    assert first == "2 of 3 tensors differ; the most changed:"
    assert [line.split() for line in rest] == [["44.72%", "a"], ["0.20%", "b"]]


def test_the_gate_lets_changed_values_pass(folder):
    done = run(str(EXAMPLES / "shape_gate.py"), "left.safetensors", "moved.safetensors", cwd=folder)

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_gate_fails_on_a_change_of_shape(folder):
    done = run(
        str(EXAMPLES / "shape_gate.py"), "left.safetensors", "reshaped.safetensors", cwd=folder
    )

    assert done.returncode == 1
    assert done.stdout.splitlines() == [
        "a: F32 [2] -> F32 [3]",
        "c: F32 [2] -> absent",
        "d: absent -> F32 [1]",
    ]


def test_the_gate_says_so_when_it_cannot_read(folder):
    done = run(str(EXAMPLES / "shape_gate.py"), "left.safetensors", "nowhere", cwd=folder)

    assert done.returncode == 2
    assert done.stderr == "cannot compare: nowhere: no such file\n"


def test_two_state_dicts_are_compared_in_memory(tmp_path):
    done = run(str(EXAMPLES / "in_memory.py"), cwd=tmp_path)

    assert done.stdout.splitlines() == [
        "encoder.weight: identical",
        "head.bias: changed, by 0.01",
        "head.weight: changed, by 0.0194",
        "different: 2 changed, of 3 tensors",
    ]
