from csv import DictReader
from io import StringIO
from typing import Any

import pytest
from render.reports import EVERY, HOSTILE, M, changed, every_kind, hostile, nonfinite, report, row

from difflens.core.escape import for_csv
from difflens.core.records import Report, View
from difflens.render.diffs.csv import csv

HEADER = (
    "name,kind,left_dtype,right_dtype,left_shape,right_shape,relative_l2,symmetric_l2,cosine,"
    "pearson,max_abs,max_abs_index,mean_abs,l2,changed_count,changed_fraction,over_epsilon_count,"
    "bit_equal_count,sign_flips,sqnr_db,within_storage_rounding,left_nonfinite,right_nonfinite,"
    "transform\n"
)


def read(shown: Report, **view: Any) -> list[dict[str, str]]:
    return list(DictReader(StringIO(csv(shown, View(**view)), newline="")))


def test_a_changed_tensor_is_one_line_with_every_figure() -> None:
    assert csv(report(changed("w")), View()) == HEADER + (
        "w,changed,F32,F32,64x3,64x3,0.0312,0.0311,0.9995,0.9994,0.004,3x1,0.001,0.5,192,1.0,192,"
        "0,2,30.1,false,0,0,\n"
    )


def test_every_row_that_differs_is_there_and_verbose_adds_the_rest() -> None:
    kinds = [each["kind"] for each in read(every_kind())]

    assert kinds == [
        "changed", "changed", "changed", "recast", "recast", "recast", "reshaped", "reshaped",
        "added", "removed", "renamed", "changed", "tied", "uncompared",
    ]  # fmt: skip
    assert len(read(every_kind(), verbose=True)) == len(every_kind().tensors)


def test_a_side_that_is_not_there_is_empty_and_a_scalar_is_named() -> None:
    rows = {each["name"]: each for each in read(every_kind())}

    assert (rows["head.bias"]["left_dtype"], rows["head.bias"]["left_shape"]) == ("", "")
    assert (rows["conv.both"]["left_shape"], rows["conv.both"]["right_shape"]) == ("64x3", "scalar")


def test_hostile_names_come_back_behind_an_apostrophe_where_they_look_like_a_formula() -> None:
    names = [each["name"] for each in read(hostile()) if each["kind"] == "changed"]

    plain = [name.encode("utf-8", "backslashreplace").decode() for name in HOSTILE]
    assert [for_csv(name) for name in plain] == names


@pytest.mark.parametrize("made", EVERY.values(), ids=EVERY)
def test_no_text_cell_starts_a_formula_and_no_cell_is_nan(made: Any) -> None:
    rows = read(made(), verbose=True)

    for cells in rows:
        assert None not in cells
        for column in ("name", "kind", "left_dtype", "right_dtype"):
            assert not cells[column].startswith(("=", "+", "-", "@", "\t", "\r"))
        assert not {"nan", "inf", "-inf"} & set(cells.values())
    assert csv(made(), View()).encode()


def test_numbers_that_are_not_finite_are_empty() -> None:
    assert [read(nonfinite())[0][name] for name in ("relative_l2", "cosine", "max_abs")] == [""] * 3


def test_a_figure_of_a_further_measure_gets_a_column_at_the_end() -> None:
    shown = report(row("w", figures=M | {"rank": 8}), row("v", "added"))

    assert csv(shown, View()).splitlines()[0] == HEADER.strip() + ",rank"
    assert [each["rank"] for each in read(shown)] == ["8", ""]


def test_a_structure_has_no_column() -> None:
    assert csv(report(changed("w", quantiles={"left": [1.0]})), View()).startswith(HEADER)
