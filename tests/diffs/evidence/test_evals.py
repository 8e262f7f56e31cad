"""Per-example results, as CSV, JSON lines or a JSON list."""

import csv
import io
import json

import pytest
from diffs.evidence.refusals import mutated, refused, refuses_bad_files, survives_mutants
from hypothesis import given
from hypothesis import strategies as st

from difflens.diffs.evidence.measurements import evals
from difflens.diffs.evidence.records import Example

LABELS = st.text(st.characters(codec="utf-8"), min_size=1).filter(lambda text: text == text.strip())
EXAMPLES = st.lists(
    st.builds(
        Example,
        LABELS,
        st.floats(allow_nan=False, allow_infinity=False),
        LABELS,
        st.none() | LABELS,
    ),
    min_size=1,
    unique_by=lambda each: (each.id, each.metric),
)
COLUMNS = ("id", "score", "metric", "cluster")


@pytest.fixture
def file(tmp_path):
    return tmp_path / "evals"


def as_csv(found) -> str:
    out = io.StringIO(newline="")
    writer = csv.writer(out)
    writer.writerow(COLUMNS)
    writer.writerows([each.id, each.score, each.metric, each.cluster] for each in found)
    return out.getvalue()


def as_lines(found) -> str:
    return "\n".join(json.dumps(each.to_dict()) for each in found)


def as_list(found) -> str:
    return json.dumps([each.to_dict() for each in found])


@pytest.mark.parametrize("write", [as_csv, as_lines, as_list])
@given(found=EXAMPLES)
def test_what_was_written_is_read_back(tmp_path_factory, write, found):
    file = tmp_path_factory.mktemp("evals") / "evals"
    file.write_bytes(write(found).encode())

    assert tuple(found) == evals(file)


def test_a_metric_and_a_cluster_need_not_be_there(file):
    file.write_bytes(b'\xef\xbb\xbfid,score\r\n1,0.5\r\n"a, b",1\r\n\r\n')

    assert evals(file) == (Example("1", 0.5), Example("a, b", 1.0))


def test_one_id_may_stand_once_a_metric(file):
    file.write_text("id,score,metric\n1,0,f1\n1,1,em\n")

    assert [each.metric for each in evals(file)] == ["f1", "em"]


BAD = {
    "id,score\n": "it has a header and no row",
    "id\n1\n": "line 1: there is no column 'score'",
    "id,score,split\n1,2,test\n": "line 1: the column 'split' is not known",
    "id,score,score\n1,2,3\n": "line 1: the column 'score' stands twice",
    "id,,score\n1,2,3\n": "line 1: a column has no name",
    "id,score\n1\n": "line 2 has 1 cells, the header has 2",
    "id,score\n1,2,3\n": "line 2 has 3 cells, the header has 2",
    "id,score\n1,x\n": "line 2, column 'score': the text 'x' where a number is wanted",
    "id,score\n1,\n": "line 2, column 'score': nothing where a number is wanted",
    "id,score\n1,nan\n": "line 2, column 'score': nan where a finite number is wanted",
    "id,score\n1,-inf\n": "line 2, column 'score': -inf where a finite number is wanted",
    "id,score\n1,1_0\n": "line 2, column 'score': the text '1_0' where a number is wanted",
    "id,score\n,1\n": "line 2, column 'id': nothing where text is wanted",
    "id,score\n1,1\n\n1,2\n": "line 4: the id '1' of metric 'score' stands in line 2 already",
    'id,score\n"1,1\n': "not CSV: unexpected end of data",
    'id,score\n"1"x,1\n': "not CSV: ',' expected after '\"'",
    '{"id": 1, "score": "1"}': "line 1, column 'score': the text '1' where a number is wanted",
    '{"id": 1, "score": true}\n': "line 1, column 'score': true where a number is wanted",
    '{"id": 1, "score": 1}\n{"id": 2, "score": NaN}': "line 2, column 20: NaN is no number",
    '{"id": 1, "score": 1}\n[2]': "line 2: a list where an object is wanted",
    '{"id": [1], "score": 1}': "line 1, column 'id': a list where text is wanted",
    '{"id": 1,\n "score": 2}': "line 1, column 10: not JSON",
    "[]": "it has no row",
    "[1]": "entry 1: a number where an object is wanted",
    '[{"id": 1}]': "entry 1: there is no column 'score'",
    "id;score\n1;2\n": "line 1: there is no column 'id'",
}


@pytest.mark.parametrize(("text", "sentence"), BAD.items(), ids=lambda text: text[:30])
def test_a_wrong_file_earns_its_sentence(file, text, sentence):
    file.write_text(text, "utf-8")

    assert sentence in refused(evals, file).reason


def test_files_that_are_none_are_refused(tmp_path):
    refuses_bad_files(evals, tmp_path, ".csv")


@pytest.mark.parametrize(
    "good",
    [
        'id,score,cluster\na,1,x\nb,0.5,x\n"c,d",0,y\n',
        '{"id": 1, "score": 0.5}\n{"id": "b", "score": 1, "metric": "f1"}\n',
    ],
    ids=["csv", "jsonl"],
)
@mutated
def test_mutants_do_no_harm(file, good, count):
    file.write_text(good, "utf-8")

    survives_mutants(evals, file, count)
