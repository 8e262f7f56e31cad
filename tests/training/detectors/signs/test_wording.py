import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from difflens.training.detectors.signs.wording import above, below, finding, json_value


@given(st.floats(allow_nan=True, allow_infinity=True), st.floats(1e-6, 1e6))
def test_a_margin_is_a_share(value, threshold):
    assert 0 <= above(value, threshold) <= 1
    assert 0 <= below(value, threshold) <= 1


@given(st.recursive(st.floats() | st.integers() | st.text(), st.lists))
def test_evidence_is_always_json(value):
    json.dumps(json_value(value), allow_nan=False)


def test_the_weakest_sign_is_the_confidence():
    (found,) = finding("x", "info", "x", {"n": 1}, since=3.0, cause="", advice=[], signs=[0.9, 0.4])

    assert (found.confidence, found.since_step) == (0.4, 3)


def test_without_signs_no_finding_is_made():
    with pytest.raises(TypeError, match="signs"):
        finding("x", "info", "x", {}, since=None, cause="", advice=[])
