"""The command run case after case in forked children of one warm process, watched by an audit hook.

A start of Python costs more than most cases. So one process imports difflens, and
forks for every case: the child runs the command and ends, the parent asks the
system what it cost. What the child did is in a log that `sitecustomize` writes.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LOG = "DIFFLENS_TEST_AUDIT_LOG"

# Installed before anything else runs: `python -m difflens` has no way around it.
SITECUSTOMIZE = """
import os
import sys

_WATCHED = {
    "pickle.find_class", "subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.spawn",
    "socket.connect", "socket.bind", "socket.getaddrinfo", "ctypes.dlopen", "os.remove",
    "os.rename", "os.mkdir", "os.rmdir", "os.link", "os.symlink", "os.truncate", "os.chmod",
    "shutil.copyfile", "shutil.unpack_archive", "tempfile.mkstemp", "tempfile.mkdtemp", "exec.file",
}
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_log = os.open(os.environ["DIFFLENS_TEST_AUDIT_LOG"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)


def _hook(event, arguments):
    if event == "open":
        path, mode, flags = arguments
        if not (flags or 0) & _WRITES or path == os.devnull:
            return
        said = f"open {path!r} {mode} {flags}"
    elif event == "import":
        said = f"import {arguments[0]}"
    elif event in _WATCHED:
        said = f"{event} {arguments!r}"
    else:
        return
    os.write(_log, (said.replace("\\n", " ") + "\\n").encode("utf-8", "backslashreplace"))


sys.addaudithook(_hook)
"""

# Reads a request a line, answers with what the child cost.
_SERVER = """
import json
import os
import locale  # click's own, and not where nobody may read
import resource
import signal
import sys
import time

import difflens.cli
from difflens.cli import _output, _progress, check, diff
from difflens.core import limits
from difflens.diffs import story
from difflens.models import describe, formats, refusals
from difflens.models.folders import shards
from difflens.models.formats import safetensors
from difflens.render.diffs import cli
from difflens.render.report import inventory
from difflens.storage import local


def run(wish):
    os.chdir(wish["cwd"])
    for number, name in ((1, wish["stdout"]), (2, wish["stderr"])):
        os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
    if wish["most_open"]:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wish["most_open"],) * 2)
    if wish["user"]:
        list(formats.source)  # all readers, while our libraries can still be read
        os.setgroups([])
        os.setgid(wish["user"])
        os.setuid(wish["user"])
    signal.alarm(wish["limit"])  # unanswered: the child dies, and the test sees the signal
    os.write(watch, b"BEGIN\\n")
    return difflens.cli._run(wish["arguments"])


watch = os.open(os.environ["DIFFLENS_TEST_AUDIT_LOG"], os.O_WRONLY | os.O_APPEND)
for line in sys.stdin:
    start = time.monotonic()
    child = os.fork()
    if not child:
        code = 99
        try:
            code = run(json.loads(line))
            sys.stdout.flush()
        finally:
            os._exit(code)
    _, status, usage = os.wait4(child, 0)
    code = os.waitstatus_to_exitcode(status)
    cost = {"code": code, "seconds": time.monotonic() - start, "kilobytes": usage.ru_maxrss}
    cost["busy"] = usage.ru_utime + usage.ru_stime
    print(json.dumps(cost), flush=True)
"""

NOBODY = 65534


@dataclass(frozen=True)
class Outcome:
    """What one run did."""

    code: int
    stdout: str
    stderr: str
    seconds: float
    busy: float  # seconds of a processor: what a crowded machine does not stretch
    megabytes: float
    events: list[str]
    imports: set[str]


def environment(folder: Path) -> dict[str, str]:
    """Write the hook into the folder, and give the environment that installs it."""
    (folder / "sitecustomize.py").write_text(SITECUSTOMIZE)
    (folder / "audit.log").touch()
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(folder), *_also("PYTHONPATH")]),
        "PYTHONDONTWRITEBYTECODE": "1",
        LOG: str(folder / "audit.log"),
    }


def _also(name: str) -> list[str]:
    return [os.environ[name]] if os.environ.get(name) else []


def audit(lines: list[str]) -> tuple[list[str], set[str]]:
    """Part the log into what must not happen, and the modules that were imported."""
    events = [
        line for line in lines if not line.startswith(("import ", "BEGIN", "open '/dev/null"))
    ]
    names = {
        line.partition(" ")[2].partition(".")[0] for line in lines if line.startswith("import")
    }
    return events, names


class Server:
    """The warm process."""

    def __init__(self, folder: Path) -> None:
        """Start it; its scratch files live in the folder."""
        self.folder = folder
        self._log = folder / "audit.log"
        self._process = subprocess.Popen(
            [sys.executable, "-c", _SERVER],
            env=environment(folder),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, *arguments: str | Path, cwd: Path, limit: int = 40, **how: Any) -> Outcome:
        """Run the command once: `user`, `most_open` restrict it."""
        wish = {
            "arguments": [str(each) for each in arguments],
            "cwd": str(cwd),
            "stdout": str(self.folder / "stdout"),
            "stderr": str(self.folder / "stderr"),
            "limit": limit,
            "most_open": how.get("most_open"),
            "user": how.get("user"),
        }
        begun = self._log.stat().st_size
        pipe_in, pipe_out = self._process.stdin, self._process.stdout
        assert pipe_in
        assert pipe_out
        pipe_in.write(json.dumps(wish) + "\n")
        pipe_in.flush()
        cost = json.loads(pipe_out.readline())
        with self._log.open("rb") as log:
            log.seek(begun)
            lines = log.read().decode().splitlines()
        return Outcome(
            cost["code"],
            (self.folder / "stdout").read_bytes().decode(),
            (self.folder / "stderr").read_bytes().decode(),
            cost["seconds"],
            cost["busy"],
            cost["kilobytes"] / 1024,
            *audit(lines[lines.index("BEGIN") + 1 :]),
        )

    def close(self) -> None:
        """End it."""
        self._process.communicate()
