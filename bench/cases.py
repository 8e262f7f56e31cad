"""The rows of the bench: one function each, what it compares with what, and the bar."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Literal, NamedTuple

from . import fingerprints, repositories
from .files import ROOT, WIDTH, Files, Pair
from .timing import Best, Command, best, run

MIB = 1 << 20
_BUFFERS = (MIB // 4, MIB, 4 * MIB)  # of the bare reader; the fastest one here is used
_IMPORTS = """
import sys
from difflens.cli import main
try:
    main(sys.argv[1:])
except SystemExit:
    pass
print("imported:", *sorted({"numpy", "scipy"} & set(sys.modules)))
"""

Unit = Literal["x", "of 1", "s", "s/GB", "MB", "GB/s", "modules", "requests", "files"]


class Row(NamedTuple):
    """One measured figure: the seconds of both, what is made of them, and the bar."""

    name: str
    what: str
    figure: float
    unit: Unit
    bar: float | None = None
    ours_seconds: float | None = None
    peer_seconds: float | None = None
    ours_runs: tuple[float, ...] = ()
    peer_runs: tuple[float, ...] = ()
    ours_cpu_seconds: float | None = None
    peer_cpu_seconds: float | None = None
    note: str = ""

    @property
    def met(self) -> bool | None:
        """Is the figure within the bar? None if there is no bar."""
        return None if self.bar is None else self.figure <= self.bar


class Missing(Exception):
    """A peer is not installed here."""


class Scale(NamedTuple):
    """How much is measured."""

    size_bytes: int = 1024 * MIB
    rounds: int = 7
    starts: int = 20
    sharded_tensors: int = 100_000
    sharded_bytes: int = 700_000_000_000
    many_tensors: int = 1_000_000
    full: bool = False
    narrow: int = 1  # by which the widths of decoders are divided
    snapshots: int = 100_000
    run_layers: int = 1_000
    run_steps: int = 100_000


QUICK = Scale(size_bytes=256 * MIB, rounds=3, many_tensors=100_000)
TINY = Scale(
    MIB, 1, 2, 1_000, 7_000_000_000, 1_000, narrow=16, snapshots=300, run_layers=20, run_steps=300
)


class Bench(NamedTuple):
    """What every case is given."""

    scale: Scale
    files: Files

    @property
    def output(self) -> Path:
        """Where the commands print to."""
        return self.files.folder / "output"

    def pair(self, dtype: str) -> Pair:
        """Return the pair of files of a dtype."""
        return self.files.make(dtype, self.scale.size_bytes)

    def race(self, ours: Command, peer: Command) -> tuple[Best, Best]:
        """Run two commands in turns."""
        both = best({"peer": peer, "ours": ours}, self.scale.rounds, self.output)
        return both["ours"], both["peer"]


def difflens(*arguments: str | Path, code: int = 0) -> Command:
    """Return the command as users start it."""
    script = Path(sys.executable).with_name("difflens")
    start = (str(script),) if script.exists() else (sys.executable, "-m", "difflens")
    return Command((*start, *map(str, arguments)), code)


def _python(*arguments: str | Path, most: int = 1000) -> Command:
    return Command((sys.executable, *map(str, arguments)), most=most)


def _cmp(left: Path, right: Path) -> Command:
    found = shutil.which("cmp")
    if found is None:
        raise Missing("cmp is not installed (Debian: diffutils)")
    return Command((found, str(left), str(right)))


def _ratio(name: str, what: str, bar: float | None, race: tuple[Best, Best], note: str = "") -> Row:
    ours, peer = race
    return Row(
        name,
        what,
        ours.seconds / peer.seconds,
        "x",
        bar,
        ours.seconds,
        peer.seconds,
        tuple(each.seconds for each in ours.runs),
        tuple(each.seconds for each in peer.runs),
        ours.cpu_seconds,
        peer.cpu_seconds,
        note,
    )


def _changed(dtype: str, bench: Bench) -> Iterator[Row]:
    """Every element changed, over `cmp` on two equal files of that size."""
    pair = bench.pair(dtype)
    peer = _cmp(pair.left, pair.equal)
    race = bench.race(difflens(pair.left, pair.right, code=1), peer)
    what = f"{dtype}, every element changed, over cmp of equal files"
    yield _ratio(f"{dtype.lower()}-changed", what, 1.0, race)


def _identical(dtype: str, bench: Bench) -> Iterator[Row]:
    """Two identical files, over `cmp`."""
    pair = bench.pair(dtype)
    race = bench.race(difflens(pair.left, pair.equal), _cmp(pair.left, pair.equal))
    yield _ratio(f"{dtype.lower()}-identical", f"{dtype}, identical files, over cmp", 0.8, race)


def _pread(dtype: str, bench: Bench) -> Iterator[Row]:
    """Every element changed, over reading both files with two threads and nothing else."""
    pair = bench.pair(dtype)
    script = ROOT / "bench" / "bare_pread.py"
    readers = {str(size): _python(script, pair.left, pair.right, str(size)) for size in _BUFFERS}
    tried = best(readers, min(2, bench.scale.rounds), bench.output)
    fastest = min(tried, key=lambda size: tried[size].seconds)
    race = bench.race(difflens(pair.left, pair.right, code=1), readers[fastest])
    note = f"buffers of {int(fastest) // 1024} KiB"
    what = f"{dtype}, every element changed, over a bare two-thread pread of both"
    yield _ratio(f"{dtype.lower()}-pread", what, 2.0, race, note)


def _numpy(dtype: str, bench: Bench) -> Iterator[Row]:
    """Every element changed, over a plain NumPy script that computes the same figures."""
    pair = bench.pair(dtype)
    times = 2 if dtype == "F32" else 1  # of half as wide elements there are twice as many
    peer = _python(ROOT / "bench" / "plain_numpy.py", pair.left, pair.right, most=times)
    race = bench.race(difflens(pair.left, pair.right, code=1), peer)
    what = f"{dtype}, every element changed, over plain NumPy"
    yield _ratio(f"{dtype.lower()}-numpy", what, 0.06, race)


def _throughput(name: str, what: str, bench: Bench) -> Iterator[Row]:
    """Bytes of both sides a second, start-up included."""
    pair = bench.pair(name)
    ours = best(
        {"ours": difflens(pair.left, pair.right, code=1)}, bench.scale.rounds, bench.output
    )["ours"]
    speed = pair.size_bytes / ours.seconds / 1e9
    runs = tuple(each.seconds for each in ours.runs)
    yield Row(f"{name.lower()}-speed", what, speed, "GB/s", None, ours.seconds, ours_runs=runs)


def _format(what: str, suffix: str, dtype: str, bar: float | None, bench: Bench) -> Iterator[Row]:
    """A pair in another format, over the safetensors pair that holds as many bytes."""
    pair = bench.files.make(what, bench.scale.size_bytes)
    ours = difflens(*(each.with_suffix(suffix) for each in (pair.left, pair.right)), code=1)
    race = bench.race(ours, difflens(pair.left, pair.right, code=1))
    note = f"{race[0].peak_bytes / 1e6:.0f} MB"
    said = f"{suffix} pair, {dtype}, over the safetensors pair of that size"
    yield _ratio(what.lower().replace("_", "-", 1), said, bar, race, note)


def _memory(bench: Bench) -> Iterator[Row]:
    """Peak resident memory of the timed pair."""
    pair = bench.pair("F32")
    ours = best({"ours": difflens(pair.left, pair.right, code=1)}, 3, bench.output)["ours"]
    what = f"peak memory, F32 pair of {_gib(bench.scale.size_bytes)} a side"
    yield Row("memory", what, ours.peak_bytes / 1e6, "MB", 200, ours.seconds)


def _memory_large(bench: Bench) -> Iterator[Row]:
    """Peak resident memory of a pair eight times as large, half of it in one tensor."""
    size = bench.scale.size_bytes * 8
    pair = bench.files.make("large_full" if bench.scale.full else "large", size)
    ours = run(difflens(pair.left, pair.right, code=1), bench.output)
    kind = "random" if bench.scale.full else "sparse"
    what = f"peak memory, {kind} pair of {_gib(size)} a side, one tensor of {_gib(size // 2)}"
    yield Row("memory-large", what, ours.peak_bytes / 1e6, "MB", 200, ours.seconds)


def _help(bench: Bench) -> Iterator[Row]:
    """`difflens --help`, over starting Python."""
    both = {"peer": _python("-c", "pass"), "ours": difflens("--help")}
    done = best(both, bench.scale.starts, bench.output)
    yield _ratio("help", "difflens --help, over python -c pass", 5.0, (done["ours"], done["peer"]))


def _imports(bench: Bench) -> Iterator[Row]:
    """Which of numpy and scipy are imported by --help, and by a diff as it is by default."""
    pair = bench.files.make("F32", TINY.size_bytes)
    for name, arguments in {
        "help-imports": ("--help",),
        "diff-imports": (str(pair.left), str(pair.right)),
    }.items():
        run(_python("-c", _IMPORTS, *arguments), bench.output)
        last = bench.output.read_text().splitlines()[-1]
        label, *found = last.split()
        if label != "imported:":
            raise RuntimeError(f"{name}: the last line is {last!r}")
        what = f"numpy or scipy imported by {'--help' if name[0] == 'h' else 'a default diff'}"
        yield Row(name, what, len(found), "modules", 0, note=" ".join(found))


def _shape_only(bench: Bench) -> Iterator[Row]:
    """`--shape-only` of two sharded models that no disk here could hold."""
    scale = bench.scale
    pair = bench.files.make("sharded", scale.sharded_tensors, scale.sharded_bytes)
    command = difflens(pair.left, pair.right, "--shape-only", code=1)
    ours = best({"ours": command}, min(5, scale.rounds), bench.output)["ours"]
    runs = tuple(each.seconds for each in ours.runs)
    size = scale.sharded_bytes / 1e9
    what = f"--shape-only, two sharded models of {scale.sharded_tensors:,} tensors, {size:.0f} GB"
    note = f"{ours.peak_bytes / 1e6:.0f} MB"
    yield Row("shape-only", what, ours.seconds, "s", 3.0, ours.seconds, ours_runs=runs, note=note)


def _many(bench: Bench) -> Iterator[Row]:
    """As many tensors as a file may have, of one byte each."""
    count = bench.scale.many_tensors
    pair = bench.files.make("many", count)
    ours = run(difflens(pair.left, pair.right, code=1), bench.output)
    what = f"pair of {count:,} tensors"
    yield Row("many", f"{what}, time", ours.seconds, "s", 40, ours.seconds)
    yield Row("many-memory", f"{what}, peak memory", ours.peak_bytes / 1e6, "MB", 1500)
    ours = run(difflens(pair.left, pair.right, "-o", "json", code=1), bench.output)
    megabytes = ours.peak_bytes / 1e6
    yield Row("many-json", f"{what}, -o json, peak memory", megabytes, "MB", None, ours.seconds)


def _spectra(bench: Bench) -> Iterator[Row]:
    """The spectral figures of 16 changed matrices, over modeldelta on the same files."""
    if find_spec("modeldelta") is None:
        raise Missing("modeldelta is not installed (pip install modeldelta==0.4.4)")
    pair = bench.files.make("squares", bench.scale.narrow)
    ours = _python(ROOT / "bench" / "spectral_figures.py", pair.left, pair.right)
    folders = pair.left.with_suffix(""), pair.right.with_suffix("")
    race = bench.race(ours, _python("-m", "modeldelta", *folders, most=3))
    what = "spectra of 8 + 8 changed BF16 matrices, 1024² and 4096 x 1024, over modeldelta"
    yield _ratio("spectra", what, 0.1, race)


def _analyses(kind: str, what: str, seconds: int, megabytes: int, bench: Bench) -> Iterator[Row]:
    """Every analysis of a fine-tuned decoder."""
    pair = bench.files.make(kind, bench.scale.narrow)
    ours = run(difflens(pair.left, pair.right, "--all-analyses", code=1), bench.output)
    said = f"--all-analyses, {what} pair, BF16"
    name = f"analyses-{kind}"
    yield Row(name, f"{said}, time", ours.seconds, "s", seconds, ours.seconds)
    yield Row(f"{name}-memory", f"{said}, memory", ours.peak_bytes / 1e6, "MB", megabytes)


def _summary(kind: str, what: str, bar: float | None, bench: Bench) -> Iterator[Row]:
    """A diff that says what kind of change it was, over the same diff without."""
    pair = bench.files.make(f"change_{kind}", bench.scale.narrow)
    plain = difflens(pair.left, pair.right, code=1)
    race = bench.race(difflens(pair.left, pair.right, "--change-summary", code=1), plain)
    said = f"--change-summary of a GPT-2 small pair, {what}, over the plain diff"
    yield _ratio(f"summary-{kind.replace('_', '-')}", said, bar, race)


def _store(bench: Bench) -> Iterator[Row]:
    """Commands on a store of many snapshots, start-up included."""
    count = bench.scale.snapshots
    bench.files.clear()
    path = bench.files.folder / "store.db"
    run(_python("-m", "bench.stored", path, str(count)), bench.output)
    last = (count - 1) // 100
    left, right = f"model-{last - 1:04}", f"model-{last:04}"
    commands = {
        "store-list": ("snapshot", "list"),
        "store-show": ("snapshot", "show", f"{left}@7"),
        "store-compare": ("compare", left, right),
        "store-version-diff": ("version-diff", f"{left}@98", f"{left}@99"),
        "store-report": ("report",),
    }
    for name, words in commands.items():
        ours = best({"ours": difflens(*words, "--store", path)},
                    min(3, bench.scale.rounds), bench.output)["ours"]  # fmt: skip
        what = f"difflens {' '.join(words[: 2 if words[0] == 'snapshot' else 1])}"
        runs = tuple(each.seconds for each in ours.runs)
        yield Row(name, f"{what}, of a store of {count:,} snapshots", ours.seconds, "s", 1.0,
                  ours.seconds, ours_runs=runs)  # fmt: skip


def _git(bench: Bench) -> Iterator[Row]:
    """`git diff` of two commits of a model, over the same comparison of two files."""
    pair = bench.pair("BF16")
    git = shutil.which("git")
    if git is None:
        raise Missing("git is not installed")
    peer = difflens(pair.left, pair.right, "--change-summary", code=1)
    for name, what, pointers, bar in (
        ("git-diff-lfs", "git diff, objects of Git LFS", True, 1.5),
        ("git-diff", "git diff, compressed by git", False, None),
    ):
        folder = repositories.make(pair.left.parent / name, pair, pointers=pointers)
        ours = Command((git, "-C", str(folder), "diff", "HEAD~1", "HEAD"))
        yield _ratio(name, f"{what}, over difflens on the two files", bar, bench.race(ours, peer))
        shutil.rmtree(folder)


def _gib(size: int) -> str:
    return f"{size >> 30} GiB" if size >= 1 << 30 else f"{size // MIB} MiB"


# In an order that makes every file once: a pair is removed when another one is made.
def _runs(bench: Bench) -> Iterator[Row]:
    """Yield the rows of a long run: recorded at 2,000 steps a second, then analysed and drawn."""
    layers, steps = bench.scale.run_layers, bench.scale.run_steps
    path, page = bench.files.folder / "run", bench.files.folder / "flow.html"
    what = f"a run of {layers:,} layers x {steps:,} steps"
    size = (str(layers), str(steps))
    ours = run(_python("-m", "bench.run_frames", "write", path, *size), bench.output)
    rate = f"{steps / ours.seconds:,.0f} steps/s"
    yield Row("run-record", f"{what}, recorded", ours.seconds, "s", steps / 2000, ours.seconds,
              note=rate)  # fmt: skip
    parts = [
        run(difflens("gradients", path, "-o", "json"), bench.output),
        run(difflens("flow", path, "-o", "html", "--out", page), bench.output),
    ]
    both = sum(part.seconds for part in parts)
    yield Row("run-analysed", f"{what}, read twice, analysed and drawn", both, "s", 60, both)
    most = max(part.peak_bytes for part in parts) / 1e6
    yield Row("run-memory", f"{what}, peak memory of that", most, "MB", 1000)


def _remote(name: str, bench: Bench) -> Iterator[Row]:
    """Yield the rows of a case in remote.py, which needs the records of this file."""
    from .remote import ROWS

    yield from ROWS[name](bench)


def _cluster(name: str, bench: Bench) -> Iterator[Row]:
    """Yield the rows of a case in cluster.py, which needs the records of this file."""
    from .cluster import ROWS

    yield from ROWS[name](bench)


CASES: dict[str, Callable[[Bench], Iterator[Row]]] = {
    "help": _help,
    "imports": _imports,
    "f32-changed": partial(_changed, "F32"),
    "f32-identical": partial(_identical, "F32"),
    "f32-pread": partial(_pread, "F32"),
    "f32-numpy": partial(_numpy, "F32"),
    "memory": _memory,
    "bf16-changed": partial(_changed, "BF16"),
    "bf16-identical": partial(_identical, "BF16"),
    "bf16-pread": partial(_pread, "BF16"),
    "bf16-numpy": partial(_numpy, "BF16"),
    "git-diff": _git,
    "memory-large": _memory_large,
    "shape-only": _shape_only,
    "many": _many,
    **{
        f"{dtype.lower()}-speed": partial(_throughput, dtype, f"{dtype}, every element changed")
        for dtype in WIDTH
        if dtype not in ("F32", "BF16")
    },
    "pytorch-f32": partial(_format, "pytorch_F32", ".pt", "F32", 1.2),
    "pytorch-bf16": partial(_format, "pytorch_BF16", ".pt", "BF16", 1.2),
    "gguf-f16": partial(_format, "gguf_F16", ".gguf", "F16", 1.2),
    "gguf-q4_k": partial(_format, "gguf_Q4_K", ".gguf", "Q4_K decoded to F32", None),
    "spectra": _spectra,
    **{
        f"summary-{kind.replace('_', '-')}": partial(_summary, kind, what, bar)
        for kind, what, bar in (
            ("cast", "cast from F32 to BF16", 2.0),
            ("rounded", "F32 rounded to BF16 and stored in F32", 2.0),
            ("scaled", "F32, scaled", 2.0),
            ("pruned", "F32, half of it pruned", 2.0),
            ("one", "F32, one tensor changed", 2.0),
            ("biases", "F32, biases changed", 2.0),
            ("tuned", "F32, fine-tuned", 2.0),
            ("noise", "F32, noise added", None),
            ("lora", "F32, a LoRA merged", None),
            ("pruned_bf16", "BF16, half of it pruned", None),
            ("tuned_bf16", "BF16, fine-tuned", None),
        )
    },
    "analyses-gpt2": partial(_analyses, "gpt2", "GPT-2 small", 60, 1500),
    "analyses-llama": partial(_analyses, "llama", "1.2 B parameters", 600, 2000),
    "store": _store,
    "fingerprints": fingerprints.rows,
    "fingerprint-find": fingerprints.search,
    "runs": _runs,
    **{
        name: partial(_remote, name)
        for name in (
            *("remote-raw", "remote-link", "remote-cpu", "remote-latency"),
            *("remote-memory", "remote-tls", "remote-bytes", "remote-shapes"),
        )
    },
    "ray-speed": partial(_cluster, "ray-speed"),
    "ray-memory": partial(_cluster, "ray-memory"),
    "mixed-speed": partial(_throughput, "mixed", "F32 against its cast to BF16"),
}
