"""The rows of remote models: a server on loopback, a simulated link, and a raw download beside us.

The server is a process of its own (tests/storage/servers/files.py) and shares the processors with
the client: seconds say what both take, and both commands of a ratio pay the server alike.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from . import raw_download, raw_reading
from .cases import MIB, Bench, Missing, Row, difflens
from .files import ROOT, Pair
from .timing import Best, Command, Unexpected, best, run

if TYPE_CHECKING:
    from storage.servers.process import Server

_RATE, _LATENCY = 80e6, 0.05  # bytes per second and connection; seconds before the first byte
_ROUNDS = 5
_SHARDS, _SHARDED_BYTES, _SHARDED_TENSORS = 163, 670_000_000_000, 92_000


def _serve(folder: Path, *, rate: float = 0, latency: float = 0, tls: Path | None = None) -> Server:
    """Start a server of a folder; the tests have it."""
    if str(ROOT / "tests") not in sys.path:
        sys.path.append(str(ROOT / "tests"))
    from storage.servers.files import Link, serve_files

    return serve_files(folder, Link(latency, rate), certificate=tls)


@cache
def _require_storage() -> None:
    """Raise where this difflens opens no addresses."""
    text = subprocess.run(difflens("diff", "--help").argv, capture_output=True, check=False).stdout
    if b"--allow-http" not in text:
        raise Missing("this difflens opens no http addresses")


def _urls(server: Server, pair: Pair, below: str = "") -> list[str]:
    return [f"{server.url}/{side.name}{below}" for side in (pair.left, pair.right)]


def _diff(server: Server, pair: Pair, *options: str, code: int = 1, below: str = "") -> Command:
    _require_storage()
    return difflens(*_urls(server, pair, below), "--allow-http", *options, code=code)


def _raw(server: Server, pair: Pair) -> Command:
    return Command((sys.executable, str(Path(raw_download.__file__)), *_urls(server, pair)))


def _read(server: Server, pair: Pair) -> Command:
    words = ("env", "DIFFLENS_ALLOW_HTTP=1", sys.executable, str(Path(raw_reading.__file__)))
    return Command((*words, *_urls(server, pair)))


def _trusting(authority: Path, command: Command) -> Command:
    return command._replace(argv=("env", f"SSL_CERT_FILE={authority}", *command.argv))


def _race(bench: Bench, ours: Command, peer: Command) -> tuple[Best, Best]:
    both = best({"peer": peer, "ours": ours}, min(_ROUNDS, bench.scale.rounds), bench.output)
    return both["ours"], both["peer"]


def _against_reading(bench: Bench, server: Server, pair: Pair, name: str, bar: float) -> Row:
    """Build the row of a diff over the same client that looks at nothing, beside another client."""
    commands = {
        "peer": _read(server, pair), "plain": _raw(server, pair), "ours": _diff(server, pair)
    }  # fmt: skip
    runs = best(commands, min(_ROUNDS, bench.scale.rounds), bench.output)
    held = "80 MB/s a connection and 50 ms" if name == "remote-link" else "nothing held back"
    row = _ratio(name, f"diff over HTTP, {held}, over its client alone", bar,
                 (runs["ours"], runs["peer"]))  # fmt: skip
    plain = _seconds(runs["plain"]) / _seconds(runs["ours"])
    return row._replace(note=f"{row.note}, {plain:.2f} of http.client's")


def _seconds(runs: Best) -> float:
    return median(each.seconds for each in runs.runs)


def _ratio(name: str, what: str, bar: float, race: tuple[Best, Best]) -> Row:
    """Build the row of two medians; the note says the same as a ratio of speeds."""
    ours, peer = race
    return Row(
        name, what, _seconds(ours) / _seconds(peer), "x", bar, _seconds(ours), _seconds(peer),
        tuple(each.seconds for each in ours.runs), tuple(each.seconds for each in peer.runs),
        ours.cpu_seconds, peer.cpu_seconds,
        f"{_seconds(peer) / _seconds(ours):.2f} of its speed",
    )  # fmt: skip


def _allowed(size: int, parts: int) -> float:
    """Return the seconds in which the link lets so many bytes through."""
    each = -(-parts // raw_download.CONNECTIONS)  # parts one connection fetches, one by one
    return each * (_LATENCY + size / parts / _RATE)


def _link(bench: Bench) -> Iterator[Row]:
    """As fast as the link? Both have 80 MB/s a connection and wait 50 ms for each answer."""
    pair = bench.pair("F32")
    with _serve(pair.left.parent, rate=_RATE, latency=_LATENCY) as server:
        yield _against_reading(bench, server, pair, "remote-link", 1 / 0.95)


def _raw_link(bench: Bench) -> Iterator[Row]:
    """Is the link what it says? The raw download, beside what the link allows."""
    pair = bench.pair("F32")
    with _serve(pair.left.parent, rate=_RATE, latency=_LATENCY) as server:
        rounds = min(_ROUNDS, bench.scale.rounds)
        runs = best({"raw": _raw(server, pair)}, rounds, bench.output)["raw"]
    parts = sum(-(-side.stat().st_size // raw_download.PART) for side in (pair.left, pair.right))
    allowed = pair.size_bytes / _allowed(pair.size_bytes, parts) / 1e9
    what = f"raw download, {raw_download.CONNECTIONS} connections of 80 MB/s and 50 ms"
    speed = pair.size_bytes / _seconds(runs) / 1e9
    note = f"the link allows {allowed:.2f} GB/s"
    yield Row("remote-raw", what, speed, "GB/s", None, None, _seconds(runs), note=note)


def _cpu(bench: Bench) -> Iterator[Row]:
    """As fast as the processors? Nothing holds either back."""
    pair = bench.pair("F32")
    with _serve(pair.left.parent) as server:
        yield _against_reading(bench, server, pair, "remote-cpu", 1 / 0.75)


def _latency(bench: Bench) -> Iterator[Row]:
    """Is latency hidden? The same diff, with 50 ms before each answer and without."""
    pair = bench.pair("F32")
    with _serve(pair.left.parent, latency=_LATENCY) as far, _serve(pair.left.parent) as near:
        race = _race(bench, _diff(far, pair), _diff(near, pair))
        yield _ratio("remote-latency", "diff over HTTP, 50 ms over none", 1.1, race)


def _fetched(bench: Bench, pair: Pair, *options: str) -> tuple[float, str]:
    """Return the bytes that one diff fetched, divided by those of both files."""
    with _serve(pair.left.parent) as server:
        ours = run(_diff(server, pair, *options), bench.output)
        counts = server.ask("counts")
    note = f"{counts['requests']} requests, {ours.seconds:.2f} s"
    return counts["bytes"] / pair.size_bytes, note


def _bytes(bench: Bench) -> Iterator[Row]:
    """Is anything read twice? An embedding with one changed row, and all analyses of GPT-2."""
    size = min(bench.scale.size_bytes, 128 * MIB)
    fetched, note = _fetched(bench, bench.files.make("row", size))
    what = "bytes fetched over bytes of both files, one changed row of an embedding"
    yield Row("remote-bytes", what, fetched, "of 1", 1.02, note=note)
    pair = bench.files.make("gpt2", bench.scale.narrow)
    fetched, note = _fetched(bench, pair, "--all-analyses")
    what = "bytes fetched over bytes of both files, --all-analyses, GPT-2 small"
    yield Row("remote-bytes-analyses", what, fetched, "of 1", 1.5, note=note)


def _memory(bench: Bench) -> Iterator[Row]:
    """Are the models in memory, or on the disk? One run may not write a byte to any file."""
    pair = bench.pair("F32")
    with _serve(pair.left.parent) as server:
        command = _diff(server, pair)
        ours = best({"ours": command}, min(3, bench.scale.rounds), bench.output)["ours"]
        what = f"diff over HTTP, {bench.scale.size_bytes // MIB} MiB a side"
        yield Row("remote-memory", f"{what}, peak memory", ours.peak_bytes / 1e6, "MB", 250)
        # The limit is on files: a pipe and /dev/null may be written to.
        limited = ("sh", "-c", 'ulimit -f 0; exec "$@" >/dev/null', "sh")
        written, note = 0, ""
        try:
            run(command._replace(argv=(*limited, *command.argv)), bench.output)
        except Unexpected as error:
            written, note = 1, str(error)[-80:]
        yield Row("remote-memory-files", f"{what}, files written", written, "files", 0, note=note)


def _shapes(bench: Bench) -> Iterator[Row]:
    """How much is asked for to compare the headers of two large models?"""
    scale = bench.scale
    tensors = min(_SHARDED_TENSORS, scale.sharded_tensors)
    size = _SHARDED_BYTES * scale.sharded_bytes // type(scale)().sharded_bytes
    pair = bench.files.make("sharded", tensors, size, _SHARDS)
    index = "/model.safetensors.index.json"
    with _serve(pair.left.parent, latency=_LATENCY) as server:
        command = _diff(server, pair, "--shape-only", below=index)
        server.ask("reset")
        first = run(command, bench.output)
        counts = server.ask("counts")
        runs = best({"ours": command}, min(_ROUNDS, scale.rounds), bench.output)["ours"]
    what = f"--shape-only over HTTP, 2 x {size / 1e9:.0f} GB in {_SHARDS} shards, 50 ms"
    requests, megabytes = counts["requests"], counts["bytes"] / 1e6
    cpu = median(each.cpu_seconds for each in runs.runs)
    note = f"{_seconds(runs):.2f} s, {first.peak_bytes / 1e6:.0f} MB of memory"
    yield Row("remote-shapes", f"{what}, requests", requests, "requests", 340)
    yield Row("remote-shapes-bytes", f"{what}, fetched", megabytes, "MB", 64)
    yield Row("remote-shapes-cpu", f"{what}, processor time", cpu, "s", 2, note=note)


def _tls(bench: Bench) -> Iterator[Row]:
    """What does TLS take of the client? Less what the same diff of local files takes."""
    pair = bench.pair("F32")
    if shutil.which("env") is None:
        raise Missing("env is not installed")
    home = bench.files.folder / "certificates"
    home.mkdir(exist_ok=True)
    # In a process of its own: the bench itself must stay small (see files.py).
    words = (sys.executable, "-m", "storage.servers.certificates", str(home))
    subprocess.run(words, cwd=ROOT / "tests", check=True)
    authority, certificate = home / "authority.pem", home / "server.pem"
    with ExitStack() as stack:
        secure = stack.enter_context(_serve(pair.left.parent, tls=certificate))
        clear = stack.enter_context(_serve(pair.left.parent))
        commands = {
            "tls": _trusting(authority, _diff(secure, pair)),
            "raw": _trusting(authority, _raw(secure, pair)),
            "clear": _diff(clear, pair),
            "local": difflens(pair.left, pair.right, code=1),
        }
        runs = best(commands, min(_ROUNDS, bench.scale.rounds), bench.output)
    cpu = {
        name: median(each.cpu_seconds for each in each.runs) * 1e9 / pair.size_bytes
        for name, each in runs.items()
    }
    note = f"without TLS {cpu['clear'] - cpu['local']:.2f}, raw download {cpu['raw']:.2f}"
    what = "diff over HTTPS, processor time above that of local files"
    yield Row("remote-tls", what, cpu["tls"] - cpu["local"], "s/GB", 1.0, note=note)


ROWS: dict[str, Callable[[Bench], Iterator[Row]]] = {
    "remote-raw": _raw_link,
    "remote-link": _link,
    "remote-cpu": _cpu,
    "remote-latency": _latency,
    "remote-memory": _memory,
    "remote-tls": _tls,
    "remote-bytes": _bytes,
    "remote-shapes": _shapes,
}
