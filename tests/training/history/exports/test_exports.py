"""Every export says what the run says: read back by other programs, number for number."""

import csv
import json
import warnings
from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from training.history.made import (
    append,
    bits,
    exported,
    frames_of,
    info_of,
    infos,
    plans,
    random_frames,
    same_frames,
    same_numbers,
    written,
)

from difflens.core.errors import DifflensError, MissingExtra, OutputError, UnknownName
from difflens.training.history import open_run
from difflens.training.history.exports import export_run, exporter
from difflens.training.history.frame import MISSING, Spread, is_missing, union
from difflens.training.history.writer import RunWriter, file_of
from difflens.training.records.runs import Layer, Note, RunInfo

HOSTILE = RunInfo(
    layers=tuple(
        map(Layer, ("=cmd|' /C calc'!A0", 'a"b,c', "x\ny", "x\ry", "a/b", "", "\x1b[31m", "%2F"))
    ),
    fields=("grad_l2", "a/b", "%2F", "@sum"),
    scalars=("loss", "step", "layers/a/b", "scalars/x", "-1", "", "a\r\nb", " padded "),
)
WORDS = {"NaN": np.nan, "Infinity": np.inf, "-Infinity": -np.inf, None: MISSING}


@given(plans())
def test_an_exported_csv_read_back_is_the_run(tmp_path_factory, plan):
    folder = tmp_path_factory.mktemp("csv")
    path = exported(folder, plan.info, plan.frames, "csv", "run.csv")
    back = open_run(path)

    assert same_frames(list(back.frames()), plan.frames)
    assert back.info.scalars == plan.info.scalars
    if plan.info.fields and plan.info.layers:
        assert back.info.fields == plan.info.fields
        assert [each.name for each in back.info.layers] == [e.name for e in plan.info.layers]


def test_hostile_names_come_back_and_no_cell_is_a_formula(tmp_path):
    frames = random_frames(HOSTILE, 2)
    path = exported(tmp_path, HOSTILE, frames, "csv", "run.csv")
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file))

    assert len(rows) == 3
    assert not any(cell.startswith(("=", "+", "@", "\t", "\r")) for cell in rows[0])
    assert not any(cell.startswith("-") for cell in rows[0])
    back = open_run(path)
    assert back.info.scalars == HOSTILE.scalars
    assert back.info.fields == HOSTILE.fields
    assert [each.name for each in back.info.layers] == [each.name for each in HOSTILE.layers]
    assert [bits(each) for each in back.frames()] == [bits(each) for each in frames]


@given(plans())
def test_an_exported_json_holds_every_number_by_its_name(tmp_path_factory, plan):
    folder = tmp_path_factory.mktemp("json")
    path = exported(folder, plan.info, plan.frames, "json", "run.json")
    found = json.loads(path.read_text("utf-8"), parse_constant=pytest.fail)

    assert found["schema_version"] == 1
    assert msgspec.convert(found["info"], RunInfo) == plan.info
    assert [note["what"] for note in found["notes"]] == ["begun", "ended"]
    assert len(found["frames"]) == len(plan.frames)
    for frame, original in zip(found["frames"], plan.frames, strict=True):
        assert (frame["sequence"], frame["step"]) == original[:2]
        assert WORDS.get(frame["wall_time"], frame["wall_time"]) == original.wall_time
        assert same_numbers(unworded(frame["scalars"].values(), np.float64), original.scalars)
        for field, values in zip(plan.info.fields, original.layers, strict=True):
            assert same_numbers(unworded(frame["layers"][field], np.float32), values)


def unworded(values, dtype):
    missing = MISSING if dtype == np.float32 else np.uint64(0x7FF80000000D1FF0).view(np.float64)
    plain = [missing if v is None else dtype(WORDS.get(v, v)) for v in values]
    return np.array(plain, dtype)


@given(plans())
def test_parquet_read_by_pyarrow_holds_every_number(tmp_path_factory, plan):
    tables = pytest.importorskip("pyarrow.parquet")
    folder = tmp_path_factory.mktemp("parquet")
    table = tables.read_table(exported(folder, plan.info, plan.frames, "parquet", "run.parquet"))

    assert table.num_rows == len(plan.frames)
    assert msgspec.json.decode(table.schema.metadata[b"difflens.run"], type=RunInfo) == plan.info
    every = [c.combine_chunks() for c in table.columns]
    for row, frame in enumerate(plan.frames):
        assert [every[i][row].as_py() for i in range(4)] == list(frame[:4])
        values = np.array([*frame.scalars, *frame.layers.reshape(-1).astype(np.float64)])
        gone = [*is_missing(frame.scalars), *is_missing(frame.layers).reshape(-1)]
        for column, value, missing in zip(every[4:], values, gone, strict=True):
            found = column[row].as_py()
            assert (found is None) == missing
            assert missing or np.array_equal(found, value, equal_nan=True)


def test_parquet_without_its_library_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(MissingExtra, match=r"difflens\[parquet\]"):
        exported(tmp_path, info_of(), [], "parquet", "run.parquet")


def accumulated(path: Path):
    """Read with the real TensorBoard."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module = pytest.importorskip(
            "tensorboard.backend.event_processing.event_accumulator", exc_type=ImportError
        )
        found = module.EventAccumulator(str(path), size_guidance={"tensors": 0, "scalars": 0})
        found.Reload()
    return found


def test_tensorboard_itself_reads_what_was_exported(tmp_path):
    info = info_of(layers=60)  # long enough for the checksum of many lanes
    frames = random_frames(info, 12)
    frames[3].layers[0, 1] = MISSING
    frames[4].layers[0, 1] = np.nan
    frames[5].layers[1, 2] = np.inf
    found = accumulated(exported(tmp_path, info, frames, "tensorboard", "board"))

    tags = {f"{field}/{layer.name}" for field in info.fields for layer in info.layers}
    assert set(found.Tags()["scalars"]) == {*tags, *info.scalars}
    for i, name in enumerate(info.scalars):
        events = found.Scalars(name)
        assert [e.value for e in events] == [float(np.float32(f.scalars[i])) for f in frames]
        assert [(e.step, e.wall_time) for e in events] == [(f.step, f.wall_time) for f in frames]
    values = {e.step: e.value for e in found.Scalars("field0/layer.1")}
    assert 30 not in values
    assert np.isnan(values[40])
    assert values[50] == float(frames[5].layers[0, 1])
    assert {e.step: e.value for e in found.Scalars("field1/layer.2")}[50] == np.inf


@given(plans())
def test_a_run_made_of_a_run_is_that_run(tmp_path_factory, plan):
    folder = tmp_path_factory.mktemp("run")
    path = exported(folder, plan.info, plan.frames, "run", "again")
    with open_run(path) as back:
        assert [bits(each) for each in back.frames()] == [bits(each) for each in plan.frames]
        assert back.info == plan.info
        assert [note.what for note in back.notes] == ["begun", "ended"]


def test_a_damaged_run_becomes_one_without_damage_whose_gap_can_be_seen(tmp_path):
    path = written(tmp_path / "run", info_of(), random_frames(info_of(), 5))
    whole = bytearray(path.read_bytes())
    second = [i for i in range(len(whole)) if whole[i : i + 5] == b"DLR1\x02"][1]
    whole[second + 60] ^= 1
    path.write_bytes(whole)
    export_run(open_run(tmp_path / "run"), "run", tmp_path / "mended")
    with open_run(tmp_path / "mended") as back:
        assert [frame.sequence for frame in back.frames()] == [0, 2, 3, 4]
        assert back.damage == []
        assert [note.what for note in back.notes] == ["begun", "ended", "damage"]


@pytest.mark.parametrize("to", ["csv", "json", "parquet", "tensorboard", "run"])
@given(first=infos(), second=infos(), data=st.data())
def test_layouts_that_change_are_exported_with_a_place_for_everything(
    tmp_path_factory, to, first, second, data
):
    folder, frames = tmp_path_factory.mktemp("run"), []
    wide = union(first, second)
    with RunWriter(folder / "run", first) as writer:
        for info in (first, second):
            if info is second:
                writer.describe(info)
            frame = data.draw(frames_of(info, writer.sequence))
            append(writer, frame)
            frames.append(Spread(info, wide).frame(frame))
    assert export_run(open_run(folder / "run"), to, folder / "out") == 2
    if to == "csv":
        (folder / "out").rename(folder / "out.csv")
        assert same_frames(list(open_run(folder / "out.csv").frames()), frames)
    if to == "json":
        assert len(json.loads((folder / "out").read_text("utf-8"))["frames"]) == 2


@pytest.mark.parametrize("to", ["csv", "json", "parquet", "tensorboard", "run"])
def test_an_export_that_fails_leaves_nothing_behind(tmp_path, to):
    class Failing:
        def __init__(self, source):
            self.source = source

        def __getattr__(self, name):
            return getattr(self.source, name)

        def frames(self):
            yield next(self.source.frames())
            raise KeyboardInterrupt

    written(tmp_path / "run", info_of(), random_frames(info_of(), 2))
    source = open_run(tmp_path / "run")
    with pytest.raises(KeyboardInterrupt):
        export_run(Failing(source), to, tmp_path / "out")

    assert [path.name for path in tmp_path.iterdir()] == ["run"]


@pytest.mark.parametrize("to", ["tensorboard", "run"])
def test_a_folder_that_is_there_is_not_written_over(tmp_path, to):
    written(tmp_path / "run", info_of(), [])
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "dear.txt").write_text("")

    with pytest.raises(OutputError, match="it is there already"):
        export_run(open_run(tmp_path / "run"), to, tmp_path / "out")


@pytest.mark.parametrize("to", ["csv", "json", "parquet", "tensorboard", "run"])
def test_a_place_that_cannot_be_written_is_one_line(tmp_path, to):
    written(tmp_path / "run", info_of(), [])

    with pytest.raises(DifflensError, match="no such file or directory"):
        export_run(open_run(tmp_path / "run"), to, tmp_path / "none" / "out")


def test_an_unknown_format_answers_with_the_known_ones(tmp_path):
    written(tmp_path / "run", info_of(), [])

    with pytest.raises(UnknownName, match="no export is called 'xlsx'"):
        export_run(open_run(tmp_path / "run"), "xlsx", tmp_path / "out")
    assert exporter.names() == ["csv", "json", "parquet", "run", "tensorboard"]


def test_a_run_of_a_foreign_log_keeps_what_it_says(tmp_path):
    log = tmp_path / "log.csv"
    log.write_text("step,loss,h.0.weight\n0,2.5,0.5\n10,nan,\n")
    export_run(open_run(log), "run", tmp_path / "run")
    with open_run(tmp_path / "run") as back:
        frames = list(back.frames())

    assert [frame.step for frame in frames] == [0, 10]
    assert back.info.facts["imported"] == "CSV"
    assert Note("imported", "read from a CSV log") in back.notes
    assert file_of(tmp_path / "run").is_file()
    assert is_missing(frames[1].layers).all()
