"""Metrics: a JSON object of names and finite numbers, nothing else."""

import json

import pytest
from diffs.evidence.refusals import mutated, refused, refuses_bad_files, survives_mutants
from hypothesis import given
from hypothesis import strategies as st

from difflens.diffs.evidence.desk import metrics

FINITE = st.floats(allow_nan=False, allow_infinity=False)


@pytest.fixture
def file(tmp_path):
    return tmp_path / "metrics.json"


@given(st.dictionaries(st.text(st.characters(codec="utf-8")), FINITE, min_size=1))
def test_what_was_written_is_read_back(tmp_path_factory, found):
    file = tmp_path_factory.mktemp("metrics") / "metrics.json"
    file.write_text(json.dumps(found), "utf-8")

    assert found == metrics(file)


def test_a_byte_order_mark_and_carriage_returns_do_not_matter(file):
    file.write_bytes(b'\xef\xbb\xbf{\r\n "accuracy": 1\r\n}\r\n')

    assert metrics(file) == {"accuracy": 1.0}


BAD = {
    "[1, 2]": "it holds a list, an object is wanted",
    '"accuracy"': "it holds the text 'accuracy', an object is wanted",
    "{}": "it names no metric",
    '{"a": 1': "line 1, column 8: not JSON: expecting ',' delimiter",
    '{"a": 1,\n "b": NaN}': "line 2, column 7: NaN is no number",
    '{"NaN": -Infinity}': "line 1, column 9: -Infinity is no number",
    '{"a": 1e999}': "metric 'a': inf where a finite number is wanted",
    '{"a": "0.9 %"}': "metric 'a': the text '0.9 %' where a number is wanted",
    '{"a": "0.9"}': "metric 'a': the text '0.9' where a number is wanted",
    '{"a": true}': "metric 'a': true where a number is wanted",
    '{"a": null}': "metric 'a': null where a number is wanted",
    '{"a": [1]}': "metric 'a': a list where a number is wanted",
    '{"a": 1, "a": 2}': "the name 'a' stands twice in one object",
    '{"a": ' + "[" * 70 + "]" * 70 + "}": "the JSON is nested deeper than 64 levels",
    '{"a": ' + "[" * 99999 + "]" * 99999 + "}": "the JSON is nested deeper than 64 levels",
    '{"a": ' + "9" * 5000 + "}": "a number has more than 4300 digits",
    '{"a": ' + "9" * 400 + "}": "metric 'a': a number too large for a float64",
    '{"\\ud800": 1}': "holds a lone surrogate",
    '{"\\u001b[31m": null}': "metric '\\x1b[31m': null where a number is wanted",
}


@pytest.mark.parametrize(("text", "sentence"), BAD.items(), ids=lambda text: text[:20])
def test_a_wrong_file_earns_its_sentence(file, text, sentence):
    file.write_text(text, "utf-8")

    assert sentence in refused(metrics, file).reason


def test_files_that_are_none_are_refused(tmp_path):
    refuses_bad_files(metrics, tmp_path, ".json")


@mutated
def test_mutants_do_no_harm(file, count):
    file.write_text('{"accuracy": 0.91, "eval_loss": 0.33, "é": -1e-3}', "utf-8")

    survives_mutants(metrics, file, count)
