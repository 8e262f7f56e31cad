"""The compiled sketch under the address and undefined-behaviour sanitizers."""

import subprocess
from pathlib import Path

import pytest
from measure.kernel.test_sanitizers import STRICT, WATCHED, compiler

__all__ = ["compiler"]

HERE = Path(__file__).parent
SKETCH = HERE.parents[2] / "src" / "difflens" / "measure" / "sketch"


@pytest.mark.long
def test_the_sanitizers_see_nothing_in_any_form_and_size(compiler, tmp_path):
    program = tmp_path / "drive"
    sources = [SKETCH / "sketch.c", HERE / "drive.c"]
    command = [compiler, *STRICT, *WATCHED, f"-I{SKETCH}", *sources, "-o", program, "-lm"]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr

    ran = subprocess.run([program], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (0, "done\n"), ran.stdout + ran.stderr
