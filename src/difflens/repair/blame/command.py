"""Runs the user's command on a hybrid: did it pass, or which number did it print?"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from contextlib import suppress
from math import nan
from typing import BinaryIO

from difflens.core.errors import BlameError
from difflens.core.escape import for_terminal

_NUMBER = re.compile(
    r"(?<![\w.])[-+]?(?:(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?|inf|nan)(?![\w])"
)
_SKIP = 125  # the exit code by which a command says that it cannot judge, as with git bisect
_LAST_BYTES = 1 << 20


class Command:
    """A command with the path of a model in place of `{}`, or as its last word."""

    def __init__(
        self,
        words: Sequence[str],
        *,
        timeout: float | None = None,
        metric: str | None = None,
        is_number: bool = False,
    ) -> None:
        """Store it; `metric` is a regular expression that finds the number in what is printed."""
        if not words:
            raise BlameError("blame", "there is no command to run", hint="put it after --")
        self.words, self._timeout = list(words), timeout
        self.is_number = is_number or metric is not None
        try:
            self._metric = re.compile(metric) if metric is not None else None
        except re.error as error:
            raise BlameError("--metric", f"it is no regular expression: {error}") from error
        self._options = {"timeout": timeout, "metric": metric, "is_number": is_number}
        self.identity = repr((self.words, metric, self.is_number))
        self.said = ""  # the last line on stderr, for the message where both models behave alike
        self._running: set[int] = set()
        self._lock = threading.Lock()
        self._stopped = False

    def __call__(self, path: str) -> float | None:
        """Run it: 1.0 passed, 0.0 failed, or the number it printed; None: it cannot judge."""
        words = [word.replace("{}", path) for word in self.words]
        if words == self.words:
            words.append(path)
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            code = self._run(words, out, err)
            self.said = _last_line(err) or _last_line(out)
            if code == _SKIP:
                return None
            if not self.is_number:
                return float(code == 0)
            return nan if code != 0 else self._number(_tail(out), words)

    def copy(self) -> Command:
        """Make the same command again, which nobody has stopped."""
        return Command(self.words, **self._options)  # type: ignore[arg-type]

    def stop(self) -> None:
        """End every command that runs, with its children, and start no other."""
        with self._lock:
            self._stopped = True
            for group in self._running:
                _kill(group)

    def _run(self, words: list[str], out: BinaryIO, err: BinaryIO) -> int:
        """Run in a process group of its own, so that nothing of it outlives us."""
        with self._lock:
            if self._stopped:
                raise KeyboardInterrupt
            try:
                process = subprocess.Popen(  # noqa: S603  what the user asked to run
                    words, stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True
                )
            except (OSError, ValueError) as error:
                reason = getattr(error, "strerror", None) or str(error)
                shown = for_terminal(words[0])
                raise BlameError(shown, f"the command cannot run: {reason.lower()}") from error
            self._running.add(process.pid)
        try:
            return process.wait(self._timeout)
        except subprocess.TimeoutExpired:
            return -signal.SIGALRM
        finally:
            _kill(process.pid)
            process.wait()
            with self._lock:
                self._running.discard(process.pid)
            if self._stopped:
                raise KeyboardInterrupt

    def _number(self, text: str, words: list[str]) -> float:
        if self._metric is None:
            found = _NUMBER.findall(text)
        else:
            matches = list(self._metric.finditer(text))[-1:]
            shown = [each[1] if self._metric.groups else text[each.end() :] for each in matches]
            found = _NUMBER.findall(shown[0] or "")[:1] if shown else []
        if not found:
            what = "nothing that --metric finds" if self._metric else "no number"
            raise BlameError(for_terminal(words[0]), f"the command printed {what}")
        return float(found[-1])


def _kill(group: int) -> None:
    with suppress(ProcessLookupError, PermissionError):  # it has ended
        os.killpg(group, signal.SIGKILL)


def _tail(file: BinaryIO) -> str:
    file.seek(max(0, file.seek(0, os.SEEK_END) - _LAST_BYTES))
    return file.read().decode("utf-8", "replace")


def _last_line(file: BinaryIO) -> str:
    lines = [line for line in _tail(file).splitlines() if line.strip()]
    return for_terminal(lines[-1].strip()) if lines else ""
