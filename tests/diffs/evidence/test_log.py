"""Training logs: Hugging Face's, CSV, JSON lines; what is not finite is kept by its step."""

import json

import pytest
from diffs.evidence.refusals import mutated, refused, refuses_bad_files, survives_mutants
from hypothesis import given
from hypothesis import strategies as st

from difflens.diffs.evidence.measurements import log

STATE = {
    "epoch": 1.0,
    "global_step": 20,
    "log_history": [
        {"epoch": 0.5, "grad_norm": 2.0, "learning_rate": 5e-05, "loss": 2.5, "step": 10},
        {"epoch": 1.0, "grad_norm": 1.0, "learning_rate": 0.0, "loss": 2.0, "step": 20},
        {"epoch": 1.0, "eval_loss": 2.25, "step": 20},
    ],
}


@pytest.fixture
def file(tmp_path):
    return tmp_path / "trainer_state.json"


@pytest.mark.parametrize("indent", [None, 2])
def test_a_trainer_state_gives_columns_by_step_and_the_step_it_was_saved_at(file, indent):
    file.write_text(json.dumps(STATE, indent=indent))
    found = log(file)

    assert found.step == 20
    assert found.log.columns["loss"] == ((10.0, 2.5), (20.0, 2.0))
    assert found.log.columns["eval_loss"] == ((20.0, 2.25),)
    assert found.log.source == str(file)


def test_what_diverged_is_kept_by_its_step_and_makes_no_number(file):
    history = [{"step": 1, "loss": 2.0}, {"step": 2, "loss": float("nan")}]
    file.write_text(json.dumps({"log_history": history}))
    found = log(file)

    assert found.log.columns == {"loss": ((1.0, 2.0),)}
    assert found.log.nonfinite == {"loss": (2.0,)}
    assert found.step is None


def test_a_table_may_have_empty_cells_and_columns_of_words(file):
    file.write_text("step,loss,phase,val_loss\r\n1,2.5,train,\r\n2,,eval,2.25\r\n")
    found = log(file).log

    assert found.columns == {"loss": ((1.0, 2.5),), "val_loss": ((2.0, 2.25),)}
    assert found.left_out == ("phase",)


def test_a_step_that_comes_again_after_a_restart_replaces_the_first(file):
    file.write_text("step,loss\n1,3\n2,nan\n3,1\n2,2\n3,inf\n")
    found = log(file).log

    assert found.columns == {"loss": ((1.0, 3.0), (2.0, 2.0))}
    assert found.nonfinite == {"loss": (3.0,)}


POINTS = st.dictionaries(
    st.integers(0, 1000), st.floats(allow_nan=False, allow_infinity=False), min_size=1
)


@given(POINTS)
def test_json_lines_are_read_back_in_the_order_of_their_steps(tmp_path_factory, points):
    file = tmp_path_factory.mktemp("log") / "log.jsonl"
    lines = [json.dumps({"step": step, "loss": value}) for step, value in points.items()]
    file.write_text("\n".join(lines))

    assert log(file).log.columns["loss"] == tuple(sorted(points.items()))


BAD = {
    "{}": "line 1: there is no column 'step'",
    '{\n "loss": 1\n}': "it holds no list 'log_history'",
    '{"log_history": {}}': "it holds no list 'log_history'",
    '{"log_history": [1]}': "entry 1 of log_history is a number, an object is wanted",
    '{"log_history": []}': "it logs nothing",
    '{"log_history": [{"loss": 1}]}': "column 'step': null where a number is wanted",
    '{"log_history": [{"step": 1, "loss": 1}], "global_step": 1.5}': "global_step: 1.5, a whole",
    '{"log_history": [{"step": 1, "loss": 1}], "global_step": -1}': "global_step: -1, a whole",
    "loss\n1\n": "line 1: there is no column 'step'",
    "step,loss\n-1,1\n": "line 2, column 'step': -1, a step is not negative",
    "step,loss\nx,1\n": "line 2, column 'step': the text 'x' where a number is wanted",
    "step,loss\n1,2\n2,high\n": "line 3, column 'loss': the text 'high' where a number is wanted",
    "step,phase\n1,train\n": "no column beside step holds a number",
    "step\n1\n": "it logs nothing",
}


@pytest.mark.parametrize(("text", "sentence"), BAD.items(), ids=lambda text: text[:40])
def test_a_wrong_file_earns_its_sentence(file, text, sentence):
    file.write_text(text, "utf-8")

    assert sentence in refused(log, file).reason


def test_files_that_are_none_are_refused(tmp_path):
    refuses_bad_files(log, tmp_path, ".json")


@pytest.mark.parametrize("good", [json.dumps(STATE), "step,loss,lr\n1,2.5,1e-3\n2,2,9e-4\n"])
@mutated
def test_mutants_do_no_harm(file, good, count):
    file.write_text(good, "utf-8")

    survives_mutants(log, file, count)
