"""Gradient norms: long tables, wide ones and runs say the same."""

import numpy as np
import pytest
from diffs.evidence.refusals import mutated, refused, refuses_bad_files, survives_mutants
from hypothesis import given
from hypothesis import strategies as st

from difflens.diffs.evidence.desk import gradients
from difflens.training.history.frame import MISSING
from difflens.training.history.writer import RunWriter
from difflens.training.records.runs import Layer, RunInfo

NORMS = st.dictionaries(
    st.sampled_from(["a.weight", "layers.0.w", "layers.10.w"]),
    st.lists(st.floats(0, 1e30), min_size=3, max_size=3),
    min_size=1,
)


@pytest.fixture
def file(tmp_path):
    return tmp_path / "gradients.csv"


@given(NORMS)
def test_a_long_table_and_a_wide_one_say_the_same(tmp_path_factory, norms):
    folder = tmp_path_factory.mktemp("gradients")
    long, wide = folder / "long.csv", folder / "wide.csv"
    rows = [f"{step},{layer},{norms[layer][step]!r}" for step in range(3) for layer in norms]
    long.write_text("\n".join(["step,layer,norm", *rows]))
    table = [",".join([str(step), *(repr(norms[layer][step]) for layer in norms)])
             for step in range(3)]  # fmt: skip
    wide.write_text("\n".join([",".join(["step", *norms]), *table]))

    expected = {layer: tuple(enumerate(values)) for layer, values in norms.items()}
    assert gradients(long).norms == gradients(wide).norms == expected


def test_a_norm_that_is_not_finite_is_kept_by_its_step(file):
    file.write_text("step,w\n0,1\n1,nan\n2,inf\n")
    found = gradients(file)

    assert found.norms == {"w": ((0.0, 1.0),)}
    assert found.nonfinite == {"w": (1.0, 2.0)}


def recorded(folder, fields=("weight_l2", "grad_l2"), steps=4):
    info = RunInfo(layers=(Layer("a"), Layer("b")), fields=fields, scalars=())
    with RunWriter(folder, info) as writer:
        for step in range(steps):
            layers = np.array([[step, step + 1]] * len(fields), np.float32)
            if step == 2:
                layers[-1] = np.inf, MISSING
            writer.append(10 * step, np.empty(0), layers)
    return folder


def test_a_run_of_the_monitor_gives_the_norms_of_its_layers(tmp_path):
    found = gradients(recorded(tmp_path / "run"))

    assert found.norms == {
        "a": ((0.0, 0.0), (10.0, 1.0), (30.0, 3.0)),
        "b": ((0.0, 1.0), (10.0, 2.0), (30.0, 4.0)),
    }
    assert found.nonfinite == {"a": (20.0,)}
    assert found.source == str(tmp_path / "run")


def test_a_file_of_one_rank_is_taken_as_its_run(tmp_path):
    folder = recorded(tmp_path / "run")

    assert gradients(folder / "frames-000.dlr").norms == gradients(folder).norms


def test_a_norm_that_was_infinite_once_is_told_also_where_the_run_is_thinned_out(
    tmp_path, monkeypatch
):
    monkeypatch.setattr("difflens.training.history.building.LEAST_POINTS", 4)
    monkeypatch.setattr("difflens.training.history.building.MOST_POINTS", 4)
    found = gradients(recorded(tmp_path / "run", steps=40))

    assert len(found.norms["a"]) <= 4
    assert found.nonfinite == {"a": (20.0,)}


def test_a_run_without_norms_and_a_folder_that_is_none_are_refused(tmp_path):
    refused(gradients, recorded(tmp_path / "run", ("weight_l2",)), "it holds the norm of no layer")
    (tmp_path / "empty").mkdir()
    refused(gradients, tmp_path / "empty", "it is no run that can be read")


def test_steps_and_norms_below_zero_in_a_run_are_refused(tmp_path):
    info = RunInfo(layers=(Layer("a"),), fields=("grad_l2",), scalars=())
    for name, step, norm, reason in (("x", -1, 1, "a: a step below"), ("y", 1, -1, "a: a norm")):
        with RunWriter(tmp_path / name, info) as writer:
            writer.append(step, np.empty(0), np.full((1, 1), norm, np.float32))
        refused(gradients, tmp_path / name, reason)


BAD = {
    "step\n1\n": "it holds the norm of no layer",
    "layer,norm\na,1\n": "line 1: there is no column 'step'",
    "step,layer,norm\n1,a,-1\n": "line 2, column 'norm': -1, a norm is not negative",
    "step,layer,norm\n1,,1\n": "line 2, column 'layer': nothing where text is wanted",
    "step,layer,norm\n1,a,\n": "line 2, column 'norm': nothing where a number is wanted",
    "step,layer,norm,rank\n1,a,1,0\n": "line 2: the column 'rank' is not known",
    "step,w\n1,x\n": "line 2, column 'w': the text 'x' where a number is wanted",
    "step,w\n1,-0.5\n": "line 2, column 'w': -0.5, a norm is not negative",
    "step,w\nnan,1\n": "line 2, column 'step': nan where a finite number is wanted",
    "step,w\n-5,1\n": "line 2, column 'step': -5, a step is not negative",
    '{"step": 1, "w": true}': "line 1, column 'w': true where a number is wanted",
    '{"step": 1, "w": [1]}': "line 1, column 'w': a list where a number is wanted",
}


@pytest.mark.parametrize(("text", "sentence"), BAD.items(), ids=lambda text: text[:40])
def test_a_wrong_file_earns_its_sentence(file, text, sentence):
    file.write_text(text, "utf-8")

    assert sentence in refused(gradients, file).reason


def test_files_that_are_none_are_refused(tmp_path):
    refuses_bad_files(gradients, tmp_path, ".csv")


@pytest.mark.parametrize(
    "good", ["step,layer,norm\n1,a,0.5\n1,b,2\n", "step,a,b\n1,0.5,2\n2,1,1\n"]
)
@mutated
def test_mutants_do_no_harm(file, good, count):
    file.write_text(good, "utf-8")

    survives_mutants(gradients, file, count)
