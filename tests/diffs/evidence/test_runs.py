"""Tables of runs: numbers where there are numbers, words where there are words."""

import json

import pytest
from diffs.evidence.refusals import mutated, refused, refuses_bad_files, survives_mutants
from hypothesis import given
from hypothesis import strategies as st

from difflens.diffs.evidence.desk import runs

CELLS = st.none() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False)


@pytest.fixture
def file(tmp_path):
    return tmp_path / "runs.csv"


@given(st.lists(st.fixed_dictionaries({"lr": CELLS, "optimizer": CELLS}), min_size=1))
def test_a_json_list_is_read_back(tmp_path_factory, table):
    file = tmp_path_factory.mktemp("runs") / "runs.json"
    file.write_text(json.dumps(table))

    assert list(runs(file)) == table


def test_cells_of_csv_are_numbers_where_they_read_as_numbers(file):
    file.write_text("lr,optimizer,seed,accuracy\n1e-3,adamw,0,0.91\n1e-3,sgd,1,\n")

    assert runs(file) == (
        {"lr": 1e-3, "optimizer": "adamw", "seed": 0.0, "accuracy": 0.91},
        {"lr": 1e-3, "optimizer": "sgd", "seed": 1.0, "accuracy": None},
    )


def test_text_of_json_stays_text(file):
    file.write_text('{"name": "1e3"}\n')

    assert runs(file) == ({"name": "1e3"},)


BAD = {
    "lr\n": "it has a header and no row",
    "lr,lr\n1,2\n": "line 1: the column 'lr' stands twice",
    "lr,\n1,2\n": "line 1: a column has no name",
    "lr\nnan\n": "line 2, column 'lr': nan where a finite number is wanted",
    "lr\n-inf\n": "line 2, column 'lr': -inf where a finite number is wanted",
    "lr,loss\n1\n": "line 2 has 1 cells, the header has 2",
    '{"lr": NaN}': "line 1, column 8: NaN is no number",
    '{"lr": [1, 2]}': "line 1, column 'lr': a list where a number or text is wanted",
    '[{"lr": {}}]': "entry 1, column 'lr': an object where a number or text is wanted",
    "[]": "it has no row",
    '["a"]': "entry 1: the text 'a' where an object is wanted",
    '[{"lr": 1}': "not JSON",
}


@pytest.mark.parametrize(("text", "sentence"), BAD.items(), ids=lambda text: text[:40])
def test_a_wrong_file_earns_its_sentence(file, text, sentence):
    file.write_text(text, "utf-8")

    assert sentence in refused(runs, file).reason


def test_files_that_are_none_are_refused(tmp_path):
    refuses_bad_files(runs, tmp_path, ".csv")


@pytest.mark.parametrize("good", ["lr,loss\n1,2\n3,4\n", '[{"lr": 1, "o": "x"}, {"lr": null}]'])
@mutated
def test_mutants_do_no_harm(file, good, count):
    file.write_text(good, "utf-8")

    survives_mutants(runs, file, count)
