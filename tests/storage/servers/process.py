"""Programs that tests start and end: one line when ready, one answer to each line, gone at the end.

A server of ours is a program. It prints one line of JSON when it listens, answers each line on
its standard input with one line, and ends when that input closes: where the test is killed, too.
"""

import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

TESTS = Path(__file__).parents[2]


class MissingProgram(Exception):
    """A program that is not installed here; a test that needs it is skipped."""


def find_program(name: str, package: str) -> str:
    """Return where a program lies; raise with the Debian package that brings it."""
    found = shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
    if found is None:
        raise MissingProgram(f"{name} is not installed (Debian: {package})")
    return found


class Server:
    """One program of ours: its ports, and how to ask it something."""

    def __init__(self, module: str, *arguments: str | Path, environment: Mapping[str, str] = {}):
        """Start `python -m storage.servers.MODULE` and wait for its first line."""
        paths = [str(TESTS), os.environ.get("PYTHONPATH", "")]
        self._process = subprocess.Popen(
            [sys.executable, "-m", f"storage.servers.{module}", *map(str, arguments)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={**os.environ, **environment, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
        )  # fmt: skip
        self._lock = threading.Lock()
        try:
            self.about: dict[str, Any] = self._answer()
        except BaseException:
            self.stop()
            raise

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return int(self.about["port"])

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    @property
    def url(self) -> str:
        """Its address, without a slash at the end."""
        return f"{self.about.get('scheme', 'http')}://127.0.0.1:{self.port}"

    def ask(self, do: str, **values: Any) -> Any:
        """Send one command and return the answer."""
        assert self._process.stdin
        with self._lock:
            self._process.stdin.write(json.dumps({"do": do, **values}) + "\n")
            self._process.stdin.flush()
            return self._answer()

    def stop(self) -> None:
        """End it and wait until it is gone."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe:
                pipe.close()

    def __enter__(self) -> Self:
        """Keep it until the block ends."""
        return self

    def __exit__(self, *_: object) -> None:
        """End it."""
        self.stop()

    def _answer(self) -> Any:
        assert self._process.stdout
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the server ended with exit code {self._process.wait()}")
        answer = json.loads(line)
        if isinstance(answer, dict) and "error" in answer:
            raise ValueError(answer["error"])
        return answer


def serve_commands(about: Mapping[str, Any], commands: Mapping[str, Callable[..., Any]]) -> None:
    """Say what was started, answer commands until the input closes, and end the process."""
    print(json.dumps(about), flush=True)
    for line in sys.stdin:
        values = json.loads(line)
        try:
            answer = commands[values.pop("do")](**values)
        except Exception as error:  # noqa: BLE001 - it belongs to the test that asked
            answer = {"error": repr(error)}
        print(json.dumps(answer), flush=True)
    os._exit(0)  # without waiting for the threads of open connections


class Foreign:
    """A program of somebody else that listens on a port we chose."""

    def __init__(self, argv: Sequence[str], port: int, log: Path, **how: Any) -> None:
        """Start it and wait until the port answers."""
        self.port = port
        with log.open("ab") as sink:
            self._process = subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=sink, stderr=sink, **how
            )
        until = time.monotonic() + 20
        while not _listens(port):
            if self._process.poll() is not None or time.monotonic() > until:
                self.stop()
                raise RuntimeError(f"{argv[0]} did not start: {log.read_text()[-1000:]}")
            time.sleep(0.01)

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def stop(self) -> None:
        """End it and wait until it is gone."""
        self._process.terminate()
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def __enter__(self) -> Self:
        """Keep it until the block ends."""
        return self

    def __exit__(self, *_: object) -> None:
        """End it."""
        self.stop()


def free_port() -> int:
    """Return a port of 127.0.0.1 that nothing listened on a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
