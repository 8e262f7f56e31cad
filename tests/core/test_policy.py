"""Thresholds of the user, by analysis and name."""

import pytest

from difflens.core.policy import Policy


@pytest.mark.parametrize("section", ["cold_start", "cold-start"])
@pytest.mark.parametrize("asked", ["cold_start", "cold-start"])
def test_a_section_is_found_with_either_dash(section, asked):
    policy = Policy(thresholds={section: {"points": 9}})

    assert policy.threshold(asked, "points", 5) == 9
    assert policy.threshold(asked, "other", 5) == 5
