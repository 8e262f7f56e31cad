"""The charts of every tensor: inside their frame, named, and only of what is known."""

import pytest
from render.reports import EVERY, changed, identical, info, report, row, stats

from difflens.render.report.charts import charts


@pytest.mark.parametrize("name", EVERY)
def test_everything_lies_inside_its_drawing(name):
    for drawn in charts(EVERY[name]()):
        for dot in drawn.dots:
            assert 0 <= dot.x <= drawn.width
            assert 0 <= dot.y <= drawn.height
        for label in drawn.labels:
            assert 0 <= label.x <= drawn.width
            assert 0 <= label.y <= drawn.height


def test_there_is_no_chart_of_what_is_not_known():
    assert charts(identical()) == []
    assert charts(report(changed("w"))) == []


def test_each_chart_shows_a_tensor_where_its_numbers_are():
    rows = [
        row(
            f"h.{place}.w",
            right=info(f"h.{place}.w", shape=(10 ** (place + 1),)),
            left_stats=stats(std=0.1),
            right_stats=stats(std=0.1 * (place + 1)),
            figures=changed("w", relative_l2=10.0**-place, cosine=0.5).figures.to_dict(),
        )
        for place in range(3)
    ]

    size, counts, spread, turn = charts(report(*rows))

    assert [dot.said for dot in size.dots] == [
        "h.0.w: parameters 10, relative L2 1",
        "h.1.w: parameters 100, relative L2 0.1",
        "h.2.w: parameters 1e+03, relative L2 0.01",
    ]
    assert [dot.x for dot in size.dots] == sorted(dot.x for dot in size.dots)
    assert [dot.y for dot in size.dots] == sorted(dot.y for dot in size.dots)
    assert len(counts.paths) == 3
    assert counts.paths[0].said.startswith("1 tensor from ")
    assert spread.dots[0].x == spread.dots[2].x
    assert spread.dots[0].y > spread.dots[2].y
    assert len(turn.dots) == 3


def test_a_broken_tensor_stands_out_and_has_a_key():
    burnt = changed("burnt", right_nonfinite=2)

    drawn = charts(report(burnt, changed("w", relative_l2=0.5)))[0]

    assert [dot.kind for dot in drawn.dots if "burnt" in dot.said] == ["broken"]
    assert [key.text for key in drawn.keys] == ["broken: NaN, infinite or all zero"]
