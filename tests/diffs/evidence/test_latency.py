"""Latencies: numbers in lines, or a table with ms and run."""

import pytest
from diffs.evidence.refusals import mutated, refused, refuses_bad_files, survives_mutants
from hypothesis import given
from hypothesis import strategies as st

from difflens.diffs.evidence.measurements import latency
from difflens.diffs.evidence.records import Latency

MILLISECONDS = st.lists(st.floats(0, 1e9), min_size=1)


@pytest.fixture
def file(tmp_path):
    return tmp_path / "latency"


@given(MILLISECONDS)
def test_numbers_in_lines_are_read_back(tmp_path_factory, found):
    file = tmp_path_factory.mktemp("latency") / "latency"
    file.write_text("\n".join(map(repr, found)))

    assert [each.ms for each in latency(file)] == found


@given(MILLISECONDS)
def test_a_column_ms_is_the_same_as_numbers_in_lines(tmp_path_factory, found):
    file = tmp_path_factory.mktemp("latency") / "latency"
    file.write_text("ms\r\n" + "\r\n".join(map(repr, found)))

    assert [each.ms for each in latency(file)] == found


def test_a_run_is_kept_where_it_is_named(file):
    file.write_text("run,ms\na,1.5\n,2\n")

    assert latency(file) == (Latency(1.5, "a"), Latency(2.0, None))


BAD = {
    "1\n2\nx\n": "line 3: the text 'x' where a number is wanted",
    "1\n-2\n": "line 2: -2.0 ms, a latency is not negative",
    "1\nnan\n": "line 2: nan where a finite number is wanted",
    "inf\n": "line 1: inf where a finite number is wanted",
    "1,2\n": "line 1: the text '1,2' where a number is wanted",
    "1_000\n": "line 1: the text '1_000' where a number is wanted",
    "ms\n": "it has a header and no row",
    "ms,host\n1,x\n": "line 1: the column 'host' is not known",
    "seconds\n1\n": "line 1: there is no column 'ms'",
    "ms\n-1\n": "line 2, column 'ms': -1.0 ms, a latency is not negative",
    '{"ms": "fast"}': "line 1, column 'ms': the text 'fast' where a number is wanted",
    "[1, 2]": "entry 1: a number where an object is wanted",
}


@pytest.mark.parametrize(("text", "sentence"), BAD.items(), ids=lambda text: text[:30])
def test_a_wrong_file_earns_its_sentence(file, text, sentence):
    file.write_text(text, "utf-8")

    assert sentence in refused(latency, file).reason


def test_files_that_are_none_are_refused(tmp_path):
    refuses_bad_files(latency, tmp_path, ".csv")


@pytest.mark.parametrize("good", ["1.5\n2.25\n3\n", "ms,run\n1.5,a\n2,b\n"])
@mutated
def test_mutants_do_no_harm(file, good, count):
    file.write_text(good, "utf-8")

    survives_mutants(latency, file, count)
