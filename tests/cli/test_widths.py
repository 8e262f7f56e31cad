"""Tables keep to the terminal's width; what goes to a pipe or a file is whole."""

from pathlib import Path

import numpy as np
import pytest
from cli.terminal import shown
from models.small import arrays, write

from difflens.core.terminal import display_width
from difflens.training.history.writer import RunWriter
from difflens.training.records.runs import Layer, RunInfo

DEEP = "model.language_model.encoder.layers"
NAMES = [f"{DEEP}.{i}.self_attention.query_key_value.重み" for i in range(12)]


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Write a run that ended and one that did not, with long names and wide letters."""
    draw = np.random.default_rng(0)
    info = RunInfo(layers=tuple(Layer(name, (4, 4)) for name in NAMES))
    for place in ("a-very-long-name-of-an-experiment-of-last-week-第二回", "stopped"):
        writer = RunWriter(tmp_path / "runs" / place, info, announce=place != "stopped")
        for step in range(60):
            block = np.exp(draw.normal(-9, 2, (7, len(NAMES)))).astype(np.float32)
            writer.append(1_000_000 + step, {"loss": 1 / (step + 1)}, block, wall_time=1.7e9 + step)
        writer.close()
    return tmp_path / "runs"


@pytest.fixture
def model(tmp_path: Path) -> Path:
    draw = np.random.default_rng(0)
    tensors = {f"{name}.weight": draw.normal(0, 0.02, (8, 8)) for name in NAMES}
    return write(tmp_path / "m.safetensors", arrays(**tensors))


def commands(runs: Path, model: Path) -> list[tuple[str | Path, ...]]:
    longest = max(runs.iterdir(), key=lambda run: len(run.name))
    return [
        ("runs", runs), ("gradients", longest), ("gradients", longest, "--depth", "expert"),
        ("diagnose", longest), ("flow", longest), ("run-diff", longest, runs / "stopped"),
        ("show", model), ("show", model, "--stats"), ("show", model, "--health"), ("list",),
    ]  # fmt: skip


@pytest.mark.parametrize("columns", [60, 80, 132])
@pytest.mark.parametrize("which", range(10))
def test_no_line_is_wider_than_the_terminal(runs, model, which, columns):
    lines = shown(*commands(runs, model)[which], columns=columns)

    # The first line of `show` begins with a path as it was given, to be copied.
    wide = [line for line in lines if display_width(line) > columns and str(model) not in line]
    assert len(lines) > 3
    assert wide == []


@pytest.mark.parametrize("which", [0, 1, 6, 8])
def test_in_a_pipe_every_name_is_whole(difflens, runs, model, which):
    command = commands(runs, model)[which]
    out = difflens(*command).out

    assert "…" not in out
    for name in [run.name for run in runs.iterdir()] if which == 0 else NAMES:
        assert name in out


def test_columns_stand_under_each_other_whatever_the_letters(difflens, model):
    rows = [line for line in difflens("show", model).lines if line.startswith(DEEP)]

    assert len({display_width(line[: line.index(" F")]) for line in rows}) <= 2
    assert {display_width(line) for line in rows} == {max(map(display_width, rows))}


def test_names_that_are_typed_are_never_cut():
    lines = shown("list", columns=60)

    assert any(line.strip().startswith("alert-on-degradation ") for line in lines)
    assert not any("…" in line for line in lines)
