"""Tries a Ray cluster of its own, in a network of its own; prints what came out as JSON.

usage: on_ray.py FOLDER KILLS
"""

import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import ray
from safetensors.numpy import save_file

sys.path.insert(0, str(Path(__file__).parents[2]))
from storage.servers.files import Link, serve_files

from difflens.core.addresses import ALLOW_HTTP
from difflens.core.errors import DifflensError
from difflens.diffs import story
from difflens.engines import ray as subject
from difflens.render.diffs.full_json import full_json

FOLDER, KILLS = Path(sys.argv[1]), int(sys.argv[2])
ADDRESS = "127.0.0.1:6390"
HERE = Path(sys.executable).parent  # the environment need not be on the PATH
START = [str(HERE / "ray"), "start", "--object-store-memory=83886080", "--disable-usage-stats"]


def start(*options):
    """Start a cluster that ends with its process: `ray stop` would end those of others."""
    process = subprocess.Popen(
        [*START, *options, "--block"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    for _ in range(300):
        with suppress(OSError), socket.create_connection(("127.0.0.1", 6390), 1):
            break
        time.sleep(0.2)
    time.sleep(3)
    return process


def write_models():
    """Write some megabytes, in tensors of one chunk and of several."""
    numbers = np.random.default_rng(1)
    left = {f"layers.{at}.w": numbers.standard_normal(700_000, np.float32) for at in range(30)}
    left["embed"] = numbers.standard_normal((3000, 3000), np.float32)
    left["same"] = numbers.standard_normal((2500, 2000), np.float32)
    right = {name: array + (name != "same") * np.float32(1e-3) for name, array in left.items()}
    right["embed"] = left["embed"].copy()
    right["embed"][7] += 1  # all other chunks are equal
    for side, arrays in (("left", left), ("right", right)):
        save_file(arrays, FOLDER / f"{side}.safetensors")
    for side, more in (("few-left", 0), ("few-right", 1e-3)):
        few = {f"layers.{at}.w": numbers.standard_normal((48, 64)) + more for at in range(4)}
        save_file(few, FOLDER / f"{side}.safetensors")
    (FOLDER / "shards").mkdir()
    names = sorted(right)
    for at in range(3):
        some = {name: right[name] for name in names[at::3]}
        save_file(some, FOLDER / "shards" / f"model-{at + 1:05}-of-00003.safetensors")


def paths():
    return str(FOLDER / "left.safetensors"), str(FOLDER / "right.safetensors")


def document(*models, names=(), **options):
    report = story.report(story.diff(*models, **options), list(names))
    return full_json(report, None)


def results():
    """Compare documents of many ways to do the same work."""
    subject.Ray.task_bytes = 4 << 20  # many tasks
    plain = document(*paths(), threads=2)
    ways = {f"threads {count}": {"threads": count} for count in (1, 7)}
    ways |= {f"ray {count}": {"threads": count, "engine": "ray"} for count in (1, 2, 4)}
    same = {name: document(*paths(), **way) == plain for name, way in ways.items()}
    sharded = story.report(story.diff(paths()[0], str(FOLDER / "shards"), engine="ray")).tensors
    os.environ[ALLOW_HTTP] = "1"
    with serve_files(FOLDER, Link(0.01)) as server:
        urls = [f"{server.url}/{side}.safetensors" for side in ("left", "right")]
        elsewhere = story.report(story.diff(*urls, engine="ray")).tensors
        same["http"] = elsewhere == story.report(story.diff(*paths())).tensors
        asked = server.ask("counts")["bytes"]
    size = sum(Path(path).stat().st_size for path in paths())
    same["http, once"] = asked <= 1.02 * size + (1 << 20)
    few = [str(FOLDER / f"few-{side}.safetensors") for side in ("left", "right")]
    names = ("spectral-analysis", "anomaly-detection")
    there = document(*few, names=names, engine="ray")
    same["whole measures"] = there == document(*few, names=names)
    same["shards"] = sharded == story.report(story.diff(*paths())).tensors
    return same


def kills():
    """Kill a random worker at a random moment of each diff."""
    plain = document(*paths())
    begin = time.monotonic()
    document(*paths(), engine="ray")
    took = time.monotonic() - begin
    same, killed = 0, 0
    for seed in range(KILLS):
        thread = threading.Thread(target=kill, args=(random.Random(seed), took, hits := []))
        thread.start()
        same += document(*paths(), engine="ray") == plain
        thread.join()
        killed += len(hits)
    return {"same": same, "killed": killed}


def kill(chance, took, hits):
    time.sleep(chance.random() * took)
    workers = [
        int(each.name)
        for each in Path("/proc").iterdir()
        if each.name.isdigit() and (each / "cmdline").exists()
        if (each / "cmdline").read_bytes().startswith((b"ray::_do", b"ray::IDLE"))
    ]
    if workers:
        os.kill(hits.append(chance.choice(workers)) or hits[-1], signal.SIGKILL)


def error_of(address, call=lambda: next(subject.Ray().map(len, ["a"]))):
    os.environ["RAY_ADDRESS"] = address
    begin = time.monotonic()
    try:
        call()
    except DifflensError as error:
        return {"text": str(error), "hint": error.hint, "seconds": time.monotonic() - begin}
    return {"text": "no error", "hint": "", "seconds": time.monotonic() - begin}


def addresses():
    """Ask clusters that are none, and one of other versions."""
    server = subprocess.Popen(
        [sys.executable, "-m", "http.server", "8123", "--bind", "127.0.0.1"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    time.sleep(1)
    known = [("unset", ""), ("closed", "127.0.0.1:1"), ("other", "127.0.0.1:8123")]
    known += [("words", "ray://127.0.0.1:6390"), ("local", "local")]
    errors = {name: error_of(address) for name, address in known}
    server.terminate()
    server.wait()
    for name, other in (("ray", ("2.0.0", "3.11.0")), ("python", (ray.__version__, "3.0.1"))):
        put_versions(*other)
        errors[name] = error_of(ADDRESS)
    put_versions(ray.__version__, sys.version.split()[0])
    return errors


def put_versions(of_ray, of_python):
    from ray._raylet import GcsClient

    data = json.dumps({"ray_version": of_ray, "python_version": of_python}).encode()
    GcsClient(address=ADDRESS).internal_kv_put(b"CLUSTER_METADATA", data, True, b"cluster")


def other_difflens():
    import difflens

    kept, difflens.__version__ = difflens.__version__, "9.9.9"
    try:
        return error_of(ADDRESS)
    finally:
        difflens.__version__ = kept


def too_much_memory():
    def call():
        engine = subject.Ray()
        next(engine._results(iter([subject._Call(b"", 1 << 50)])))

    return error_of(ADDRESS, call)


def cut_by_user():
    """Send the command a Ctrl-C in the middle of its work; is it gone, and is the cluster free?"""
    environment = os.environ | {"RAY_ADDRESS": ADDRESS}
    command = [str(HERE / "difflens"), "diff", *paths(), "--engine", "ray", "--threads", "1"]
    program = [sys.executable, "-c", SLOW, *command[1:]]
    child = subprocess.Popen(program, env=environment, stdout=subprocess.PIPE)
    assert child.stdout.readline() == b"begun\n"
    time.sleep(0.5)
    begin = time.monotonic()
    child.send_signal(signal.SIGINT)
    code = child.wait(30)
    seconds = time.monotonic() - begin
    free = time.monotonic() + 20
    while ray.available_resources().get("CPU", 0) < 4 and time.monotonic() < free:
        time.sleep(0.2)
    return {"code": code, "seconds": seconds, "free": ray.available_resources().get("CPU")}


# The command, with tasks that take a while and say when the first is handed out.
SLOW = """
import sys, time
from difflens.engines import ray as subject
from difflens.cli import main
subject.Ray.task_bytes = 1 << 20
pack = subject._pack
def slow(work, item, memory):
    def wait(item):
        time.sleep(3)
        return work(item)
    print("begun", flush=True)
    return pack(wait, item, memory)
subject._pack = slow
sys.argv[0] = "difflens"
main()
"""


def command():
    """Run the command itself: its output is that of threads, and nothing else."""
    outputs = []
    for more in ([], ["--engine", "ray"]):
        environment = os.environ | {"RAY_ADDRESS": ADDRESS}
        program = [sys.executable, "-m", "difflens", "diff", *paths(), "-o", "full-json", *more]
        done = subprocess.run(program, env=environment, capture_output=True, check=False)
        outputs.append((done.returncode, done.stdout.decode(), done.stderr.decode()))
    (code, plain, _), (_, there, said) = outputs
    return {"code": code, "same": plain == there, "stderr": said}


def tells_where_it_failed():
    """Change a file after it was opened: the worker that sees it says so."""
    path = FOLDER / "changing.safetensors"
    path.write_bytes((FOLDER / "right.safetensors").read_bytes())
    diff = story.diff(paths()[0], str(path), engine="ray")
    with path.open("r+b") as stream:
        stream.seek(100_000)
        stream.write(b"other")
    return error_of(ADDRESS, diff.measure)


write_models()
cluster = start("--head", f"--node-ip-address={ADDRESS.split(':', maxsplit=1)[0]}", "--port=6390",
      "--num-cpus=4",
      "--include-dashboard=false", "--temp-dir", sys.argv[3])  # fmt: skip
try:
    told = {"addresses": addresses()}
    os.environ["RAY_ADDRESS"] = ADDRESS
    told["other difflens"] = other_difflens()
    for each in (too_much_memory, results, kills, tells_where_it_failed, command, cut_by_user):
        told[each.__name__] = each()
finally:
    ray.shutdown()
    cluster.terminate()
    cluster.wait(30)
sys.stdout.write(json.dumps(told) + "\n")
