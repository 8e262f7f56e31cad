"""In which state a layer is: the most alarming that applies."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from training.flow.flows import recorded

from difflens.training.records.flow import FLOW_STATES, GradientFlowConfig

ORDER = {state: place for place, state in enumerate(FLOW_STATES)}


def state(values, **settings) -> str:
    return recorded({"a": values}, **settings).frames[0].layers[0].state


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=10))
def test_a_value_that_is_not_finite_outranks_all_others(values):
    assert state([*values, np.inf]) == "non_finite"


@given(st.lists(st.floats(-10, 10), min_size=1, max_size=10), st.floats(1e3, 1e9, exclude_min=True))
def test_a_large_value_explodes_however_small_the_others(values, large):
    assert state([*values, large]) == "exploding"


def test_thresholds_that_are_off_flag_nothing():
    off = {"vanishing_threshold": None, "exploding_threshold": None}

    assert [state([size], **off) for size in (1e-30, 1e30)] == ["healthy", "healthy"]


def test_two_layers_have_no_median_that_says_what_is_usual():
    made = GradientFlowConfig()
    animator = recorded(config=made)
    animator.record_step(0, {"a": [1.0], "b": [1e-6]}, {"a": [1.0], "b": [1.0]})

    assert [layer.state for layer in animator.frames[0].layers] == ["healthy", "healthy"]


def test_the_words_go_from_least_to_most_alarming():
    assert ORDER["none"] < ORDER["frozen"] < ORDER["healthy"] < ORDER["zero"]
    assert ORDER["zero"] < ORDER["vanishing"] < ORDER["exploding"] < ORDER["non_finite"]
