"""A network of its own for a command: only its loopback, which nobody else can reach.

Ray listens on all interfaces even when it is told 127.0.0.1; there, there are no others.
Tried with Ray 2.60 on two cores, `RAY_ENVIRONMENT` set:
- in one process, `ray.init(**RAY_OPTIONS, _temp_dir=...)`: 3.5 s to start, 0.5 s for the first
  tasks, 1.3 s to end; 0.5 GB of memory, all of its processes together;
- a cluster: `ray start --head --node-ip-address=127.0.0.1 --port=6390 --num-cpus=1
  --object-store-memory=83886080 --include-dashboard=false --temp-dir=...`, and for each node more
  `ray start --address=127.0.0.1:6390` with the same words but for `--head` and `--port`: 0.15 GB
  for each. All commands must run in one namespace, so `isolate` the shell or the pytest around
  them, not each. They go to the background: end them by the process ids that they have.
- the temporary folder must have a short path (less than 48 characters), for its sockets.
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
