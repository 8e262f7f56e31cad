"""A network of its own for a command: only its loopback, which nobody else can reach.

Ray listens on all interfaces even when it is told 127.0.0.1; there, there are no others.
"""

import os
import subprocess
from collections.abc import Sequence

from storage.servers.process import MissingProgram, find_program

# What Ray needs to be told, so that it writes nothing into the home of the user, asks nobody
# how it is used, and takes little memory.
RAY_ENVIRONMENT = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_AUTH_MODE": "disabled"}
RAY_OPTIONS = {"num_cpus": 2, "object_store_memory": 80 << 20, "include_dashboard": False}


def isolate(argv: Sequence[str]) -> list[str]:
    """Return the command that runs this one in a network namespace with loopback up."""
    unshare, ip = find_program("unshare", "util-linux"), find_program("ip", "iproute2")
    user = [] if os.getuid() == 0 else ["--map-root-user"]
    start = [unshare, *user, "--net", "--"]
    if subprocess.run([*start, "true"], capture_output=True, check=False).returncode:
        raise MissingProgram("unshare --net is not allowed here")
    return [*start, "sh", "-c", f'{ip} link set lo up && exec "$@"', "sh", *argv]
