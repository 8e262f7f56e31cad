"""The flow of gradients out of a recorded run."""

import time

import numpy as np
import pytest
from training.flow.flows import history

from difflens.core.errors import RunError, UnknownName
from difflens.training.flow.run import FIELDS, animator_of_run, picture_of, run_states
from difflens.training.history.building import Builder
from difflens.training.history.frame import Frame
from difflens.training.records.flow import FLOW_STATES, GradientFlowConfig
from difflens.training.records.runs import Layer, RunInfo

SMALL = 1 << 20  # bytes: enough for few points, so that frames are merged


def words(found) -> list[list[str]]:
    return [[FLOW_STATES[code] for code in row] for row in found]


def test_every_state_is_told_from_what_a_run_records():
    # Infinity stands for a layer of which nothing was recorded.
    norms = [[1.0, np.inf, 0.0, 1e-9, 1e5, np.nan, np.inf, 1.0]]
    layers = tuple(Layer(f"l{i}", shape=(100,), trainable=i != 6) for i in range(8))

    found = run_states(history(norms, layers=layers), GradientFlowConfig(relative_threshold=None))

    assert words(found) == [["healthy", "none", "zero", "vanishing", "exploding", "non_finite",
                             "frozen", "healthy"]]  # fmt: skip


def test_a_layer_far_below_its_peers_vanishes_by_its_ratio_to_the_weights():
    config = GradientFlowConfig(vanishing_threshold=None)
    norms = [[1.0, 2.0, 3.0, 1e-4]]

    assert words(run_states(history(norms), config))[0][3] == "vanishing"


def test_the_scale_free_size_is_drawn_where_the_shapes_are_known():
    known, unknown = history([[1.0, 2.0]]), history([[1.0]], layers=(Layer("a"),))

    assert picture_of(known).field == "grad_rms"
    assert picture_of(unknown).field == "grad_l2"


@pytest.mark.parametrize("field", FIELDS)
def test_every_field_is_drawn_or_refused_with_what_there_is(field):
    made = history([[1.0, 2.0], [3.0, 4.0]])
    if field.startswith("act_"):
        with pytest.raises(RunError, match=f"{field} was not recorded") as refused:
            picture_of(made, field=field)
        assert "grad_l2" in refused.value.hint
    else:
        assert picture_of(made, field=field).columns == 2


def test_a_ratio_is_that_of_its_fields():
    picture = picture_of(history([[1.0, 2.0], [4.0, 8.0]]), field="update_ratio")

    codes = np.frombuffer(picture.codes, "<u2").tolist()
    assert [picture.value(code) for code in codes] == pytest.approx([1e-4, 4e-4, 2e-4, 8e-4], 1e-3)


def test_a_field_with_a_sign_is_no_field_of_the_picture():
    with pytest.raises(UnknownName, match="grad_cosine"):
        picture_of(history([[1.0]]), field="grad_cosine")


class TestLongRuns:
    """Points that stand for several frames."""

    @pytest.fixture
    def long(self):
        rng = np.random.default_rng(0)
        norms = np.exp(rng.normal(size=(3000, 40)))
        norms[1234, 3], norms[2001, 5] = np.nan, 1e6
        return history(norms, memory=SMALL)

    def test_a_flag_survives_being_merged(self, long):
        assert not long.course.is_whole
        picture = picture_of(long, columns=50)
        found = np.frombuffer(picture.states, np.uint8).reshape(40, -1)

        for layer, step, state in ((3, 1234, "non_finite"), (5, 2001, "exploding")):
            (column,) = np.flatnonzero(found[layer] == FLOW_STATES.index(state))
            assert picture.first_steps[column] <= step <= picture.steps[column]

    def test_an_animator_of_it_counts_frames_and_says_where_it_began(self, long):
        summary = animator_of_run(long, columns=20).summary_report()

        assert (summary.frames_recorded, summary.frames_retained) == (3000, 20)
        assert (summary.first_step, summary.last_step) == (0, 2999)
        assert summary.layers_with_non_finite_grads == ("layer3",)
        assert summary.overall_health == "Critical"


def test_an_animator_of_a_run_has_the_numbers_of_the_run(tmp_path):
    made = history([[3.0, np.inf], [4.0, 5.0]])
    animator = animator_of_run(made)
    first, second = animator.frames

    assert [layer.state for layer in first.layers] == ["healthy", "none"]
    assert (second.layers[0].grad_norm, second.layers[0].weight_norm) == (4, 10)
    assert second.layers[1].gradient_to_weight == 0.5
    animator.export_json(tmp_path / "flow.json")
    assert type(animator).from_json(tmp_path / "flow.json").frames == [first, second]


def test_zeros_are_counted_once_and_never_more_than_there_are_elements():
    found = animator_of_run(history([[1.0]], grad_zeros=[[37.0]])).frames[0].layers[0]

    assert (found.elements, found.zeros) == (100, 37)


@pytest.mark.parametrize("odd", [np.nan, np.inf, -np.inf, -3.0, 1e30])
def test_a_run_whose_counts_are_no_counts_is_still_written_and_read_back(odd, tmp_path):
    made = history([[1.0, 2.0]], grad_zeros=[[odd, 0.0]], grad_nonfinite=[[odd, 0.0]])
    animator = animator_of_run(made)
    animator.export_json(tmp_path / "flow.json")

    assert type(animator).from_json(tmp_path / "flow.json").frames == animator.frames
    assert animator.frames[0].layers[0].zeros in {None, 0, 100}


def test_how_many_values_are_not_finite_is_unknown_where_only_the_norm_says_so(tmp_path):
    animator = animator_of_run(history([[np.nan]], grad_nonfinite=[[np.nan]]))
    found = animator.frames[0].layers[0]
    animator.export_json(tmp_path / "flow.json")

    assert (found.state, found.non_finite) == ("non_finite", None)
    assert type(animator).from_json(tmp_path / "flow.json").frames == animator.frames


@pytest.mark.parametrize("steps", [range(9, 0, -1), [7] * 9, [0, 1, 2, 3, 4, 2, 3, 4, 5]])
def test_the_first_value_that_is_not_finite_is_found_though_steps_go_back(steps):
    info = RunInfo(layers=(Layer("a", shape=(4,)),), fields=("grad_l2", "grad_max_abs"))
    builder = Builder(info)
    for place, step in enumerate(steps):
        block = np.array([[1.0], [np.nan if place == 4 else 1.0]], np.float32)
        builder.add(Frame(place, step, 0.0, 0.0, np.zeros(4), block))

    found = words(run_states(builder.history(), GradientFlowConfig()))

    assert sum(row == ["non_finite"] for row in found) == 1


@pytest.mark.parametrize(
    "steps", [range(-9, 0), range(9, 0, -1), [7] * 9, range(2**63 - 9, 2**63)],
    ids=["below zero", "downwards", "the same", "huge"],
)  # fmt: skip
@pytest.mark.parametrize("size", [1.0, np.inf])
def test_a_run_of_odd_steps_or_infinite_norms_is_written_and_read_back(steps, size, tmp_path):
    builder = Builder(RunInfo(layers=(Layer("a", shape=(4,)),)))
    for place, step in enumerate(steps):
        block = np.full((7, 1), size, np.float32)
        builder.add(Frame(place, step, 0.0, 0.0, np.zeros(4), block))
    animator = animator_of_run(builder.history())
    animator.export_json(tmp_path / "flow.json")

    assert [each.step for each in animator.frames] == [*range(9)]
    assert type(animator).from_json(tmp_path / "flow.json").frames == animator.frames
    assert animator.summary_report().frames_recorded == 9


def test_some_layers_are_chosen_by_pattern():
    layers = tuple(Layer(name, shape=(4,)) for name in ("a.weight", "a.bias", "b.weight"))
    made = history([[1.0, 2.0, 3.0]], layers=layers)

    assert picture_of(made, layers="*.weight").layers == ("a.weight", "b.weight")
    assert picture_of(made, layers="a.").layers == ("a.weight", "a.bias")
    with pytest.raises(UnknownName, match="no layer is called 'c'"):
        picture_of(made, layers="c")


def test_a_run_without_frames_is_a_picture_without_columns():
    made = Builder(RunInfo(layers=(Layer("a", shape=(2,)),))).history()

    assert picture_of(made).columns == 0
    assert animator_of_run(made).summary_report().overall_health == "Unknown"


@pytest.mark.slow
def test_a_thousand_layers_over_a_hundred_thousand_steps_are_drawn_within_five_seconds():
    layers = 1000
    info = RunInfo(layers=tuple(Layer(f"l{i}", shape=(10, 10)) for i in range(layers)))
    builder, rng = Builder(info), np.random.default_rng(0)
    block = np.abs(rng.normal(size=(len(info.fields), layers))).astype(np.float32)
    for step in range(100_000):
        block[0, step % layers] = 1 + step % 7
        builder.add(Frame(step, step, 0.0, 0.0, np.zeros(4), block))
    made = builder.history()

    began = time.process_time()  # the machine may be busy with others
    picture = picture_of(made)

    assert time.process_time() - began < 5
    assert (len(picture.layers), picture.columns, picture.frames) == (1000, 1000, 100_000)
