"""Foreign logs as runs: what they say arrives, and what is no log earns one line."""

import gc
import json
import random
import struct
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from training.history.made import exported, info_of, random_frames, written

from difflens.core.errors import RunError
from difflens.training.history import foreign as gathering
from difflens.training.history import open_run, read_history
from difflens.training.history.events import encoded, first_event, record, value_head
from difflens.training.history.exports import export_run
from difflens.training.history.frame import is_missing
from difflens.training.history.imports import importer


def history(path, text: str | bytes | None = None):
    if text is not None:
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_history(path)


def series(found, name):
    """Return (step, value) of a scalar where it was recorded."""
    values = found.course.scalar(name)
    there = ~is_missing(values)
    return list(zip(found.course.steps[there].tolist(), values[there].tolist(), strict=True))


def norms(found, layer, field="grad_l2"):
    at = [each.name for each in found.info.layers].index(layer)
    there = ~found.course.missing(field)[:, at]
    values = found.course.field(field)[:, at]
    return list(zip(found.course.steps[there].tolist(), values[there].tolist(), strict=True))


NORMS = st.dictionaries(
    st.sampled_from(["a.weight", "layers.0.w", "layers.10.w"]),
    st.lists(st.floats(0, 2.0**100, width=32), min_size=3, max_size=3),
    min_size=1,
)


@given(NORMS, st.booleans())
def test_long_tables_by_step_or_by_layer_and_wide_ones_say_the_same(
    tmp_path_factory, table, by_layer
):
    folder = tmp_path_factory.mktemp("csv")
    places = [(step, layer) for step in range(3) for layer in table]
    if by_layer:
        places.sort(key=lambda place: list(table).index(place[1]))
    rows = [f"{step},{layer},{table[layer][step]!r}" for step, layer in places]
    wide = [",".join([str(step), *(repr(table[layer][step]) for layer in table)])
            for step in range(3)]  # fmt: skip
    left = history(folder / "long.csv", "\n".join(["step,layer,norm", *rows]))
    right = history(folder / "wide.csv", "\n".join([",".join(["step", *table]), *wide]))

    for found in (left, right):
        for layer, values in table.items():
            assert norms(found, layer) == list(enumerate(values))


def test_rows_of_one_step_are_one_frame(tmp_path):
    """As Lightning's CSVLogger writes them: training and validation on lines of their own."""
    found = history(
        tmp_path / "metrics.csv",
        "epoch,step,train_loss,val_loss\n0,9,0.5,\n0,9,,0.7\n1,19,nan,\n1,19,,inf\n",
    )

    assert found.frames == 2
    assert series(found, "loss")[0] == (9, 0.5)
    assert np.isnan(series(found, "loss")[1][1])
    assert series(found, "val_loss") == [(9, 0.7), (19, np.inf)]
    assert series(found, "epoch") == [(9, 0.0), (19, 1.0)]
    assert found.first_nonfinite_scalar == {"loss": 19, "val_loss": 19}
    assert found.info.facts == {"imported": "CSV", "renamed": {"train_loss": "loss"}}


def test_a_table_without_steps_is_read_by_its_epochs(tmp_path):
    """As the CSVLogger of Keras writes it."""
    found = history(tmp_path / "log.csv", "epoch,accuracy,loss,val_loss\n0,0.1,2,3\n1,0.2,1,2\n")

    assert series(found, "loss") == [(0, 2.0), (1, 1.0)]


def test_cells_that_are_no_numbers_are_told_and_left_out(tmp_path):
    found = history(tmp_path / "a.csv", "step,loss,note\n1,2,begun\n2,1,\n3,0,done\n")

    assert found.damage == ("2 values of 'note' are no numbers, they were left out",)
    assert series(found, "loss") == [(1, 2.0), (2, 1.0), (3, 0.0)]


def test_a_step_that_comes_again_as_after_a_restart_replaces_what_was_there(tmp_path):
    found = history(tmp_path / "a.csv", "step,loss\n1,5\n2,4\n3,9\n2,3\n3,2\n")

    assert series(found, "loss") == [(1, 5.0), (2, 3.0), (3, 2.0)]


def test_json_lines_give_scalars_and_layers_in_every_spelling(tmp_path):
    lines = [
        {"step": 0, "loss": 1.5, "layers": {"a": {"grad_l2": 0.5, "weight_l2": 2}, "b": {}}},
        {"step": 1, "loss": "NaN", "layers": {"b": {"grad_norm": 0.25}}, "ok": True},
        {"step": 2, "grad_norm/a": 3, "gradients/b/l2": 4, "train": {"acc": 0.5}, "loss": None},
    ]
    text = "\n".join(map(json.dumps, lines)) + '\n{"step": 3, "loss": Infinity}\n'
    found = history(tmp_path / "log.jsonl", text)

    assert norms(found, "a") == [(0, 0.5), (2, 3.0)]
    assert norms(found, "b") == [(1, 0.25), (2, 4.0)]
    assert norms(found, "a", "weight_l2") == [(0, 2.0)]
    assert series(found, "train/acc") == [(2, 0.5)]
    assert [step for step, _ in series(found, "loss")] == [0, 1, 3]
    assert found.damage == ("1 values of 'ok' are no numbers, they were left out",)


def test_a_last_line_that_is_being_written_is_a_tail(tmp_path):
    found = history(tmp_path / "log.jsonl", '{"step": 1, "loss": 2}\n{"step": 2, "lo')

    assert found.frames == 1
    assert found.damage == ("15 bytes at the end are incomplete, they were left out",)


STATE = {
    "best_metric": None,
    "epoch": 1.0,
    "log_history": [
        {"epoch": 0.5, "grad_norm": 1.25, "learning_rate": 5e-05, "loss": 2.5, "step": 10},
        {"epoch": 1.0, "eval_loss": 2.25, "eval_runtime": 3.5, "step": 10},
        {"epoch": 1.0, "grad_norm": float("nan"), "learning_rate": 0.0, "loss": 0.0, "step": 20},
        {"epoch": 1.0, "step": 20, "total_flos": 123456789, "train_loss": 2.0},
    ],
}


@pytest.mark.parametrize("place", ["trainer_state.json", "other.json", "checkpoint-20"])
@pytest.mark.parametrize("indent", [None, 2])
def test_the_state_of_a_hugging_face_trainer_is_read(tmp_path, place, indent):
    file = tmp_path / place
    if place == "checkpoint-20":
        file.mkdir()
        file = file / "trainer_state.json"
    file.write_text(json.dumps(STATE, indent=indent))
    found = history(tmp_path / place)

    assert series(found, "loss") == [(10, 2.5), (20, 0.0)]
    assert series(found, "lr") == [(10, 5e-05), (20, 0.0)]
    assert series(found, "eval_loss") == [(10, 2.25)]
    assert found.first_nonfinite_scalar == {"grad_norm": 20}
    assert found.info.facts["renamed"] == {"learning_rate": "lr"}


WRITER = """
import sys
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.event_file_writer import EventFileWriter
import numpy as np
from tensorboard.util import tensor_util

def value(tag, how):
    if isinstance(how, float):
        return Summary.Value(tag=tag, simple_value=how)
    return Summary.Value(tag=tag, tensor=tensor_util.make_tensor_proto(how))

writer = EventFileWriter(sys.argv[1])
for step in range(5):
    values = [
        value("train/loss", 2.0 / (step + 1)),
        value("learning_rate", np.float32(0.5)),
        value("double", np.array(step / 3)),
        value("whole", np.int64(-step)),
        value("grad_norm/h.0.weight", float(step)),
        value("gradients/h.1.weight/l2", float("nan") if step == 3 else 0.25),
        value("vector", np.ones(3, np.float32)),
        value("text", "words"),
    ]
    writer.add_event(Event(wall_time=1e9 + step, step=10 * step, summary=Summary(value=values)))
writer.close()
"""


def test_event_files_written_by_tensorboard_are_read(tmp_path):
    pytest.importorskip("tensorboard", exc_type=ImportError)
    run = [sys.executable, "-W", "ignore", "-c", WRITER, tmp_path / "board"]
    subprocess.run(run, check=True, capture_output=True)
    found = history(tmp_path / "board")

    assert series(found, "loss") == [
        (10 * step, float(np.float32(2.0 / (step + 1)))) for step in range(5)
    ]
    assert series(found, "double") == [(10 * step, step / 3) for step in range(5)]
    assert series(found, "whole") == [(10 * step, float(-step)) for step in range(5)]
    assert {value for _, value in series(found, "lr")} == {0.5}
    assert norms(found, "h.0.weight") == [(10 * step, float(step)) for step in range(5)]
    assert found.extremes.first_nonfinite.max() == 30
    assert found.course.wall_times.tolist() == [1e9 + step for step in range(5)]
    assert found.damage == ("10 summaries are no scalars, they were left out",)


def test_scalars_written_by_torch_are_read(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        board = pytest.importorskip("torch.utils.tensorboard", exc_type=ImportError)
        with board.SummaryWriter(str(tmp_path / "board")) as writer:
            for step in range(3):
                writer.add_scalar("loss", 0.5 * step, step)
                writer.add_scalar("new", 1.5, step, new_style=True)
    found = history(tmp_path / "board")

    assert series(found, "loss") == [(0, 0.0), (1, 0.5), (2, 1.0)]
    assert series(found, "new") == [(0, 1.5), (1, 1.5), (2, 1.5)]


def events(*values) -> bytes:
    parts = [record(first_event(1.0))]
    for step, (tag, value) in enumerate(values):
        one = value_head(tag) + struct.pack("<f", value)
        parts.append(record(encoded(2.0, step, [one])))
    return b"".join(parts)


def test_several_event_files_of_a_folder_are_one_run(tmp_path):
    (tmp_path / "events.out.tfevents.1").write_bytes(events(("a", 1), ("a", 2)))
    (tmp_path / "events.out.tfevents.2").write_bytes(events(("b", 3)))
    found = history(tmp_path)

    assert series(found, "a") == [(0, 1.0), (1, 2.0)]
    assert series(found, "b") == [(0, 3.0)]


def test_a_folder_of_one_run_is_that_run_and_of_two_asks_which(tmp_path):
    for name in ("left", "right"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "events.out.tfevents.1").write_bytes(events(("a", 1)))
        if name == "left":
            assert history(tmp_path).frames == 1

    with pytest.raises(RunError, match="it holds 2 runs") as caught:
        history(tmp_path)
    assert caught.value.hint == "name one of: left, right"


def test_event_files_torn_at_any_byte_or_damaged_give_what_is_whole(tmp_path):
    path = tmp_path / "events.out.tfevents.1"
    whole = events(*(("loss", float(step)) for step in range(4)))
    right = [(step, float(step)) for step in range(4)]
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        try:
            found = history(path)
        except RunError as error:
            assert "no numbers" in str(error)  # noqa: PT017  at some cuts, not at all
            continue
        assert series(found, "loss") == right[: found.frames]
    for at in range(len(whole)):
        broken = bytearray(whole)
        broken[at] ^= 0x10
        path.write_bytes(broken)
        try:
            found = history(path)
        except RunError:
            continue
        assert set(series(found, "loss")) <= set(right)
        assert found.damage


@pytest.mark.parametrize("to", ["csv", "json", "parquet", "tensorboard"])
def test_what_was_exported_is_read_back_with_its_layers(tmp_path, to):
    info = info_of(fields=0)
    info = type(info)(layers=info.layers, fields=("grad_l2", "weight_l2"), scalars=("loss", "lr"))
    frames = random_frames(info, 5)
    written(tmp_path / "run", info, frames)
    export_run(open_run(tmp_path / "run"), to, tmp_path / f"out.{to}")
    found = history(tmp_path / f"out.{to}")

    assert [each.name for each in found.info.layers] == [each.name for each in info.layers]
    for i, layer in enumerate(info.layers):
        wanted = [(frame.step, float(frame.layers[0, i])) for frame in frames]
        assert norms(found, layer.name) == wanted


BAD: dict[str, dict[Any, str]] = {
    "a.csv": {
        "": "no column says the step",
        "loss,lr\n1,2\n": "no column says the step",
        "step,loss\n": "it holds no numbers of any step",
        "step,loss\nx,1\n": "line 2: the step 'x' is no whole number",
        "step,loss\n1.5,1\n": "line 2: the step '1.5' is no whole number",
        "step,loss\n99999999999999999999,1\n": "is no whole number of 64 bits",
        "step,loss\n1,2,3\n2,3\n": "line 2: 3 cells under 2 names",
        "step,loss,loss\n1,2,3\n": "two columns have one name",
        'step,loss\n1,"2\n': "line 2: unexpected end of data",
        "sequence,step,wall_time,monotonic_time,loss\n0,1,x,2,3\n": "'x' is no number",
        "sequence,step,wall_time,monotonic_time,layers/f/a,loss\n": "not those of an exported run",
        "step,loss\n1," + "9" * 200_000 + "\n": "field larger than field limit",
        b"step,loss\n1,\xff\n": "is not UTF-8",
    },
    "a.jsonl": {
        '{"loss": 1}\n': "line 1: nothing says the step",
        '{"step": 1, "loss": 1}\n[1]\n': "line 2: a JSON object is wanted",
        '{"step": 1, "loss": 1}\nnonsense\n{"step": 2}\n': "line 2: a JSON object is wanted",
        '{"step": true, "loss": 1}\n': "the step 'True' is no whole number",
        '{"step": 1}\n': "it holds no numbers of any step",
        '{"step": 1, "a": ' + "[" * 100_000 + "\n{}\n": "line 1: a JSON object is wanted",
    },
    "trainer_state.json": {
        "{": "it is not JSON",
        "{}": "it has no list log_history",
        '{"log_history": [1]}': "entry 1 of log_history: an object is wanted",
        '{"log_history": [{"loss": 1}]}': "entry 1 of log_history: nothing says the step",
    },
    "events.out.tfevents.1": {
        b"": "it holds no numbers of any step",
        b"x" * 100: "it holds no numbers of any step",
        struct.pack("<Q", 1 << 60) + b"\0" * 40: "it holds no numbers of any step",
    },
    "a.txt": {"hello": "it is no run that can be read", b"\0" * 100: "it is no run"},
}
CASES = [(name, text, said) for name, cases in BAD.items() for text, said in cases.items()]


@pytest.mark.parametrize(("name", "text", "sentence"), CASES, ids=lambda each: str(each)[:30])
def test_what_is_no_log_earns_its_sentence(tmp_path, name, text, sentence):
    with pytest.raises(RunError) as caught:
        history(tmp_path / name, text)

    assert sentence in caught.value.reason
    assert "\n" not in str(caught.value)


def test_more_than_can_be_held_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(gathering, "MOST_VALUES", 5)
    with pytest.raises(RunError, match="it is too large"):
        history(tmp_path / "a.csv", "step,a,b\n" + "".join(f"{i},1,2\n" for i in range(9)))
    monkeypatch.undo()
    monkeypatch.setattr(gathering, "MOST_CELLS", 5)
    with pytest.raises(RunError, match="9 steps of 2 names: too large"):
        history(tmp_path / "a.csv", "step,a,b\n" + "".join(f"{i},1,2\n" for i in range(9)))


def test_a_file_that_is_not_there_is_one_line(tmp_path):
    with pytest.raises(RunError, match="no such file or directory"):
        open_run(tmp_path / "none.csv")


SAMPLES = {
    "a.csv": b"step,layer,norm\n1,a,0.5\n1,b,2\n2,a,1\n",
    "b.csv": b"sequence,step,wall_time,monotonic_time,loss,layers/f/a\n0,1,2.0,3.0,4.0,\n",
    "a.jsonl": b'{"step": 1, "layers": {"a": {"grad_l2": 1}}, "b": {"c": 2}}\n{"step": 2}\n',
    "trainer_state.json": json.dumps(STATE).encode(),
    "events.out.tfevents.1": events(("loss", 1.0), ("grad_norm/a", 2.0)),
    "run.json": b"",
    "run.parquet": b"",
}
FEW, MANY = 1000, 5000


@pytest.fixture(scope="module")
def samples(tmp_path_factory):
    """Return a small file of each format; those that only we write are exported."""
    folder, info = tmp_path_factory.mktemp("samples"), info_of(layers=1, scalars=1, fields=1)
    made = {
        name: exported(folder / to, info, random_frames(info, 2), to, name).read_bytes()
        for name, to in (("run.json", "json"), ("run.parquet", "parquet"))
    }
    return {**SAMPLES, **made}


@pytest.mark.parametrize(
    "count", [pytest.param(FEW, id="ci"), pytest.param(MANY, id="full", marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("name", SAMPLES)
def test_mutants_do_no_harm(tmp_path, samples, name, count):
    draw, good, path = random.Random(name), samples[name], tmp_path / name
    read = 0
    for _ in range(count):
        mutant = bytearray(good)
        for _ in range(draw.randint(1, 4)):
            at = draw.randrange(len(mutant) + 1)
            cut = draw.choice([0, 0, 1, 2, 10])
            mutant[at : at + cut] = draw.choice(
                [b"", bytes([draw.randrange(256)]), b'"', b"\n", b"nan", b"[[", b"-1", b"1e999"]
            )
        path.write_bytes(mutant)
        try:
            read += read_history(path).frames >= 0
        except RunError as error:
            assert "\n" not in str(error)  # noqa: PT017  the line is what is tested

    assert 0 < read < count


@pytest.mark.parametrize("entry", list(importer), ids=lambda entry: entry.name)
def test_every_importer_recognises_its_own_and_leaves_the_rest_alone(tmp_path, samples, entry):
    every = {
        "csv": {"a.csv", "b.csv"},
        "json": {"run.json"},
        "jsonl": {"a.jsonl"},
        "parquet": {"run.parquet"},
        "tensorboard": {"events.out.tfevents.1"},
        "trainer-state": {"trainer_state.json"},
    }
    own = every[entry.name]
    known = {name for name, data in samples.items()
             if entry.options["recognise"](tmp_path / name, data)}  # fmt: skip

    assert known == own
    assert entry.summary
    assert not entry.options["recognise"](Path("x.bin"), b"\x00\x01\x02")
    assert not entry.options["recognise"](tmp_path, b"")


def test_a_log_that_is_refused_is_not_held_open(tmp_path):
    """A generator that knew its owner kept the file until the collector came round."""
    path = tmp_path / "a.csv"
    path.write_text("step,loss\n" + "1,2\n" * 20_000 + "x,y\n" + "1,2\n" * 20_000)
    gc.disable()
    try:
        before = len(list(Path("/dev/fd").iterdir()))
        for _ in range(5):
            with pytest.raises(RunError):
                read_history(path)
        assert len(list(Path("/dev/fd").iterdir())) == before
    finally:
        gc.enable()
