"""Rows about fingerprints: made, compared, searched among thousands, and how wrong estimates are.

`bench.fingerprints PATH COUNT QUERY` fills a store with fingerprints of models of 1,000 tensors.
"""

from __future__ import annotations

import json
import struct
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from difflens.core.records import Stats, TensorInfo
from difflens.diffs.fingerprints.file import write_fingerprint
from difflens.diffs.fingerprints.records import Fingerprint, TensorFingerprint, model_info
from difflens.diffs.fingerprints.summary import Summary, summarise
from difflens.measure.sketch import BUCKETS
from difflens.measure.sketch.estimate import add_elements, finish
from difflens.versions.records.snapshots import ModelSnapshot
from difflens.versions.store import open_store
from difflens.versions.store.tables import snapshot_row, tables

from .timing import Command, best, run

if TYPE_CHECKING:
    from .cases import Bench, Row

TENSORS = 1_000
_SHAPE = (1024, 64)


def model(path: Path, seed: int, by: float) -> None:
    """Write a model of 1,000 matrices, each moved a little from the one of seed 0."""
    random, moves = np.random.default_rng(0), np.random.default_rng(seed)
    size = 4 * _SHAPE[0] * _SHAPE[1]
    header = {
        f"layers.{i // 10}.w{i % 10}": {"dtype": "F32", "shape": _SHAPE,
                                        "data_offsets": [i * size, (i + 1) * size]}
        for i in range(TENSORS)
    }  # fmt: skip
    text = json.dumps(header).encode()
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for _ in range(TENSORS):
            values = random.standard_normal(_SHAPE, np.float32)
            moved = values + np.float32(by) * moves.standard_normal(_SHAPE, np.float32)
            file.write(moved.tobytes())


def rows(bench: Bench) -> Iterator[Row]:
    """Yield the rows of making and comparing."""
    from .cases import Row, difflens

    bench.files.clear()
    folder = bench.files.folder
    left, right = folder / "left.safetensors", folder / "right.safetensors"
    for path, by in ((left, 0.0), (right, 1e-3)):
        model(path, 1, by)
    rounds = min(5, bench.scale.rounds)
    prints = left.with_suffix(".fingerprint"), right.with_suffix(".fingerprint")
    for path, out in zip((left, right), prints, strict=True):
        run(difflens("fingerprint", path, "-o", out), bench.output)
    command = difflens("fingerprint", left, "--threads", "1")
    ours = best({"ours": command}, rounds, bench.output)["ours"]
    speed = left.stat().st_size / ours.cpu_seconds / 1e9
    yield Row("fingerprint-made", "fingerprint of a model in the cache, one core, start included",
              speed, "GB/s", None, ours.seconds, ours_cpu_seconds=ours.cpu_seconds)  # fmt: skip
    compared = best({"ours": difflens(*prints, code=1)}, rounds, bench.output)["ours"]
    runs = tuple(each.seconds for each in compared.runs)
    yield Row("fingerprint-diff", f"difflens A.fingerprint B.fingerprint, {TENSORS:,} tensors",
              compared.seconds, "s", 0.5, compared.seconds, ours_runs=runs)  # fmt: skip
    yield Row("sketch-error", "error of estimated distances, rms over dense, columns, low rank",
              _error(), "of 1", 0.03)  # fmt: skip


def _error() -> float:
    """Return the rms of the relative error over moves of many shapes."""
    random = np.random.default_rng(0)
    errors = []
    for trial in range(300):
        move = np.zeros((256, 2048), np.float32)
        if trial % 3 == 0:
            move += random.standard_normal(move.shape, np.float32)
        elif trial % 3 == 1:
            move[:, random.integers(2048)] = 1
        else:
            move += np.outer(random.standard_normal(256), random.standard_normal(2048))
        sums = bytearray(8 * BUCKETS)
        add_elements(memoryview(move.tobytes()), "F32", trial * 1_000_003 * BUCKETS, sums)
        known = np.linalg.norm(np.frombuffer(sums, np.float64))
        errors.append(known / np.linalg.norm(move.astype(np.float64)) - 1)
    return float(np.sqrt(np.mean(np.square(errors))))


def search(bench: Bench) -> Iterator[Row]:
    """Yield the row of a search among recorded models."""
    from .cases import Row, difflens

    bench.files.clear()
    path, count = bench.files.folder / "store.db", min(5_000, bench.scale.snapshots)
    query = bench.files.folder / "query.fingerprint"
    run(_python(path, count, query), bench.output)
    command = difflens("find", query, "--store", path)
    ours = best({"ours": command}, min(3, bench.scale.rounds), bench.output)["ours"]
    runs = tuple(each.seconds for each in ours.runs)
    what = f"difflens find among {count:,} recorded models of {TENSORS:,} tensors"
    yield Row("fingerprint-find", what, ours.seconds, "s", 1.0, ours.seconds, ours_runs=runs)


def _python(*arguments: object) -> Command:
    return Command((sys.executable, "-m", "bench.fingerprints", *map(str, arguments)))


def _drawn(random: np.random.Generator, base: Fingerprint | None) -> Fingerprint:
    """Draw the fingerprint of a model, or of one that is a step from another one."""
    tensors = {}
    for i in range(TENSORS):
        name = f"layers.{i // 10}.w{i % 10}.weight"
        sums = random.standard_normal(BUCKETS) * 8
        if base:
            known = base.tensors[name].sketch
            numbers = np.frombuffer(known.numbers, "<i4") if known else np.zeros(BUCKETS)
            sums = np.ldexp(numbers.astype(float), known.exponent if known else 0) + 1e-3 * sums
        info = TensorInfo(name, "F32", _SHAPE)
        stats = Stats(mean=0.0, std=1.0, min=-4.0, max=4.0)
        root = random.bytes(32).hex()
        tensors[name] = TensorFingerprint(info, root, stats, finish(sums, BUCKETS))
    infos = {name: each.info for name, each in tensors.items()}
    return Fingerprint(model_info("drawn", "safetensors", infos, (0, 0)), tensors, metadata={})


def fill(path: str, count: int, query: str) -> None:
    """Record so many models: five relatives of the query with all they have, strangers in brief."""
    random = np.random.default_rng(0)
    asked = _drawn(random, None)
    write_fingerprint(asked, query)
    known = [_drawn(random, asked) for _ in range(5)]
    with open_store(path) as store:
        for at, each in enumerate(known):
            store.put(ModelSnapshot(name=f"near-{at}", version="1"), fingerprint=each)
        with store._writing() as connection:  # noqa: SLF001
            brief = summarise(asked)
            for at in range(len(known), count):
                record = snapshot_row(ModelSnapshot(name=f"model-{at}", version="1"))
                done = connection.execute(tables().snapshots.insert().values(record))
                position = done.inserted_primary_key[0] if done.inserted_primary_key else 0
                body = _stranger(random, brief).to_bytes()
                values = {"position": position, "body": body}
                connection.execute(tables().summaries.insert().values(values))


def _stranger(random: np.random.Generator, brief: Summary) -> Summary:
    """Draw the summary of a model that has nothing to do with another one."""
    sketch = finish(random.standard_normal(BUCKETS) * brief.norm / 32, BUCKETS) or brief.sketch
    return brief._replace(sketch=sketch, roots=random.bytes(len(brief.roots)))


if __name__ == "__main__":
    fill(sys.argv[1], int(sys.argv[2]), sys.argv[3])
