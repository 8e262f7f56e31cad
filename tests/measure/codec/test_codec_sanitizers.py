"""The compiled codec under the address and undefined-behaviour sanitizers, damage included."""

import subprocess
from pathlib import Path

import pytest
from measure.kernel.test_sanitizers import STRICT, WATCHED, compiler

__all__ = ["compiler"]

HERE = Path(__file__).parent
CODEC = HERE.parents[2] / "src" / "difflens" / "measure" / "codec"


@pytest.mark.long
def test_the_sanitizers_see_nothing_in_good_chunks_and_damaged_ones(compiler, tmp_path):
    program = tmp_path / "drive"
    names = ("codec", "sparse", "dense", "predict", "walk_baseline", "walk_avx2", "walk_avx512")
    sources = [*(CODEC / f"{name}.c" for name in names), HERE / "drive.c"]
    command = [compiler, *STRICT, *WATCHED, f"-I{CODEC}", *sources, "-o", program]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr

    ran = subprocess.run([program], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "baseline" in ran.stdout.split()
