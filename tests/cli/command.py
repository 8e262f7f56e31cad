"""The command as tests start it: in this process where that is enough, in its own where not."""

from __future__ import annotations

import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from difflens import cli


@dataclass(frozen=True)
class Outcome:
    """What one run answered."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        """The lines of stdout."""
        return self.out.splitlines()


class InProcess:
    """Runs the command in this process, in a folder of its own."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *arguments: str | Path) -> Outcome:
        self._capsys.readouterr()
        code = cli._run([str(each) for each in arguments])
        captured = self._capsys.readouterr()
        return Outcome(code, captured.out, captured.err)


def start(*arguments: str | Path, **how: Any) -> subprocess.Popen[str]:
    """Start the command in a process of its own."""
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(
        [sys.executable, "-m", "difflens", *arguments], text=True, **(streams | how)
    )


def run(*arguments: str | Path, **how: Any) -> Outcome:
    """Run the command in a process of its own, to its end."""
    process = start(*arguments, **how)
    out, err = process.communicate(timeout=60)
    return Outcome(process.returncode, out or "", err or "")


def wait_until_open(process: subprocess.Popen[str], path: Path) -> bool:
    """Wait until the process has the file open; False if it ended before."""
    descriptors = Path(f"/proc/{process.pid}/fd")
    while process.poll() is None:
        try:
            if any(each.readlink() == path for each in descriptors.iterdir()):
                return True
        except OSError:  # the process or a descriptor went away while we looked
            continue
        time.sleep(0.001)
    return False


def assert_refused(outcome: Outcome, *words: str) -> None:
    """Check that it is exit code 2, one line and perhaps a hint, and no result."""
    assert (outcome.code, outcome.out) == (2, "")
    first, *rest = outcome.err.splitlines()
    assert first.startswith("difflens: error: ")
    assert first.isprintable()
    assert "fault of difflens" not in first
    assert len(rest) <= 1
    assert all(line.startswith("hint: ") for line in rest)
    for word in words:
        assert word in outcome.err
