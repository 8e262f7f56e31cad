"""What a recorded flow comes to."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from training.flow.flows import recorded

from difflens.stats.proportions import wilson
from difflens.training.flow.animator import GradientFlowAnimator
from difflens.training.records.runs import Layer

USUAL, TINY, HUGE = [0.1], [1e-12], [1e5]


def health(*steps, **settings):
    return recorded(*steps, **settings).summary_report().overall_health


def network(ill: int, layers: int = 20, what: list[float] = TINY) -> dict[str, list[float]]:
    return {f"layer{i}": what if i < ill else USUAL for i in range(layers)}


class TestHealth:
    """DD-10: what one layer or one frame may say of all."""

    def test_no_frames_are_unknown_and_not_healthy(self):
        summary = GradientFlowAnimator().summary_report()

        assert (summary.overall_health, summary.share_of_layers) == ("Unknown", None)
        assert summary.unexplained() == []

    def test_frames_without_a_gradient_are_unknown(self):
        assert health({"a": None}, {"a": []}) == "Unknown"

    def test_one_frozen_layer_is_no_problem(self):
        animator = GradientFlowAnimator().with_layers([Layer("embed", trainable=False)])
        for step in range(10):
            animator.record_step(step, {"embed": [0.0], "head": USUAL})
        summary = animator.summary_report()

        assert summary.overall_health == "Healthy"
        assert summary.frozen_layers == ("embed",)

    def test_vanishing_everywhere_is_critical(self):
        assert health(*[network(20)] * 10) == "Critical"

    def test_one_exploding_frame_of_long_ago_is_over(self):
        steps = [{"a": HUGE}, *[{"a": USUAL}] * 2000]
        summary = recorded(*steps, max_frames=1).summary_report()

        assert summary.overall_health == "Healthy"
        assert summary.layers_with_exploding_grads == ("a",)  # it is still told
        assert summary.layers[0].exploding_interval.high < 0.01

    def test_a_layer_that_explodes_lately_is_not_over(self):
        assert health(*[network(0)] * 50, *[network(1, what=HUGE)] * 20) == "ProblemsDetected"

    @pytest.mark.parametrize(
        ("ill", "expected"),
        [(0, "Healthy"), (1, "MinorIssues"), (2, "ProblemsDetected"), (10, "Critical")],
    )
    def test_the_class_follows_the_share_of_layers(self, ill, expected):
        assert health(*[network(ill)] * 10) == expected

    def test_the_class_follows_the_share_of_parameters_too(self):
        large = {"large": TINY * 1000} | {f"small{i}": USUAL for i in range(30)}

        assert health(*[large] * 10) == "Critical"

    def test_a_trained_layer_that_never_had_a_gradient_is_told(self):
        summary = recorded(*[{"a": [0.0], "b": None, "c": USUAL}] * 5).summary_report()

        assert summary.overall_health == "MinorIssues"
        assert summary.layers_without_gradients == ("a", "b")

    def test_layers_that_died_are_no_health(self):
        summary = recorded(*[network(0)] * 25, *[network(15, what=[0.0])] * 375).summary_report()

        assert summary.overall_health == "Critical"
        assert summary.share_of_layers == 0.75
        assert "15 dead layers" in summary.reasons[0]
        assert "layer0 is exactly zero in 375 of 400 frames" in summary.recommendations[0]

    def test_zeros_of_long_ago_are_over(self):
        assert health(*[network(15, what=[0.0])] * 25, *[network(0)] * 400) == "Healthy"

    def test_what_was_dead_is_so_in_a_copy(self, tmp_path):
        animator = recorded(*[network(0)] * 5, *[network(15, what=[0.0])] * 95)
        animator.export_json(tmp_path / "flow.json")
        again = GradientFlowAnimator.from_json(tmp_path / "flow.json").summary_report()

        assert again.reasons == animator.summary_report().reasons

    def test_every_class_says_why(self):
        for ill in (1, 2, 10):
            assert recorded(*[network(ill)] * 10).summary_report().reasons


@given(st.lists(st.booleans(), min_size=1, max_size=60))
def test_shares_have_the_interval_of_wilson(flags):
    animator = recorded(*({"a": TINY if flag else USUAL} for flag in flags))
    (layer,) = animator.summary_report().layers
    expected = wilson(sum(flags), len(flags))

    assert layer.vanishing == expected.value
    assert (layer.vanishing_interval.low, layer.vanishing_interval.high) == (
        expected.low,
        expected.high,
    )


@given(st.lists(st.booleans(), min_size=1, max_size=40), st.integers(0, 5))
def test_the_window_changes_no_word_of_the_summary(flags, window):
    """DD-02, as a law."""
    steps = [{"a": HUGE if flag else USUAL, "b": USUAL} for flag in flags]
    whole, cut = (recorded(*steps, max_frames=size).summary_report() for size in (0, window))

    assert cut.layers == whole.layers
    assert cut.overall_health == whole.overall_health
    assert cut.recommendations == whole.recommendations


def test_the_latest_frames_weigh_most():
    early = recorded(*[{"a": TINY}] * 400, *[{"a": USUAL}] * 200).summary_report()
    late = recorded(*[{"a": USUAL}] * 400, *[{"a": TINY}] * 200).summary_report()

    assert early.layers[0].vanishing > 0.5 > late.layers[0].vanishing
    assert (early.overall_health, late.overall_health) == ("Healthy", "Critical")


class TestAdvice:
    """DD-11: advice follows from what was seen."""

    def test_a_healthy_flow_gets_none(self):
        assert recorded(*[network(0)] * 5).summary_report().recommendations == ()

    def test_it_names_a_few_layers_and_counts_the_rest(self):
        (told,) = recorded(*[network(12)] * 5).summary_report().recommendations

        assert "layer0, layer1, layer2, layer3, layer4 and 7 more" in told
        assert "layer5" not in told

    def test_it_cites_the_rule_the_count_and_the_last_step(self):
        summary = recorded(*[network(1, what=HUGE)] * 4, first=10).summary_report()

        assert summary.recommendations[0].startswith("exploding: layer0 (max |g| above 1000); ")
        assert "in 4 of 4 frames (51% to 100%), last at step 13" in summary.recommendations[0]

    def test_it_does_not_propose_a_larger_rate_for_vanishing_gradients(self):
        text = " ".join(recorded(*[network(20)] * 5).summary_report().recommendations)

        assert "vanishing" in text
        assert "larger" not in text
        assert "increase" not in text

    def test_it_changes_with_what_was_seen(self):
        told = {
            recorded(*[network(1, what=what)] * count).summary_report().recommendations
            for what, count in ((TINY, 3), (TINY, 4), (HUGE, 3), ([np.nan], 3), ([0.0], 3))
        }

        assert len(told) == 5

    def test_a_hostile_name_is_harmless_in_it(self):
        told = recorded(*[{"\x1b[31m" + "x" * 500: HUGE}] * 2).summary_report().recommendations

        assert "\x1b" not in "".join(told)
        assert len(told[0]) < 700
