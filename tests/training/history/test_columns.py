"""Names of columns: whatever a layer or a scalar is called comes back, and nothing is a formula."""

import csv
import io

from hypothesis import given
from hypothesis import strategies as st

from difflens.core.escape import for_csv
from difflens.training.history.exported import (
    TIMES,
    column_from,
    columns_of,
    layer_column,
    scalar_column,
)
from difflens.training.records.runs import Layer, RunInfo

names = st.text(st.characters(exclude_categories=["Cs"])) | st.sampled_from(
    [*TIMES, "=1+1", "layers/a/b", "scalars/x", "", "%2F", "a/b", "-x", "\r", "\t"]
)


@given(names, names)
def test_any_name_comes_back(field, name):
    assert column_from(scalar_column(name)) == (None, name)
    assert column_from(layer_column(field, name)) == (field, name)


@given(names, names)
def test_no_column_is_a_formula_or_a_time(field, name):
    for column in (scalar_column(name), layer_column(field, name)):
        assert for_csv(column) == column
        assert column not in TIMES


@given(st.lists(names, unique=True), st.lists(names, unique=True), st.lists(names, unique=True))
def test_no_two_columns_have_one_name_and_csv_keeps_them_apart(scalars, fields, layers):
    info = RunInfo(layers=tuple(map(Layer, layers)), fields=tuple(fields), scalars=tuple(scalars))
    every = [*TIMES, *columns_of(info)[0], *columns_of(info)[1]]
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\r\n").writerow(every)

    assert len(set(every)) == len(every)
    assert next(csv.reader(io.StringIO(text.getvalue(), newline=""))) == every
