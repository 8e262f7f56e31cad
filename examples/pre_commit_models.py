#!/usr/bin/env python3
"""Compare every staged model with the one in HEAD, and ask before an architecture changes.

    ln -s ../../examples/pre_commit_models.py .git/hooks/pre-commit

Changed values pass and are told in one line a model. A tensor more or less, or another shape or
dtype, is asked about on a terminal; without one the commit fails.
"""

# ruff: noqa: T201, S603, S607

import subprocess
import sys
import tempfile
from pathlib import Path

import difflens

MODELS = (".safetensors", ".gguf", ".onnx", ".pt", ".pth", ".bin", ".h5", ".npz")


def git(*words: str) -> bytes:
    """Ask git."""
    return subprocess.run(["git", *words], check=True, capture_output=True).stdout


def staged() -> list[str]:
    """List the models that this commit changes; one that is new has nothing to compare with."""
    names = git("diff", "--cached", "--name-only", "-z", "--diff-filter=M").decode().split("\0")
    return [name for name in names if name.endswith(MODELS)]


def compare(name: str) -> bool:
    """Tell what changed in one model; is it the architecture?"""
    with tempfile.TemporaryDirectory() as folder:
        sides = []
        for where, revision in (("head", "HEAD:"), ("staged", ":")):
            path = Path(folder, where, Path(name).name)
            path.parent.mkdir()
            path.write_bytes(git("cat-file", "--filters", f"{revision}{name}"))  # LFS too
            sides.append(path)
        totals = (report := difflens.diff(*sides).report()).totals
    print(f"{name}: {report.verdict.sentence}")
    return bool(totals.added or totals.removed or totals.reshaped or totals.recast)


def main() -> int:
    """Let the commit pass, or ask; 1 stops it."""
    try:
        altered = [name for name in staged() if compare(name)]
    except difflens.DifflensError as error:
        print(f"cannot compare: {error}", file=sys.stderr)
        return 1
    if not altered:
        return 0
    print(f"the architecture of {', '.join(altered)} changed")
    try:
        with open("/dev/tty", encoding="utf-8") as terminal:  # noqa: PTH123  git gives no stdin
            print("commit anyway? [y/N] ", end="", flush=True)
            return 0 if terminal.readline().strip().lower() in {"y", "yes"} else 1
    except OSError:
        print("no terminal to ask on: commit with --no-verify if this is meant")
        return 1


if __name__ == "__main__":
    sys.exit(main())
