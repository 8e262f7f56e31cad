"""`make bench`: measures what difflens promises, prints a table, writes JSON."""

from __future__ import annotations

import argparse
import hashlib
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from fnmatch import fnmatch
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from . import table
from .cases import CASES, QUICK, TINY, Bench, Missing, Row, Scale, difflens
from .files import ROOT, Files
from .timing import Unexpected

_HOME = ROOT / ".bench"


def main() -> int:
    """Measure what was asked for; 0 if it ran, 1 where --strict and a bar was missed."""
    options = _options()
    chosen = [name for name in CASES if any(fnmatch(name, each) for each in options.only)]
    if not chosen:
        _say(f"no case is named {', '.join(options.only)}; there are: {', '.join(CASES)}")
        return 2
    signal.signal(signal.SIGTERM, _stop)
    scale = _scale(options)
    about = _about(scale)
    _introduce(about)
    rows: list[Row] = []
    try:
        with _folder(keep=options.keep) as folder:
            _check_room(folder, scale)
            rows.extend(_measured(chosen, Bench(scale, Files(folder, keep=options.keep)), about))
    except KeyboardInterrupt:
        _say("interrupted; the files are removed" if not options.keep else "interrupted")
        return 130
    except Unexpected as error:
        _say(str(error))
        return 2
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(table.as_json(rows, about))
    print(table.markdown(rows, about) if options.markdown else table.text(rows))
    missed = [row.name for row in rows if row.met is False]
    if missed:
        print(f"\nMISSED: {', '.join(missed)}")
    return 1 if missed and options.strict else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    add = parser.add_argument
    add("--quick", action="store_true", help="files of 256 MiB, 3 rounds, 100,000 tensors")
    add("--tiny", action="store_true", help="files of 1 MiB: does the bench work at all?")
    add("--full", action="store_true", help="the 8 GiB pair holds data, it is not sparse")
    add("--only", action="append", metavar="NAME", help=f"of {', '.join(CASES)}; f32-* also works")
    add("--repeat", type=int, metavar="N", help="rounds; default: 7")
    add("--keep", action="store_true", help="keep the files")
    add("--json", type=Path, metavar="FILE", default=_HOME / "results.json", help="results go here")
    add("--markdown", action="store_true", help="print the table of docs/benchmarks.md")
    add("--strict", action="store_true", help="exit 1 where a bar is missed")
    options = parser.parse_args()
    options.only = options.only or ["*"]
    if options.repeat is not None and options.repeat < 1:
        parser.error("--repeat takes a number from 1 on")
    return options


def _scale(options: argparse.Namespace) -> Scale:
    scale = TINY if options.tiny else QUICK if options.quick else Scale()
    rounds = options.repeat or scale.rounds
    return scale._replace(rounds=rounds, full=options.full)


def _measured(chosen: list[str], bench: Bench, about: dict[str, Any]) -> Iterator[Row]:
    for number, name in enumerate(chosen, 1):
        _say(f"{number}/{len(chosen)} {name}")
        try:
            yield from CASES[name](bench)
            _check_code(about)
        except Missing as missing:
            about["missing"].append(f"{name}: {missing}")
            _say(f"{name} left out: {missing}")


def _about(scale: Scale) -> dict[str, Any]:
    said = subprocess.run(difflens("--version").argv, capture_output=True, text=True, check=True)
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "cpu": _cpu(),
        "cores": len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count(),
        "system": platform.platform(),
        "python": platform.python_version(),
        "kernel": said.stdout.strip(),
        "code": _code(),
        "load": os.getloadavg()[0],
        "scale": scale._asdict(),
        "missing": [],
    }


def _code() -> str:
    """Sum up the code that is measured, the compiled kernel too."""
    told = subprocess.run(
        [sys.executable, "-c", "import difflens; print(difflens.__file__)"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    room = Path(told.stdout.strip()).parent
    digest = hashlib.sha256(str(room).encode())
    for path in sorted(room.rglob("*")):
        if path.suffix in {".py", ".so", ".jinja"} and path.is_file():
            digest.update(path.relative_to(room).as_posix().encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def _check_code(about: dict[str, Any]) -> None:
    """Stop where the code is not what it was: one table cannot speak of two versions."""
    if _code() != about["code"]:
        raise Unexpected("the code of difflens changed during the run: measure again")


def _introduce(about: dict[str, Any]) -> None:
    _say(f"{about['date']}  {about['cpu']}, {about['cores']} cores  {about['system']}")
    _say(f"{about['kernel']}, code {about['code']}  Python {about['python']}  {about['scale']}")
    if about["scale"]["size_bytes"] < Scale().size_bytes:
        _say("the bars are meant for files of 1 GiB: in smaller ones, start-up weighs more")
    if about["load"] > 0.5:
        _say(f"the machine is busy (load {about['load']:.1f}): times will be too long")


def _cpu() -> str:
    if sys.platform == "darwin":
        words = ["sysctl", "-n", "machdep.cpu.brand_string"]
        return subprocess.run(words, capture_output=True, text=True, check=False).stdout.strip()
    lines = Path("/proc/cpuinfo").read_text(errors="replace").splitlines()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())


@contextmanager
def _folder(*, keep: bool) -> Iterator[Path]:
    """Yield a new folder, gone afterwards whatever happens."""
    _HOME.mkdir(exist_ok=True)
    _sweep()
    if keep:
        folder = Path(tempfile.mkdtemp(prefix="kept-", dir=_HOME))
        _say(f"the files stay in {folder}")
        yield folder
    else:
        with tempfile.TemporaryDirectory(prefix=f"run-{os.getpid()}-", dir=_HOME) as name:
            yield Path(name)


def _sweep() -> None:
    """Remove what a run that was killed left behind."""
    for folder in _HOME.glob("run-*"):
        try:
            os.kill(int(folder.name.split("-")[1]), 0)
        except ProcessLookupError:
            shutil.rmtree(folder, ignore_errors=True)
        except PermissionError:
            pass  # somebody else's, still running


def _check_room(folder: Path, scale: Scale) -> None:
    needed = 4 * scale.size_bytes + (16 * scale.size_bytes if scale.full else 0)
    needed += 30 * scale.run_layers * scale.run_steps
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise Unexpected(f"{folder}: {free} bytes are free, {needed} are needed")


def _stop(_number: int, _frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
