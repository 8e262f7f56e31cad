"""The kernels for GPUs: on one where there is one, else in Triton's interpreter."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

CASES = Path(__file__).with_name("fused_cases.py")


def test_the_kernels_equal_64_bits():
    """A process of its own: Triton cannot be interpreted once it was imported without that."""
    torch = pytest.importorskip("torch")
    pytest.importorskip("triton")
    interpreted = {} if torch.cuda.is_available() else {"TRITON_INTERPRET": "1"}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(CASES)]

    done = subprocess.run(
        command, env=os.environ | interpreted, capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout
    assert "skipped" not in done.stdout
