"""Children that report and may be killed, for programs that hammer on what is to survive that.

Forking needs a process without threads, so a hammer is a program of its own; it prints one JSON
object.
"""

import json
import os
import subprocess
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from difflens.core.errors import DifflensError


def hammered(program: Path, *arguments: object) -> dict[str, Any]:
    """Run a hammer and give what it found."""
    command = [sys.executable, str(program), *map(str, arguments)]
    paths = filter(None, (str(Path(__file__).parent), os.environ.get("PYTHONPATH")))
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    print(done.stdout)  # noqa: T201  the figures of the slow lane are read there
    return json.loads(done.stdout)


def forked(work: Callable[[int], None]) -> tuple[int, int]:
    """Start the work in a child that gets a pipe to report to; give its id and our end."""
    ours, theirs = os.pipe()
    child = os.fork()
    if child:
        os.close(theirs)
        return child, ours
    code = 1
    try:
        os.close(ours)
        work(theirs)
        code = 0
    except DifflensError as error:
        os.write(theirs, f"! {error}\n".encode())
    except BaseException:  # noqa: BLE001  told, then the child ends
        os.write(theirs, f"! {traceback.format_exc()!r}\n".encode())
    finally:
        os._exit(code)


def heard(child: int, pipe: int) -> tuple[list[str], int]:
    """Return what a child reported, and how it ended."""
    with os.fdopen(pipe, "rb") as stream:
        lines = stream.read().decode().splitlines()
    return lines, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
