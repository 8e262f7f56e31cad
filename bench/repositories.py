"""Repositories whose two commits hold the two models of a pair, for the rows about git."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

from .files import Pair

NAME = "model.safetensors"


def make(folder: Path, pair: Pair, *, pointers: bool) -> Path:
    """Commit the left and then the right model, as Git LFS does or as they are."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    _call(folder, "git", "init", "-q")
    for model in (pair.left, pair.right):
        if pointers:
            _point(folder, model)
        else:
            shutil.copyfile(model, folder / NAME)
        _call(folder, "git", "add", NAME)
        names = ["-c", "user.name=bench", "-c", "user.email=bench@example.invalid"]
        _call(folder, "git", *names, "commit", "-q", "-m", model.stem)
    _call(folder, sys.executable, "-m", "difflens", "git", "install")
    return folder


def _point(folder: Path, model: Path) -> None:
    """Store a model as Git LFS does: a link to its bytes, and a pointer."""
    with model.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    place = folder / ".git" / "lfs" / "objects" / digest[:2] / digest[2:4] / digest
    place.parent.mkdir(parents=True)
    os.link(model, place)
    head = "version https://git-lfs.github.com/spec/v1"
    (folder / NAME).write_text(f"{head}\noid sha256:{digest}\nsize {model.stat().st_size}\n")


def _call(folder: Path, *words: str) -> None:
    subprocess.run(words, cwd=folder, check=True, stdout=subprocess.DEVNULL)
