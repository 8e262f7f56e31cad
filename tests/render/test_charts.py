"""The figures for plotly: valid by plotly's own schema, and only of what is known."""

import json

import plotly.graph_objects as go
import pytest
from render.reports import EVERY, HOSTILE, changed, identical, report, told_by_analyses

from difflens.render.charts import as_json, figures, library


@pytest.mark.parametrize("name", EVERY)
def test_every_figure_is_valid_by_plotlys_own_schema(name):
    for figure in figures(EVERY[name]()):
        go.Figure(data=figure["data"], layout=figure["layout"])


def test_a_report_with_everything_has_a_chart_of_everything():
    titles = [figure["title"] for figure in figures(told_by_analyses())]

    assert titles == [
        "Blocks by part: relative L2",
        "Relative L2 by depth",
        "Singular values of the change, with the edge of noise",
        "Distribution of the values, by quantiles",
        "Intervals",
        "Trajectory: cosine of successive moves",
        "Trajectory: length of each move",
    ]


def test_there_is_no_chart_of_what_is_not_known():
    assert figures(identical()) == []


def test_the_heat_map_has_the_same_scale_in_every_report():
    far = report(*(changed(f"h.{i}.w", relative_l2=3.0) for i in range(2)))

    scales = {(trace["zmin"], trace["zmax"]) for trace in heat_maps(far, told_by_analyses())}

    assert scales == {(-6.0, 0)}


def heat_maps(*reports):
    return [figures(each)[0]["data"][0] for each in reports]


def test_no_name_ends_the_element_its_figure_lies_in():
    told = figures(report(*(changed(f"h.{i}.{name}") for i in range(2) for name in HOSTILE)))

    text = as_json(told)

    assert not {"<", ">", "&"} & set(text)
    assert json.loads(text) == told


def test_the_library_lies_in_the_page_as_a_browser_will_read_it():
    text = library()

    assert "plotly.js v" in text[:200]
    assert "\r" not in text
    assert "</script" not in text.lower()
