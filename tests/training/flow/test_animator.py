"""The animator: what it records, what it refuses, and every defect of the first one, by symptom."""

import csv
import json
from io import StringIO

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from training.flow.flows import recorded

import difflens.training.flow.files as files_of_flow
from difflens.core.errors import InvalidConfig, OutputError, RunError, SnapshotError
from difflens.training.flow.animator import GradientFlowAnimator
from difflens.training.records.flow import GradientFlowConfig, GradientFlowSummary, GradientFrame
from difflens.training.records.runs import Layer

HOSTILE = ("=1+1", 'a,"b"\nc', "\x1b[31m", "重み", "cr\rlf", "<script>alert(1)</script>")


def states(animator: GradientFlowAnimator) -> list[dict[str, str]]:
    return [{each.name: each.state for each in frame.layers} for frame in animator.frames]


class TestParity:
    """The tests that came with the first animator."""

    def test_two_layers_in_one_step_are_one_frame_with_two_layers(self):
        (frame,) = recorded({"a": [0.1], "b": [0.2]}).frames

        assert [layer.name for layer in frame.layers] == ["a", "b"]

    def test_a_window_of_three_keeps_three_of_ten(self):
        animator = recorded(*[{"a": [0.1]}] * 10, max_frames=3)

        assert [frame.step for frame in animator.frames] == [7, 8, 9]

    def test_small_values_vanish_and_usual_ones_do_not(self):
        animator = GradientFlowAnimator().with_vanishing_threshold(1e-6)
        animator.record_step(0, {"small": [1e-8] * 4, "usual": [0.01] * 4})

        assert [layer.is_vanishing for layer in animator.frames[0].layers] == [True, False]

    def test_large_values_explode_and_usual_ones_do_not(self):
        animator = GradientFlowAnimator().with_exploding_threshold(100)
        animator.record_step(0, {"large": [500.0], "usual": [0.1]})

        assert [layer.is_exploding for layer in animator.frames[0].layers] == [True, False]

    def test_five_usual_steps_are_healthy(self):
        summary = recorded(*[{"a": [0.1], "b": [0.1]}] * 5).summary_report()

        assert summary.overall_health == "Healthy"
        assert summary.layers_with_vanishing_grads == summary.layers_with_exploding_grads == ()

    def test_json_is_read_back(self, tmp_path):
        path = tmp_path / "deep" / "folder" / "flow.json"
        animator = recorded({"a": [0.1]}, {"a": [0.2]})

        animator.export_json(path)

        assert len(GradientFlowAnimator.from_json(path).frames) == 2

    def test_csv_is_a_header_and_rows(self, tmp_path):
        recorded({"a": [0.1], "b": [0.2]}).export_csv(tmp_path / "deep" / "flow.csv")
        lines = (tmp_path / "deep" / "flow.csv").read_text().splitlines()

        wanted = "step,layer,mean_abs_grad,max_abs_grad,grad_norm,is_vanishing,is_exploding"
        assert lines[0].startswith(wanted)
        assert len(lines) == 3

    def test_an_empty_heat_map_says_so(self):
        assert GradientFlowAnimator().to_ascii_animation().strip() == (
            "(no gradient frames recorded)"
        )

    def test_the_heat_map_names_every_layer(self):
        text = recorded({"first": [0.1], "second": [0.2]}).to_ascii_animation()

        assert "first" in text
        assert "second" in text


@given(
    st.lists(
        st.dictionaries(st.sampled_from("abc"), st.lists(st.floats(), max_size=4), max_size=3),
        max_size=6,
    ),
    st.integers(0, 4),
)
def test_json_gives_back_the_same_frames_and_summary(tmp_path_factory, steps, window):
    path = tmp_path_factory.mktemp("flow") / "flow.json"
    animator = recorded(*steps, max_frames=window)
    animator.export_json(path)

    again = GradientFlowAnimator.from_json(path)

    assert again.frames == animator.frames
    assert again.summary_report() == animator.summary_report()
    json.loads(path.read_text(), parse_constant=pytest.fail)  # no NaN, no Infinity


@given(st.lists(st.lists(st.floats(1e-30, 1e30), min_size=1, max_size=3), min_size=1, max_size=6))
def test_intensities_lie_between_nought_and_one(rows):
    for frame in recorded(*({"a": row, "b": row[:1]} for row in rows)).frames:
        for layer in frame.layers:
            assert layer.flow_intensity is not None
            assert 0 <= layer.flow_intensity <= 1


class TestDefects:
    """Each would pass on the first animator's faults turned round; the ids are debugger.md's."""

    def test_a_run_that_begins_late_has_not_more_steps_than_were_recorded(self):
        """DD-01."""
        summary = recorded(*[{"a": [0.1]}] * 3, first=1000).summary_report()

        assert (summary.total_steps, summary.frames_recorded) == (3, 3)
        assert (summary.first_step, summary.last_step) == (1000, 1002)

    def test_what_happened_before_the_window_is_still_in_the_summary(self):
        """DD-02."""
        steps = [{"a": [5e3]}, *[{"a": [0.1]}] * 50]
        summary = recorded(*steps, max_frames=2).summary_report()
        (layer,) = summary.layers

        assert summary.layers_with_exploding_grads == ("a",)
        assert (layer.states["exploding"], layer.first_exploding_step, layer.frames) == (1, 0, 51)
        assert (layer.peak_norm, layer.peak_step) == (5e3, 0)
        assert (summary.frames_retained, summary.frames_recorded) == (2, 51)

    @pytest.mark.parametrize("step", [7, 3, -1, 1.5, True, "8", None])
    def test_a_step_that_does_not_follow_is_refused_and_changes_nothing(self, step):
        """DD-03."""
        animator = recorded({"a": [0.1]}, first=7)

        with pytest.raises(RunError, match="step"):
            animator.record_step(step, {"b": [1.0]})

        assert (len(animator), animator.layers) == (1, ("a",))

    def test_a_step_with_a_bad_layer_changes_nothing(self):
        animator = recorded({"a": [0.1]})
        for bad in ({"b": [1.0], "a": ["x"]}, {"b": [1.0], 3: [1.0]}, {"\ud800": [1.0]}):
            with pytest.raises((RunError, SnapshotError)):
                animator.record_step(1, bad)

        assert animator.layers == ("a",)
        assert animator.summary_report().frames_recorded == 1

    def test_no_gradient_zero_frozen_and_vanishing_do_not_look_alike(self):
        """DD-04."""
        animator = GradientFlowAnimator().with_layers([Layer("fixed", trainable=False)])
        animator.record_step(
            0, {"fixed": None, "empty": [], "none": None, "zero": [0.0, 0.0], "tiny": [1e-12]}
        )
        expected = {"fixed": "frozen", "empty": "none", "none": "none", "zero": "zero",
                    "tiny": "vanishing"}  # fmt: skip

        assert states(animator) == [expected]

    def test_a_layer_vanishes_next_to_its_peers_whatever_the_scale(self):
        """DD-04: the ratio to the weights, not the absolute size."""
        weights = {key: [1.0] for key in "abcd"}
        for scale in (1e-3, 1.0, 100.0):
            animator = GradientFlowAnimator(vanishing_threshold=None)
            steps = {"a": [scale], "b": [2 * scale], "c": [3 * scale], "d": [1e-5 * scale]}
            animator.record_step(0, steps, weights)
            assert states(animator) == [dict.fromkeys("abc", "healthy") | {"d": "vanishing"}]

    def test_a_gradient_that_underflows_its_number_type_vanishes(self):
        """DD-04: precision."""
        small = np.full(100, 2e-7, np.float16)

        assert states(recorded({"a": small})) == [{"a": "vanishing"}]
        assert states(recorded({"a": small.astype(np.float32)})) == [{"a": "healthy"}]

    @pytest.mark.parametrize("odd", [np.nan, np.inf, -np.inf])
    def test_one_nan_is_critical_and_spoils_no_other_layer(self, odd):
        """DD-05."""
        animator = recorded({"bad": [0.1, odd], "good": [0.1, 0.1]})
        bad, good = animator.frames[0].layers
        summary = animator.summary_report()

        assert (bad.state, bad.non_finite, bad.grad_norm) == ("non_finite", 1, 0.1)
        assert (good.state, good.flow_intensity) == ("healthy", 1.0)
        assert summary.overall_health == "Critical"
        assert summary.layers_with_non_finite_grads == ("bad",)
        assert "first at step 0" in summary.recommendations[0]
        assert row(animator, "bad") == "x"

    def test_a_norm_that_falls_tenfold_a_step_changes_its_shade(self):
        """DD-06."""
        animator = recorded(*({"only": [10.0**-step]} for step in range(5)))
        places = [frame.layers[0].flow_intensity for frame in animator.frames]

        assert places == pytest.approx([1, 0.75, 0.5, 0.25, 0])
        assert row(animator, "only") == "█▓▒░"  # the last is a blank

    def test_what_lies_two_decades_below_the_largest_is_not_blank(self):
        """DD-06: a linear scale."""
        animator = recorded({"a": [1.0], "b": [0.01], "c": [1e-6]})

        assert row(animator, "b") not in {"", " "}

    def test_short_names_do_not_shift_the_columns(self):
        """DD-07."""
        lines = recorded({"a": [1.0]}, {"a": [1.0]}).to_ascii_animation().splitlines()

        assert lines[1].index("0") == lines[3].index("█") == 7

    def test_the_axis_says_steps_not_ordinals(self):
        """DD-07."""
        text = recorded(*[{"a": [1.0]}] * 12, first=500).to_ascii_animation()

        assert "500" in text.splitlines()[1]

    def test_a_layer_that_is_absent_does_not_look_like_zero(self):
        """DD-07."""
        animator = recorded({"a": [1.0], "b": [0.0]}, {"a": [1.0]})

        assert row(animator, "b") == "0·"

    def test_a_comma_a_quote_or_a_formula_in_a_name_breaks_no_table(self, tmp_path):
        """DD-08."""
        recorded({key: [0.1] for key in HOSTILE}).export_csv(tmp_path / "flow.csv")
        with (tmp_path / "flow.csv").open(newline="") as stream:
            rows = list(csv.DictReader(stream))

        assert [each["layer"].removeprefix("'") for each in rows] == list(HOSTILE)
        assert rows[0]["layer"] == "'=1+1"
        assert all(each["is_vanishing"] == "0" for each in rows)

    @given(st.floats(1e-300, 1e300))
    def test_numbers_of_the_table_read_back_as_they_were(self, value):
        """DD-08."""
        animator = recorded({"a": [value]})
        text = b"".join(animator.csv_pieces()).decode()
        (line,) = csv.DictReader(StringIO(text))
        layer = animator.frames[0].layers[0]

        assert float(line["grad_norm"]) == layer.grad_norm
        assert float(line["flow_intensity"]) == layer.flow_intensity

    def test_a_file_with_nan_is_json_and_is_read_back(self, tmp_path):
        """DD-09."""
        animator = recorded({"a": [np.nan]}, {"a": [np.inf, 1.0]})
        animator.export_json(tmp_path / "flow.json")
        plain = json.loads((tmp_path / "flow.json").read_text(), parse_constant=pytest.fail)

        assert {"schema", "config", "frames"} <= set(plain)
        assert plain["config"]["exploding_threshold"] == 1e3
        assert GradientFlowAnimator.from_json(tmp_path / "flow.json").frames == animator.frames

    def test_a_write_that_fails_leaves_the_older_file(self, tmp_path, monkeypatch):
        """DD-09."""
        path = tmp_path / "flow.json"
        recorded({"a": [1.0]}).export_json(path)
        before = path.read_bytes()

        def full(_descriptor: int) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(files_of_flow.os, "fsync", full)
        with pytest.raises(OutputError, match="no space left"):
            recorded({"a": [2.0]}).export_json(path)

        assert path.read_bytes() == before
        assert [each.name for each in tmp_path.iterdir()] == ["flow.json"]

    @pytest.mark.parametrize(
        "settings",
        [
            {"vanishing_threshold": float("nan")},
            {"vanishing_threshold": -1.0},
            {"exploding_threshold": float("inf")},
            {"vanishing_threshold": 10.0, "exploding_threshold": 1.0},
            {"vanishing_threshold": 1.0, "exploding_threshold": 1.0},
            {"max_frames": -1},
        ],
    )
    def test_settings_without_a_meaning_are_refused(self, settings):
        """DD-12."""
        with pytest.raises(InvalidConfig):
            GradientFlowAnimator(**settings)

    def test_a_setter_refuses_as_the_constructor_does(self):
        """DD-12."""
        with pytest.raises(InvalidConfig):
            GradientFlowAnimator().with_vanishing_threshold(1e4)
        with pytest.raises(InvalidConfig):
            GradientFlowAnimator().with_exploding_threshold(-1)

    def test_layers_keep_the_order_of_the_network(self):
        """DD-13."""
        names = ("stem", "layer2", "layer10", "head")
        animator = recorded({key: [1.0] for key in names}, {key: [1.0] for key in reversed(names)})

        assert animator.layers == names
        assert [each.name for each in animator.frames[1].layers] == list(names)
        assert animator.picture().layers == names

    def test_natural_order_is_there_for_the_asking(self):
        """DD-13."""
        animator = recorded({key: [1.0] for key in ("layer10", "layer2", "a")})

        assert animator.picture(order="natural").layers == ("a", "layer2", "layer10")

    def test_a_full_window_drops_without_moving_what_it_keeps(self):
        """DD-14: a deque of columns, not a list of dictionaries that shifts."""
        animator = recorded(*[{"a": [0.1], "b": [0.2]}] * 100, max_frames=10)
        kept = list(animator._moments)

        animator.record_step(100, {"a": [0.1], "b": [0.2]})

        assert animator._moments.maxlen == 10
        assert all(
            before is after for before, after in zip(kept[1:], animator._moments, strict=False)
        )
        assert kept[0].block.shape == (8, 2)


def row(animator: GradientFlowAnimator, layer: str) -> str:
    """Return the signs of one layer in the heat map."""
    lines = animator.to_ascii_animation().splitlines()
    return next(line.strip().removeprefix(layer).strip() for line in lines[3:] if layer in line)


def test_a_layer_that_comes_later_was_absent_before():
    animator = recorded({"a": [1.0]}, {"a": [1.0], "b": [1.0]})
    late = animator.summary_report().layers[1]

    assert row(animator, "b") == "·█"
    assert (late.frames, late.states["absent"]) == (1, 1)


def test_a_bare_list_of_frames_is_read(tmp_path):
    frame = {"step": 3, "layers": [
        {"name": "a", "mean_abs_grad": 0.1, "max_abs_grad": 0.2, "grad_norm": 0.3,
         "is_vanishing": False, "is_exploding": False, "flow_intensity": 1.0},
        {"name": "b", "mean_abs_grad": None, "max_abs_grad": 0.0, "grad_norm": None,
         "is_vanishing": False, "is_exploding": False, "flow_intensity": 0.0},
    ]}  # fmt: skip
    (tmp_path / "flow.json").write_text(json.dumps([frame]))

    animator = GradientFlowAnimator.from_json(tmp_path / "flow.json")

    assert states(animator) == [{"a": "healthy", "b": "non_finite"}]
    assert animator.picture().field == "grad_l2"
    assert row(animator, "a") == "█"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "no recorded flow"),
        ("[1]", "no recorded flow"),
        ('{"frames": [], "config": {"vanishing_threshold": -1}}', "no recorded flow"),
        ('{"frames": [], "config": {}, "schema": 99}', "its schema is 99"),
        ('{"frames": [{"step": 1, "layers": []}, {"step": 1, "layers": []}], "config": {}}',
         "step 1 comes after step 1"),
        ("[" * 5000, "no recorded flow"),
    ],
)  # fmt: skip
def test_a_file_that_is_no_recorded_flow_is_refused_in_one_line(tmp_path, text, said):
    path = tmp_path / "flow.json"
    path.write_text(text)

    with pytest.raises(RunError, match=said) as refused:
        GradientFlowAnimator.from_json(path)

    assert "\n" not in str(refused.value)


def test_fields_that_are_not_known_are_left_out(tmp_path):
    recorded({"a": [1.0]}).export_json(tmp_path / "flow.json")
    plain = json.loads((tmp_path / "flow.json").read_text())
    plain["later"] = plain["frames"][0]["later"] = 1
    (tmp_path / "flow.json").write_text(json.dumps(plain))

    assert len(GradientFlowAnimator.from_json(tmp_path / "flow.json")) == 1


def test_two_recordings_of_the_same_are_the_same_bytes():
    made = [b"".join(recorded({"b": [1.0], "a": [0.5]}).json_pieces()) for _ in range(2)]

    assert made[0] == made[1]


def test_some_layers_alone_keep_what_was_known_of_them():
    steps = [{"a.x": [5e3], "a.y": [1.0], "b": [1.0]}, *[{key: [1.0] for key in ("a.x", "b")}] * 4]
    animator = recorded(*steps, max_frames=2)

    some = animator.only("a.*")

    assert some.layers == ("a.x", "a.y")
    assert some.summary_report().layers == animator.summary_report().layers[:2]
    assert [len(frame.layers) for frame in some.frames] == [1, 1]


def test_a_notebook_shows_the_map_and_no_markup_of_a_name():
    shown = recorded({"<script>": [1.0]})._repr_html_()

    assert "<pre>" in shown
    assert "<script>" not in shown


def test_records_turn_into_plain_data_and_back():
    animator = recorded({"a": [1.0, np.nan], "b": None}, {"a": [1e-9]})
    summary, frame = animator.summary_report(), animator.frames[0]

    assert GradientFlowSummary.from_json(summary.to_json()) == summary
    assert GradientFrame.from_json(frame.to_json()) == frame
    assert summary.unexplained() == []
    assert frame.layers[1].unexplained() == []


def test_a_config_may_be_handed_in_whole():
    animator = GradientFlowAnimator(config=GradientFlowConfig(max_frames=1, half_life=5))
    for step in range(3):
        animator.record_step(step, {"a": [1.0]})

    assert len(animator) == 1
