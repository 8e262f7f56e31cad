"""Small drawings: nothing is drawn that is not known, and all of it lies inside its box."""

import re

from hypothesis import given
from hypothesis import strategies as st
from render.reports import EVERY, changed, report, told_by_analyses

from difflens.core.findings import Envelope, Interval
from difflens.render.report.drawings import courses, depth, overlays, spectra, whiskers

finite = st.floats(allow_nan=False, allow_infinity=False, width=32)
anything = st.none() | st.booleans() | st.floats() | st.text(max_size=3)


def spectral(*values: object, edge: object = None):
    record = {"name": "w", "singular_values": list(values), "noise_edge": edge}
    return report(analyses=(Envelope("spectral_analysis", "ok", {"spectra": [record]}),))


def points(path: str) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in re.findall(r"([\d.-]+) ([\d.-]+)", path)]


def lies_inside(drawn) -> bool:
    spots = [point for path in drawn.paths for point in points(path.d)]
    spots += [(label.x, label.y) for label in drawn.labels]
    return all(0 <= x <= drawn.width and 0 <= y <= drawn.height for x, y in spots)


@given(st.lists(anything), anything)
def test_a_spectrum_stays_in_its_box_whatever_is_in_it(values, edge):
    for drawn in spectra(spectral(*values, edge=edge)):
        assert len(drawn.paths) == 1
        assert lies_inside(drawn)


def test_what_is_above_the_edge_is_drawn_above_it():
    (drawn,) = spectra(spectral(10.0, 1.0, 0.1, edge=0.5))

    heights = [y for _, y in points(drawn.paths[0].d)]
    (edge,) = [stroke.y1 for stroke in drawn.strokes if stroke.kind == "edge"]
    assert heights[0] < heights[1] < edge < heights[2]


@given(st.lists(anything | st.floats(), min_size=2, max_size=5), st.floats())
def test_two_distributions_stay_in_one_box(values, other):
    quantiles = {"shares": [0.0, 1.0], "left": values, "right": [other, 1.0]}

    for drawn in overlays(report(changed("w", quantiles=quantiles))):
        assert lies_inside(drawn)


def test_distributions_of_unlike_lengths_are_not_drawn():
    quantiles = {"shares": [0.0, 1.0], "left": [0.0, 1.0], "right": [0.0]}

    assert overlays(report(changed("w", quantiles=quantiles))) == []


@given(finite, finite, st.none() | finite)
def test_an_interval_is_drawn_in_order_and_inside(one, other, value):
    low, high = sorted((one, other))
    envelope = Envelope("a", "ok", {"x": value}, uncertainty={"x": Interval(low, high)})

    (drawn,) = whiskers(report(analyses=(envelope,)))

    places = [float(drawn.low_place), float(drawn.high_place), float(drawn.zero_place)]
    assert all(0 <= place <= 100 for place in places)
    assert places[0] <= places[1]
    assert bool(drawn.value_place) == (value is not None)


def test_an_interval_without_both_ends_is_not_drawn():
    known = {"x": Interval(None, 1.0), "y": Interval(0.0, float("inf")), "z": "exact"}
    envelope = Envelope("a", "ok", {"x": 1.0, "y": 1.0, "z": 1}, uncertainty=known)

    assert whiskers(report(analyses=(envelope,))) == []


def test_nothing_is_drawn_of_a_report_without_such_numbers():
    for name in ("hostile", "identical", "nonfinite"):
        made = EVERY[name]()
        assert (spectra(made), whiskers(made), depth(made), courses(made)) == ([], [], [], [])


def test_the_depth_profile_runs_over_six_decades():
    bars = depth(told_by_analyses())

    assert [bar.name for bar in bars] == [f"layers.{layer}" for layer in range(7)]
    assert bars[0].height == "0.0"
    assert bars[0].said == "relative L2 0"
    assert all(0 < float(bar.height) <= 100 for bar in bars[1:])


def test_a_course_of_cosines_has_the_scale_of_cosines():
    cosines, norms = courses(told_by_analyses())

    assert {"-1", "1"} <= {label.text for label in cosines.labels}
    assert {"0", "3"} <= {label.text for label in norms.labels}
    assert len(points(norms.paths[0].d)) == 5


def test_a_block_with_a_broken_tensor_is_marked():
    profile = [{"block": f"h.{i}", "relative_l2": 0.1} for i in range(3)]
    envelope = Envelope("a", "ok", {"depth_profile": profile})

    bars = depth(report(changed("h.1.w", right_nonfinite=1), analyses=(envelope,)))

    assert [bar.is_broken for bar in bars] == [False, True, False]
