"""Parquet that was exported is the run again; what declares more than it holds earns one line."""

import struct

import msgspec
import numpy as np
import pytest
from cli.command import run
from hypothesis import given
from training.history.made import exported, info_of, plans, random_frames, same_frames

from difflens.core.errors import MissingExtra, RunError
from difflens.training.history import open_run, read_history
from difflens.training.history.exports import export_run
from difflens.training.history.frame import MISSING, MISSING_SCALAR, is_missing
from difflens.training.history.imports import parquet as importing

pa = pytest.importorskip("pyarrow")
tables = pytest.importorskip("pyarrow.parquet")


@given(plans())
def test_exporting_what_was_imported_gives_the_file_again(tmp_path_factory, plan):
    folder = tmp_path_factory.mktemp("parquet")
    path = exported(folder, plan.info, plan.frames, "parquet", "run.parquet")
    back = open_run(path)

    assert same_frames(list(back.frames()), plan.frames)
    assert back.info == plan.info
    back.close()
    source = open_run(path)
    export_run(source, "parquet", folder / "again.parquet")
    assert (folder / "again.parquet").read_bytes() == path.read_bytes()


def test_what_was_not_recorded_and_what_is_nan_stay_two_things(tmp_path):
    info = info_of(layers=2, scalars=2, fields=1)
    (frame,) = random_frames(info, 1)
    frame.layers[0], frame.scalars[:] = [MISSING, np.nan], [MISSING_SCALAR, np.nan]
    (back,) = open_run(exported(tmp_path, info, [frame], "parquet", "run.parquet")).frames()

    assert is_missing(back.layers).tolist() == [[True, False]]
    assert is_missing(back.scalars).tolist() == [True, False]
    assert np.isnan(back.layers[0, 1])


def test_groups_and_batches_make_no_difference(tmp_path, monkeypatch):
    info, frames = info_of(), random_frames(info_of(), 50)
    path = exported(tmp_path, info, frames, "parquet", "run.parquet")
    monkeypatch.setattr(importing, "_MOST_ROWS", 7)

    assert same_frames(list(open_run(path).frames()), frames)


def table(**how):
    """Return the table of a small run, and how its metadata would be."""
    info = info_of(layers=1, scalars=1, fields=1)
    columns = {
        "sequence": pa.array([0, 1], pa.uint64()), "step": pa.array([0, 1], pa.int64()),
        "wall_time": pa.array([0.0, 1.0]), "monotonic_time": pa.array([0.0, 1.0]),
        "scalar0": pa.array([0.5, 0.5]), "layers/field0/layer.0": pa.array([1, 2], pa.float32()),
    } | how  # fmt: skip
    return pa.table(columns).replace_schema_metadata({"difflens.run": msgspec.json.encode(info)})


DEEP = b'{"facts":' + b'{"a":' * 100_000
BAD = {
    "no info": (table().replace_schema_metadata({}), "its metadata hold no info"),
    "a deep info": (table().replace_schema_metadata({"difflens.run": DEEP}), "no info"),
    "another info": (table().replace_schema_metadata({"difflens.run": b'{"scalars":["a"]}'}),
                     "its columns are not those of the info"),
    "another type": (table(step=pa.array(["a", "b"])), "its columns are not those of the info"),
    "another width": (table(scalar0=pa.array([1, 2], pa.float32())), "its columns are not those"),
    "a column more": (table(more=pa.array([1, 2])), "its columns are not those of the info"),
    "no sequence": (table(sequence=pa.array([0, None], pa.uint64())), "a row without sequence"),
    "no time": (table(wall_time=pa.array([None, 1.0])), "a row without sequence, step or time"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_a_table_that_is_no_exported_run_earns_one_line(tmp_path, name):
    made, sentence = BAD[name]
    tables.write_table(made, tmp_path / "run.parquet")
    with pytest.raises(RunError) as caught:
        read_history(tmp_path / "run.parquet")

    assert sentence in caught.value.reason
    assert "\n" not in str(caught.value)


def test_the_table_that_these_are_made_of_is_read(tmp_path):
    tables.write_table(table(), tmp_path / "run.parquet")

    assert read_history(tmp_path / "run.parquet").frames == 2


def test_more_rows_than_bytes_are_refused_before_any_is_read(tmp_path):
    same = pa.array(np.zeros(1_000_000))
    many = {name: same.cast(table().schema.field(name).type) for name in table().column_names}
    tables.write_table(table(**many), tmp_path / "run.parquet")
    with pytest.raises(RunError, match=r"1000000 rows in \d+ bytes"):
        open_run(tmp_path / "run.parquet")


def test_a_packing_that_blows_up_is_refused(tmp_path):
    tables.write_table(table(), tmp_path / "run.parquet", compression="zstd")
    with pytest.raises(RunError, match="it is packed by ZSTD"):
        open_run(tmp_path / "run.parquet")


@pytest.mark.parametrize(
    "data",
    [b"PAR1", b"PAR1" * 3, b"PAR1" + struct.pack("<I", 2**31 - 1) + b"PAR1",
     b"PAR1" + b"\xff" * 100 + struct.pack("<I", 100) + b"PAR1"],
    ids=["magic", "empty", "huge-footer", "nonsense"],
)  # fmt: skip
def test_what_is_no_parquet_behind_its_first_bytes_is_one_line_and_exit_code_2(tmp_path, data):
    (tmp_path / "run.parquet").write_bytes(data)
    done = run("flow", tmp_path / "run.parquet")

    assert done.code == 2
    assert "it cannot be read as Parquet: " in done.err
    assert len(done.err.splitlines()) == 1


def test_without_its_library_the_extra_is_named(tmp_path, monkeypatch):
    (tmp_path / "run.parquet").write_bytes(b"PAR1")
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(MissingExtra, match=r"difflens\[parquet\]"):
        open_run(tmp_path / "run.parquet")
