"""The numbers of the heat map."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from training.flow.flows import recorded

from difflens.core.errors import UnknownName
from difflens.training.flow.picture import chosen_rows, intensities, merged, scale_of
from difflens.training.records.flow import FLOW_STATES, FlowPicture

sizes = st.floats(1e-20, 1e20)


def flow(values):
    return recorded(*({f"l{i}": [size] for i, size in enumerate(row)} for row in values),
                    vanishing_threshold=None, exploding_threshold=None)  # fmt: skip


def plane(picture: FlowPicture, name: str) -> np.ndarray:
    kind = "<u2" if name in {"codes", "lows", "highs"} else np.uint8
    shape = (len(picture.layers), picture.columns)
    return np.frombuffer(getattr(picture, name), kind).reshape(shape)


@given(arrays(np.float64, st.tuples(st.integers(1, 30), st.integers(1, 4)), elements=sizes),
       st.integers(1, 12))  # fmt: skip
def test_no_extreme_is_lost_however_few_columns_there_are(values, columns):
    picture = flow(values).picture(columns=columns)
    off = 1 + (picture.code_high - picture.code_low) / 65519 * 2.4  # half a code, as a ratio

    for row in range(values.shape[1]):
        lowest = min(map(picture.value, plane(picture, "lows")[row].tolist()))
        highest = max(map(picture.value, plane(picture, "highs")[row].tolist()))
        assert lowest == pytest.approx(values[:, row].min(), rel=off - 1 + 1e-9)
        assert highest == pytest.approx(values[:, row].max(), rel=off - 1 + 1e-9)
    assert picture.columns == min(columns, len(values))
    assert sum(picture.spans) == picture.frames == len(values)


@given(st.integers(1, 200), st.integers(1, 60), st.data())
def test_one_flagged_frame_flags_its_column(frames, columns, data):
    bad = data.draw(st.integers(0, frames - 1))
    steps = [{"a": [np.nan if step == bad else 1.0]} for step in range(frames)]
    picture = recorded(*steps).picture(columns=columns)
    (found,) = np.flatnonzero(plane(picture, "states")[0] == FLOW_STATES.index("non_finite"))

    assert picture.first_steps[found] <= bad <= picture.steps[found]


def test_a_spike_and_a_dip_are_drawn_not_averaged_away():
    values = np.ones((1000, 2))
    values[500, 0], values[500, 1] = 1e4, 1e-4
    levels = plane(flow(values).picture(columns=10), "levels")

    assert levels[0].argmax() == levels[1].argmin() == 5
    assert levels[0, 5] == 240
    assert levels[1, 5] == 0


class TestScale:
    """DD-06: what a shade means."""

    def test_it_is_one_for_the_run_also_for_frames_that_left_the_window(self):
        steps = [{"a": [1e4]}, {"a": [1.0]}]
        whole, cut = (recorded(*steps, max_frames=size).picture() for size in (0, 1))

        assert plane(whole, "levels")[0, 1] == plane(cut, "levels")[0, 0] == 0

    def test_by_layer_every_layer_has_its_whole_range(self):
        levels = plane(flow([[1.0, 1e-6], [100.0, 1e-4]]).picture(scale="layer"), "levels")

        assert levels.tolist() == [[0, 240], [0, 240]]

    def test_by_frame_every_frame_has_its_whole_range(self):
        levels = plane(flow([[1.0, 100.0], [1e-6, 1e-4]]).picture(scale="frame"), "levels")

        assert levels.tolist() == [[0, 0], [240, 240]]

    @given(st.floats(1e-100, 1e100), st.floats(0, 40))
    def test_it_runs_over_one_decade_at_least_and_twelve_at_most(self, high, decades):
        low, top = scale_of((high / 10**decades, high))

        assert top == high
        assert 1 - 1e-9 <= np.log10(top / low) <= 12 + 1e-9

    def test_halves_of_five_levels_go_away_from_zero(self):
        """Hazard 1: an eighth is the darker of two shades, where numpy would go to the even one."""
        animator = flow([[1.0], [10**-3.5], [1e-4]])

        assert plane(animator.picture(), "levels").tolist() == [[240, 30, 0]]
        assert "l0  █░" in animator.to_ascii_animation()

    def test_zero_is_the_lightest_and_no_value_has_no_place(self):
        found = intensities([0.0, np.nan, 1.0], (1e-3, 1.0))

        assert found[[0, 2]].tolist() == [0.0, 1.0]
        assert np.isnan(found[1])


class TestRows:
    def cells(self, ill):
        names = {f"l{i}": [np.nan] if i in ill else [1.0] for i in range(100)}
        return recorded(names).cells()

    def test_the_worst_are_kept_and_the_rest_evenly_spaced(self):
        kept = chosen_rows(self.cells({3, 77}), 10)

        assert {3, 77} <= set(kept)
        assert kept == sorted(kept)
        assert len(kept) <= 10
        assert (kept[0], kept[-1]) == (0, 99)

    def test_many_bad_ones_leave_room_for_others(self):
        kept = chosen_rows(self.cells(set(range(60))), 10)

        assert len([place for place in kept if place >= 60]) >= 2
        assert len([place for place in kept if place < 60]) >= 5

    @given(st.integers(1, 120))
    def test_never_more_than_asked_for(self, rows):
        picture = recorded({f"l{i}": [1.0] for i in range(100)}).picture(rows=rows)

        assert 1 <= len(picture.layers) <= min(rows, 100)
        assert picture.all_layers == 100


def test_merging_weighs_a_point_by_its_frames():
    cells = flow([[1.0], [4.0], [7.0]]).cells()._replace(spans=np.array([1, 2, 3]))

    assert merged(cells, 1).mean.tolist() == [[(1 + 2 * 4 + 3 * 7) / 6]]


def test_a_picture_of_nothing_has_no_columns():
    assert recorded().picture().columns == 0
    assert recorded({}).picture().layers == ()


def test_an_order_or_a_field_that_is_not_known_is_refused():
    with pytest.raises(UnknownName, match="order"):
        recorded({"a": [1.0]}).picture(order="reverse")
    with pytest.raises(UnknownName, match="field"):
        recorded({"a": [1.0]}).picture(field="grad_l3")


@given(st.lists(st.text("ab019.", max_size=6), unique=True, max_size=8))
def test_natural_order_keeps_every_layer(names):
    picture = recorded({key: [1.0] for key in names}).picture(order="natural")

    assert sorted(picture.layers) == sorted(names)
