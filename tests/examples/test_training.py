"""The example of each framework runs, and the run it leaves is whole."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from difflens.training.diagnoses import diagnose
from difflens.training.history import read_history

FOLDER = Path(__file__).parents[2] / "examples" / "training"
FRAMES = {
    "watch_accelerate": 40,
    "watch_jax": 100,
    "watch_keras": 40,
    "watch_lightning": 40,
    "watch_pytorch": 300,
    "watch_transformers": 40,
}


def ran(name: str, run: Path) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"KERAS_BACKEND": "torch", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(FOLDER / f"{name}.py"), str(run)],
        capture_output=True, text=True, env=environment, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done


def test_every_example_is_run_here():
    assert set(FRAMES) == {path.stem for path in FOLDER.glob("*.py")}


@pytest.mark.parametrize("name", sorted(set(FRAMES) - {"watch_pytorch"}))
def test_a_healthy_example_leaves_a_healthy_run(tmp_path, name):
    ran(name, tmp_path / "run")

    history = read_history(tmp_path / "run")
    losses = history.course.scalar("loss")
    assert history.frames == FRAMES[name]
    assert losses[-5:].mean() < losses[:5].mean()
    assert [each.name for each in diagnose(history).findings if each.severity != "info"] == []


def test_the_example_with_a_fault_names_it(tmp_path):
    done = ran("watch_pytorch", tmp_path / "run")

    assert "not-training" in done.stdout.splitlines()[0]
