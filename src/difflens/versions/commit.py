"""The commit that the current folder stands at, as git says."""

from __future__ import annotations

import subprocess
from os import PathLike, fspath

from ..errors import DifflensError

_PATIENCE = 30  # seconds


def commit_of(folder: str | PathLike[str] = ".") -> tuple[str, bool]:
    """Give the commit's hash, and whether files differ from it."""
    found = _git(folder, "rev-parse", "--verify", "HEAD").strip()
    return found, bool(_git(folder, "status", "--porcelain", "--untracked-files=no").strip())


def _git(folder: str | PathLike[str], *words: str) -> str:
    hint = "name the commit instead of `auto`"
    command = ["git", "-C", fspath(folder), *words]
    try:
        done = subprocess.run(  # noqa: S603  fixed words; the folder is one argument
            command, capture_output=True, timeout=_PATIENCE, check=False, text=True
        )
    except FileNotFoundError:
        raise DifflensError("git is not installed", where="commit", hint=hint) from None
    except subprocess.TimeoutExpired:
        reason = f"git did not answer within {_PATIENCE} s"
        raise DifflensError(reason, where="commit", hint=hint) from None
    if done.returncode:
        said = done.stderr.strip().splitlines()
        reason = said[-1].removeprefix("fatal: ") if said else f"git ended with {done.returncode}"
        raise DifflensError(f"git says: {reason}", where="commit", hint=hint)
    return done.stdout
