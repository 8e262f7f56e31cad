"""A model of a million tensors fits into memory: what one tensor costs, counted on some thousands.

Bytes and objects are those that Python itself counts, so nothing here depends on the machine.
"""

import gc
import json
import struct
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from difflens.core.records import View
from difflens.diffs.story import diff, report
from difflens.render.diffs import renderer

COUNT = 8_192
NAMES = [f"layers.{at // 64}.experts.{at % 64}.down_proj.weight" for at in range(COUNT)]
OPENING = 600  # bytes for each tensor of a pair: names, headers, places and pairs
ROWS = 450  # of a report in which every tensor changed; 1,200 as plain rows
TEXT = 50  # of a text about the same


def model(path: Path, seed: int, share: float = 1.0) -> Path:
    """Write tensors of two random numbers each; a share of them is that of the seed."""
    numbers = np.random.default_rng(0).standard_normal((COUNT, 2)).astype("<f4")
    other = np.random.default_rng(seed).standard_normal((COUNT, 2)).astype("<f4")
    changed = np.arange(COUNT) % 100 < share * 100
    numbers[changed] = other[changed]
    header = {
        name: {"dtype": "F32", "shape": [2], "data_offsets": [8 * at, 8 * at + 8]}
        for at, name in enumerate(NAMES)
    }
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + numbers.tobytes())
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Write a model, one of which every tensor changed, and one of which few did."""
    folder = tmp_path_factory.mktemp("many")
    model(folder / "base.safetensors", 0)
    model(folder / "all.safetensors", 1)
    model(folder / "few.safetensors", 1, share=0.01)
    _ = report(diff(folder / "base.safetensors", folder / "few.safetensors", threads=1))
    return folder


@contextmanager
def cost() -> Iterator[dict[str, float]]:
    """Count what is held for each tensor when the block ends: bytes, and objects with cycles."""
    held: dict[str, float] = {}
    gc.collect()
    objects = len(gc.get_objects())
    tracemalloc.start()
    try:
        yield held
        gc.collect()
        held["bytes"] = tracemalloc.get_traced_memory()[0] / COUNT
        held["objects"] = (len(gc.get_objects()) - objects) / COUNT
    finally:
        tracemalloc.stop()


def test_an_open_pair_takes_little_for_each_tensor(folder):
    with cost() as held:
        opened = diff(folder / "base.safetensors", folder / "all.safetensors", threads=1)

    assert len(opened.pairs) == COUNT
    assert held["bytes"] < OPENING
    assert held["objects"] < 0.1  # the collector of cycles has nothing to walk


@pytest.mark.parametrize(("right", "most"), [("base", 30), ("few", 60), ("all", ROWS)])
def test_a_report_takes_little_for_each_tensor(folder, right, most):
    opened = diff(folder / "base.safetensors", folder / f"{right}.safetensors", threads=1)

    with cost() as held:
        made = report(opened)

    assert len(made.tensors) == COUNT
    assert held["bytes"] < most
    assert held["objects"] < 0.1


def test_text_takes_little_for_each_tensor_as_it_is_measured(folder):
    opened = diff(folder / "base.safetensors", folder / "all.safetensors", threads=1)

    with cost() as held:
        follower = renderer["cli"].options["follower"](View(), opened.pairs)
        made = report(opened, follow=follower.add)

    assert made.totals.changed == COUNT
    assert made.tensors == ()
    assert held["bytes"] < TEXT
    assert held["objects"] < 0.1


@pytest.mark.parametrize("right", ["base", "few", "all"])
def test_a_text_that_follows_the_rows_is_the_text_of_the_report(folder, right):
    opened = diff(folder / "base.safetensors", folder / f"{right}.safetensors", threads=1)
    entry = renderer["cli"]

    follower = entry.options["follower"](View(), opened.pairs)
    told = follower.text(report(opened, follow=follower.add))

    assert told == entry.plugin(report(opened), View())


@pytest.mark.parametrize("name", ["cli", "json", "full-json", "csv"])
def test_writing_a_report_takes_no_memory_for_each_tensor(folder, name):
    opened = diff(folder / "base.safetensors", folder / "all.safetensors", threads=1)
    made = report(opened)
    entry = renderer[name]
    pieces = entry.options.get("pieces", lambda *given: [entry.plugin(*given)])

    gc.collect()
    tracemalloc.start()
    try:
        written = sum(len(piece) for piece in pieces(made, View()))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert written > 0
    assert peak < 6_000_000  # a page of rows; 8,192 rows are 10 MB, their JSON as much again


@pytest.mark.parametrize("name", ["json", "full-json", "csv"])
def test_pieces_are_the_text(folder, name):
    opened = diff(folder / "base.safetensors", folder / "few.safetensors", threads=1)
    made = report(opened)
    entry = renderer[name]

    assert "".join(entry.options["pieces"](made, View())) == entry.plugin(made, View())
