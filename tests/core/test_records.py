"""What every record can do for its caller: plain data, a table, one line."""

import sys

import numpy as np
import pytest

import difflens
from difflens.core.errors import DifflensError
from difflens.core.findings import Finding
from difflens.core.records import Figures, TensorInfo, _TypedFigures

LEFT = {"w": np.ones((2, 3)), "gone": np.ones(2), "same": np.ones(4)}
RIGHT = {"w": np.full((2, 3), 2.0), "new": np.ones(2), "same": np.ones(4)}


@pytest.fixture
def diff():
    return difflens.diff(LEFT, RIGHT)


def test_a_record_is_one_line_that_leaves_out_what_is_not_set():
    info = TensorInfo("w", "F32", (2, 3))
    finding = Finding("drift", "w", "moved", {}, "high")

    assert repr(info) == "TensorInfo(name='w', dtype='F32', shape=(2, 3))"
    assert repr(finding) == "Finding(name='drift', subject='w', text='moved', severity='high')"


def test_nested_and_long_values_are_counted_and_the_line_is_short(diff):
    text = repr(diff.report())

    assert text.startswith("Report(left=<ModelInfo>, right=<ModelInfo>, totals=<Totals>")
    assert "tensors=<4 items>" in text
    assert len(repr(TensorInfo("x" * 5000, "F32", ()))) < 200


def test_a_delta_shows_its_name_its_kind_and_its_figures(diff):
    text = repr(diff["w"])

    assert text.startswith("Delta(name='w', kind='changed', relative_l2=1, ")
    assert repr(diff["gone"]) == "Delta(name='gone', kind='removed')"


def test_every_figure_of_a_delta_is_an_attribute_and_none_where_unknown(diff):
    for delta in diff.deltas:
        for name in Figures.__struct_fields__:
            assert name in dir(delta)
            getattr(delta, name)

    assert diff["w"].relative_l2 == 1
    assert diff["gone"].relative_l2 is None
    with pytest.raises(AttributeError, match="no figure is called 'relativ_l2'"):
        _ = diff["w"].relativ_l2


def test_the_typed_figures_of_a_delta_are_those_of_the_record():
    assert _TypedFigures.__annotations__ == Figures.__annotations__


def test_a_delta_and_a_diff_are_plain_data(diff):
    delta = diff["w"].to_row()

    assert (delta["name"], delta["kind"], delta["left"]["dtype"]) == ("w", "changed", "F64")
    assert delta["relative_l2"] == 1
    assert diff.to_dict()["totals"]["tensors"] == 4


def test_a_diff_and_a_report_are_tables_with_a_row_for_each_tensor(diff):
    pytest.importorskip("pandas")

    table, report = diff.to_pandas().set_index("name"), diff.report().to_pandas()

    assert table.loc["w", "relative_l2"] == 1
    assert sorted(report["name"]) == ["gone", "new", "same", "w"]
    assert report.set_index("name").loc["w", "figures.relative_l2"] == 1


def test_an_analysis_of_weights_is_a_table_of_layers():
    pytest.importorskip("pandas")
    analyzer = difflens.WeightAnalyzer()

    layers = analyzer.analyze_weight_distribution(LEFT).to_pandas()
    drift = analyzer.analyze_weight_drift(LEFT, RIGHT).to_pandas()

    assert list(layers["name"]) == list(LEFT)
    assert layers["statistics.mean"].tolist() == [1, 1, 1]
    assert list(drift["name"]) == ["w", "same"]


def test_without_pandas_one_line_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)

    with pytest.raises(DifflensError) as error:
        TensorInfo("w", "F32", ()).to_pandas()

    assert str(error.value) == "to_pandas needs pandas"
    assert error.value.hint == "run: pip install pandas"


def test_dir_lists_the_public_names_and_nothing_else():
    names = dir(difflens)

    assert {"diff", "open_model", "WeightAnalyzer", "__version__"} <= set(names)
    assert not [name for name in names if name.startswith("_") and name != "__version__"]
    assert "import_module" not in names
