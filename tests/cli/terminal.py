"""The command on a pseudo-terminal, as tests look at it."""

import codecs
import os
import pty
import re
import select
import subprocess
import sys
import time
from pathlib import Path

ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Terminal:
    """A command on a terminal of so many lines and columns; stderr goes there where asked."""

    def __init__(
        self,
        *arguments: str | Path,
        lines: int = 24,
        columns: int = 80,
        folder: Path | None = None,
        errors: bool = False,
    ) -> None:
        self._ours, theirs = pty.openpty()
        size = {"LINES": str(lines), "COLUMNS": str(columns), "TERM": "xterm"}
        kept = {key: value for key, value in os.environ.items() if not key.endswith("_COLOR")}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "difflens", *map(str, arguments)],
            stdin=theirs, stdout=theirs, stderr=theirs if errors else None, cwd=folder,
            env=kept | size, start_new_session=True,
        )  # fmt: skip
        os.close(theirs)
        self.seen = ""
        # A letter of several bytes may come in two reads.
        self._letters = codecs.getincrementaldecoder("utf-8")(errors="replace")

    def until(self, text: str, seconds: float = 60) -> str:
        """Read until the text was on the screen, or the command has ended."""
        end = time.monotonic() + seconds
        while text not in self.seen and time.monotonic() < end:
            if select.select([self._ours], [], [], 0.2)[0]:
                try:
                    self.seen += self._letters.decode(os.read(self._ours, 1 << 16))
                except OSError:  # what Linux says at the end of a terminal
                    break
            elif self.process.poll() is not None:
                break
        return self.seen

    def end(self) -> int:
        """Wait for the end and give the exit code."""
        self.until("\0never")
        os.close(self._ours)
        return self.process.wait(30)

    def close(self) -> None:
        """Leave no process behind."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self._ours)


def shown(*arguments: str | Path, columns: int = 80) -> list[str]:
    """Run a command to its end and give the lines it showed, without colours."""
    terminal = Terminal(*arguments, columns=columns)
    terminal.end()
    return ESCAPES.sub("", terminal.seen).replace("\r\n", "\n").splitlines()
