"""Past versions of metrics."""

import pytest
from diffs.evidence.refusals import mutated, refused, refuses_bad_files, survives_mutants

from difflens.diffs.evidence.desk import history
from difflens.diffs.evidence.records import Past

GOOD = "version,metric,value,time\n1.0,accuracy,0.9,2024-01-01\n1.1,accuracy,0.91,\n"


@pytest.fixture
def file(tmp_path):
    return tmp_path / "history.csv"


def test_rows_keep_the_order_of_the_file(file):
    file.write_text(GOOD)

    assert history(file) == (
        Past("1.0", "accuracy", 0.9, "2024-01-01"),
        Past("1.1", "accuracy", 0.91),
    )


BAD = {
    "version,metric,value\n": "it has a header and no row",
    "version,value\n1,2\n": "line 1: there is no column 'metric'",
    "version,metric,value,commit\n1,a,2,f\n": "line 1: the column 'commit' is not known",
    "version,metric,value\n1,a,\n": "line 2, column 'value': nothing where a number is wanted",
    "version,metric,value\n1,a,n/a\n": "the text 'n/a' where a number is wanted",
    "version,metric,value\n1,a,NaN\n": "NaN where a finite number is wanted"[4:],
    "version,metric,value\n,a,1\n": "line 2, column 'version': nothing where text is wanted",
    "version,metric,value\n1,,1\n": "line 2, column 'metric': nothing where text is wanted",
    "version,metric,value\n1,a,1\n1,a,2\n": "of metric 'a' stands in line 2 already",
    "version,metric,value\n1,a\n": "line 2 has 2 cells, the header has 3",
    '{"version": 1.5, "metric": "a", "value": 1}': "column 'version': a number where text",
}


@pytest.mark.parametrize(("text", "sentence"), BAD.items(), ids=lambda text: text[-20:])
def test_a_wrong_file_earns_its_sentence(file, text, sentence):
    file.write_text(text, "utf-8")

    assert sentence in refused(history, file).reason


def test_files_that_are_none_are_refused(tmp_path):
    refuses_bad_files(history, tmp_path, ".csv")


@mutated
def test_mutants_do_no_harm(file, count):
    file.write_text(GOOD, "utf-8")

    survives_mutants(history, file, count)
