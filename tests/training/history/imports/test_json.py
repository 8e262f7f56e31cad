"""JSON that was exported is the run again; what is not as it was written earns one line."""

import json
from pathlib import Path

import msgspec
import numpy as np
import pytest
from cli.command import run
from hypothesis import given
from training.history.made import (
    exported,
    info_of,
    infos,
    plans,
    random_frames,
    same_frames,
    written,
)

from difflens.core.errors import RunError
from difflens.training.history import open_run, read_history
from difflens.training.history.exports import export_run
from difflens.training.history.frame import MISSING, MISSING_SCALAR, is_missing
from difflens.training.records.runs import Note


def again(path, to="json"):
    """Read an exported file and export it once more."""
    source = open_run(path)
    export_run(source, to, path.with_name("again"))
    source.close()
    return path.with_name("again").read_bytes()


@given(plans())
def test_exporting_what_was_imported_gives_the_file_again(tmp_path_factory, plan):
    folder = tmp_path_factory.mktemp("json")
    path = exported(folder, plan.info, plan.frames, "json", "run.json")
    back = open_run(path)

    assert same_frames(list(back.frames()), plan.frames)
    assert back.info == plan.info
    assert [note.what for note in back.notes] == ["begun", "ended"]
    assert again(path) == path.read_bytes()


@given(infos())
def test_every_word_of_the_info_comes_back(tmp_path_factory, info):
    told = msgspec.structs.replace(
        info, name="a\u2028b", optimizer={"name": "AdamW", "betas": [0.9, 0.999]},
        facts={"deep": {"er": [None, True, -1]}}, every="auto", budget=0.5, framework="torch",
    )  # fmt: skip
    path = exported(tmp_path_factory.mktemp("json"), told, random_frames(told, 1), "json", "r.json")

    assert open_run(path).info == told


def test_what_was_not_recorded_and_what_is_nan_stay_two_things(tmp_path):
    info = info_of(layers=3, scalars=3, fields=1)
    (frame,) = random_frames(info, 1)
    frame.layers[0], frame.scalars[:] = [MISSING, np.nan, -np.inf], [MISSING_SCALAR, np.nan, np.inf]
    (back,) = open_run(exported(tmp_path, info, [frame], "json", "run.json")).frames()

    assert is_missing(back.layers).tolist() == [[True, False, False]]
    assert is_missing(back.scalars).tolist() == [True, False, False]
    assert np.isnan(back.layers[0, 1])
    assert (back.layers[0, 2], back.scalars[2]) == (-np.inf, np.inf)


def test_times_that_nobody_recorded_come_back_as_such(tmp_path):
    (tmp_path / "log.csv").write_text("step,loss\n1,2\n")
    export_run(open_run(tmp_path / "log.csv"), "json", tmp_path / "run.json")

    assert again(tmp_path / "run.json") == (tmp_path / "run.json").read_bytes()
    assert '"wall_time":"NaN"' in (tmp_path / "run.json").read_text()


def test_damage_and_a_torn_end_are_told_again(tmp_path):
    path = written(tmp_path / "run", info_of(), random_frames(info_of(), 5))
    whole = bytearray(path.read_bytes())
    second = [i for i in range(len(whole)) if whole[i : i + 5] == b"DLR1\x02"][1]
    whole[second + 60] ^= 1
    path.write_bytes(whole[:-3])
    export_run(open_run(tmp_path / "run"), "json", tmp_path / "run.json")

    assert read_history(tmp_path / "run.json").damage == read_history(tmp_path / "run").damage
    assert again(tmp_path / "run.json") == (tmp_path / "run.json").read_bytes()


def test_it_becomes_a_run_again(tmp_path):
    frames = random_frames(info_of(), 4)
    path = exported(tmp_path, info_of(), frames, "json", "run.json")
    export_run(open_run(path), "run", tmp_path / "back")

    assert same_frames(list(open_run(tmp_path / "back").frames()), frames)


def open_files():
    return {each.resolve() for each in Path("/proc/self/fd").iterdir()}


def changed(old, new):
    return lambda text: text.replace(old, new, 1)


FRAME = '{"sequence":0,'
DEEP = '{"facts":' + '{"a":' * 100_000
BAD = {
    "another version": (changed('version":1', 'version":2'), "schema_version 2, 1 can be read"),
    "no layout": (changed('"fields":["field0",', '"fields":["field1",'), "lays out no run"),
    "a deep info": (changed('{"layers"', DEEP + '{"layers"'), "lays out no run"),
    "a deep frame": (changed(FRAME, '{"sequence":' + "[" * 400), "line 3: "),
    "deep notes": (changed('"notes":[', '"notes":[{"what":"x","data":' + '{"a":' * 90_000),
                   "line 6: too deep"),
    "many notes": (changed('"notes":[', '"notes":[' + '{"what":"x"},' * (1 << 20)), "too large"),
    "a long frame": (changed(FRAME, '{"sequence":' + "0" * 5000), "a frame has at most"),
    "no frames": (changed('"frames":[', '"frames":{'), '"frames":[ is wanted'),
    "torn": (lambda text: text[: len(text) // 2], "line "),
    "ended early": (lambda text: text[: text.index("],\n")], "within the run"),
    "a huge sequence": (changed(FRAME, f'{{"sequence":{2**64},'), "fit into 64 bits"),
    "a step below": (changed('"step":0', f'"step":{-(2**63) - 1}'), "fit into 64 bits"),
    "no sequence": (changed(FRAME, '{"sequence":null,'), "line 3: Expected `int`"),
    "a word": (changed('"wall_time":1000000000.0', '"wall_time":"soon"'), "line 3: "),
    "a number too large": (changed('"wall_time":1000000000.0', '"wall_time":1e999'), "line 3: "),
    "another name": (changed('"scalar0":0', '"other":0'), "names are not those of the info"),
    "more behind": (lambda text: text + "{}\n", "the run ended before it"),
    "a frame behind the last": (changed("}},\n", "}}\n"), "should have been the last one"),
    "bytes below zero": (changed('"tail_bytes":0', '"tail_bytes":-1'), "tail_bytes -1"),
}  # fmt: skip


def sample(folder):
    info = info_of()
    return exported(folder, info, random_frames(info, 2), "json", "run.json")


@pytest.mark.parametrize("name", BAD)
def test_what_is_not_as_it_was_written_earns_one_line(tmp_path, name):
    path, (change, sentence) = sample(tmp_path), BAD[name]
    good = path.read_text()
    path.write_text(change(good))

    assert path.read_text() != good
    with pytest.raises(RunError) as caught:
        read_history(path)
    assert sentence in caught.value.reason
    assert "\n" not in str(caught.value)


def test_a_frame_with_a_value_too_many_or_too_few_is_refused(tmp_path):
    path = sample(tmp_path)
    lines = path.read_text().splitlines(keepends=True)
    frame = json.loads(lines[2].rstrip(",\n"))
    for values, sentence in (([1.0], "1 values of 'field1' for 3 layers"), ([1.0] * 4, "4 values")):
        frame["layers"]["field1"] = values
        text = json.dumps(frame, separators=(",", ":")) + ",\n"
        path.write_text("".join([*lines[:2], text, *lines[3:]]))
        with pytest.raises(RunError, match=sentence):
            read_history(path)


def test_a_file_laid_out_anew_is_refused_with_what_to_do(tmp_path):
    path = sample(tmp_path)
    path.write_text(json.dumps(json.loads(path.read_text()), separators=(",", ":")))
    done = run("flow", path)

    assert done.code == 2
    assert "line 1: " in done.err
    assert done.err.splitlines()[1].startswith("hint: only what `difflens export --to json` wrote")


def test_a_run_that_is_closed_early_lets_go_of_the_file(tmp_path):
    path = sample(tmp_path)
    source = open_run(path)
    next(iter(source.frames()))

    assert path in open_files()
    source.close()
    assert path not in open_files()


def test_notes_are_those_of_the_run(tmp_path):
    path = sample(tmp_path)
    source = open_run(path)
    list(source.frames())

    assert list(source.frames()) == []
    assert source.notes[0] == msgspec.convert(json.loads(path.read_text())["notes"][0], Note)
