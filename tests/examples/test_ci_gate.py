"""The gate of a build: rows of `-o json` in, annotations and an exit code out."""

import subprocess
import sys

import pytest
from contracts.plugins import ROOT, run
from models.small import arrays, write

GATE = str(ROOT / "examples" / "ci_gate.py")


def gate(text: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, GATE], input=text, capture_output=True, text=True, check=False
    )


@pytest.fixture
def compared(tmp_path):
    """Return a function that compares two models and hands the rows to the gate."""

    def compare(left, right):
        for name, model in (("l.safetensors", left), ("r.safetensors", right)):
            write(tmp_path / name, arrays(**model))
        rows = run("-m", "difflens", "l.safetensors", "r.safetensors", "-o", "json", cwd=tmp_path)
        assert rows.stderr == ""
        return gate(rows.stdout)

    return compare


def test_a_classifier_of_another_shape_fails_the_build(compared):
    done = compared({"classifier.weight": [1, 2, 3]}, {"classifier.weight": [1, 2]})

    assert (done.returncode, done.stdout) == (
        1,
        '::error::"classifier.weight" changed its shape: [3] -> [2]\n',
    )


def test_another_tensor_of_another_shape_does_not(compared):
    done = compared({"pooler.weight": [1, 2, 3]}, {"pooler.weight": [1, 2]})

    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.parametrize(("number", "said"), [(10, ""), (11, "::warning::11 tensors changed, ")])
def test_more_than_ten_changed_tensors_warn_and_pass(compared, number, said):
    left, right = ({f"w.{place}": [value] for place in range(number)} for value in (1, 2))

    done = compared(left, right)

    assert done.returncode == 0
    assert done.stdout.startswith(said)
    assert bool(done.stdout) == bool(said)


def test_no_rows_are_trouble_and_no_pass():
    done = gate("")

    assert done.returncode == 2
    assert done.stdout.startswith("::error::difflens gave no JSON")


def test_a_name_writes_no_annotation_of_its_own():
    done = gate('[{"TensorShapeChanged": ["classifier\\n::error::x", [1], [2]]}]')

    assert done.stdout == '::error::"classifier\\n::error::x" changed its shape: [1] -> [2]\n'
