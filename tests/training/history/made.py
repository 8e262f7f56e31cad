"""Runs for tests: frames of any bits, written, read back and compared bit for bit."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

from difflens.training.history import open_run
from difflens.training.history.exports import export_run
from difflens.training.history.frame import MISSING, MISSING_SCALAR, Frame, is_missing
from difflens.training.history.reader import RunReader
from difflens.training.history.writer import RunWriter, file_of
from difflens.training.records.runs import Layer, RunInfo

_ODD32 = [0.0, -0.0, 1.0, np.nan, np.inf, -np.inf, 1e-45, 3.4e38, MISSING]
_ODD64 = [0.0, -0.0, np.nan, np.inf, -np.inf, 5e-324, 1.7e308, MISSING_SCALAR]
names = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
steps = st.integers(-(2**63), 2**63 - 1)
times = st.floats(allow_nan=False)


class Plan(NamedTuple):
    """How a run is laid out, and its frames."""

    info: RunInfo
    frames: list[Frame]


def info_of(layers: int = 3, scalars: int = 2, fields: int = 2, **more: Any) -> RunInfo:
    return RunInfo(
        layers=tuple(Layer(f"layer.{i}", (2, i + 1)) for i in range(layers)),
        fields=tuple(f"field{i}" for i in range(fields)),
        scalars=tuple(f"scalar{i}" for i in range(scalars)),
        **more,
    )


@st.composite
def infos(draw: st.DrawFn) -> RunInfo:
    unique = st.lists(names, max_size=4, unique=True)
    return RunInfo(
        layers=tuple(Layer(name) for name in draw(unique)),
        fields=tuple(draw(unique)),
        scalars=tuple(draw(unique)),
    )


def numbers(count: int, width: int) -> st.SearchStrategy[Any]:
    """Return arrays in which any bits may stand, the odd ones often."""
    odd = _ODD32 if width == 32 else _ODD64
    any_bits = st.integers(0, 2**width - 1)
    kinds = {32: (np.uint32, np.float32), 64: (np.uint64, np.float64)}[width]
    known = [int(np.array(each, kinds[1]).view(kinds[0])) for each in odd]
    one = st.sampled_from(known) | any_bits
    return st.lists(one, min_size=count, max_size=count).map(
        lambda bits: np.array(bits, kinds[0]).view(kinds[1])
    )


@st.composite
def frames_of(draw: st.DrawFn, info: RunInfo, sequence: int) -> Frame:
    fields, layers = len(info.fields), len(info.layers)
    return Frame(
        sequence,
        draw(steps),
        draw(times),
        draw(times),
        draw(numbers(len(info.scalars), 64)),
        draw(numbers(fields * layers, 32)).reshape(fields, layers),
    )


@st.composite
def plans(draw: st.DrawFn, most: int = 5) -> Plan:
    info = draw(infos())
    count = draw(st.integers(0, most))
    return Plan(info, [draw(frames_of(info, i)) for i in range(count)])


def random_frames(info: RunInfo, count: int, seed: int = 0) -> list[Frame]:
    """Return frames of plain numbers, fast."""
    draw = np.random.default_rng(seed)
    shape = (len(info.fields), len(info.layers))
    return [
        Frame(i, 10 * i, 1e9 + i, float(i), draw.random(len(info.scalars)),
              draw.random(shape, np.float32))
        for i in range(count)
    ]  # fmt: skip


def append(writer: RunWriter, frame: Frame) -> int:
    return writer.append(
        frame.step,
        frame.scalars,
        frame.layers,
        wall_time=frame.wall_time,
        monotonic_time=frame.monotonic_time,
    )


def written(folder: Path, info: RunInfo, frames: list[Frame], **how: Any) -> Path:
    """Write a run and give its file."""
    with RunWriter(folder, info, **how) as writer:
        for frame in frames:
            append(writer, frame)
    return file_of(folder, info.rank)


def bits(frame: Frame) -> tuple[Any, ...]:
    """Return all of a frame as something that compares by bits."""
    return (
        *frame[:4],
        np.ascontiguousarray(frame.scalars).tobytes(),
        np.ascontiguousarray(frame.layers).tobytes(),
    )


def read(path: Path) -> list[tuple[Any, ...]]:
    with RunReader(path) as reader:
        return [bits(frame) for frame in reader.frames()]


def exported(folder: Path, info: RunInfo, frames: list[Frame], to: str, name: str) -> Path:
    """Write a run and export it."""
    written(folder / "run", info, frames)
    source = open_run(folder / "run")
    assert export_run(source, to, folder / name) == len(frames)
    source.close()
    return folder / name


def same_numbers(left: Any, right: Any) -> bool:
    """Are the arrays equal by bits, but for which NaN it is?"""
    left, right = np.asarray(left), np.asarray(right)
    plain = ~np.isnan(left)
    return (
        left.shape == right.shape
        and np.array_equal(is_missing(left), is_missing(right))
        and np.array_equal(np.isnan(left), np.isnan(right))
        and left[plain].tobytes() == right[plain].tobytes()
    )


def same_frames(left: list[Frame], right: list[Frame]) -> bool:
    """Do they hold the same, but for which NaN it is?"""
    return all(
        a[:4] == b[:4]
        and same_numbers(a.scalars, b.scalars)
        and same_numbers(a.layers.reshape(-1), b.layers.reshape(-1))
        for a, b in zip(left, right, strict=True)
    )
