"""Repositories for tests: made by the real git, in a home of their own without settings."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from models.small import arrays, write

NAME = "model.safetensors"


def weights(seed: int, scale: float = 1.0) -> dict[str, np.ndarray]:
    """Make the same small weights for the same seed."""
    source = np.random.default_rng(seed)
    return {
        f"layers.{at}.w": (scale * source.standard_normal((8, 8))).astype(np.float32)
        for at in range(3)
    }


class Git:
    """One repository; calling it calls git in there."""

    def __init__(self, folder: Path, *, bare: bool = False) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self("init", "-q", "-b", "main", *(["--bare"] if bare else []))

    def __call__(self, *words: str, code: int = 0, **environment: str) -> str:
        done = self.run(*words, **environment)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout

    def run(self, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Call git, whatever it answers."""
        return subprocess.run(
            ["git", *words], cwd=self.folder, env=os.environ | environment,
            capture_output=True, text=True, errors="surrogateescape", timeout=120, check=False,
        )  # fmt: skip

    def commit(self, message: str, **models: dict[str, np.ndarray]) -> str:
        """Commit what lies there, and models by name (`model=weights(1)`); return the commit."""
        for name, model in models.items():
            write(self.folder / f"{name}.safetensors", arrays(**model))
        self("add", "-A")
        self("commit", "-q", "-m", message, "--allow-empty")
        return self("rev-parse", "HEAD").strip()


def isolate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide the settings of whoever runs the tests from git, and those of git from the tests."""
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    home = tmp_path / "home"
    home.mkdir()
    for name in [each for each in os.environ if each.startswith("GIT_")]:
        monkeypatch.delenv(name)
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.delenv("PYTHONSAFEPATH", raising=False)
    settings = {
        "HOME": str(home), "GIT_CONFIG_GLOBAL": str(home / ".gitconfig"),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_AUTHOR_NAME": "Ada", "GIT_AUTHOR_EMAIL": "ada@example.invalid",
        "GIT_COMMITTER_NAME": "Ada", "GIT_COMMITTER_EMAIL": "ada@example.invalid",
        "GIT_CEILING_DIRECTORIES": str(tmp_path), "GIT_ALLOW_PROTOCOL": "file",
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    }  # fmt: skip
    for name, value in settings.items():
        monkeypatch.setenv(name, value)


def has_lfs() -> bool:
    """Is Git LFS installed?"""
    words = ["git", "lfs", "version"]
    return subprocess.run(words, capture_output=True, check=False).returncode == 0
