"""Models that share no parameter: no analysis claims a distance or a likeness over nothing."""

import numpy as np
import pytest

from difflens.core.policy import Policy
from difflens.diffs.analyses import analyse
from difflens.diffs.evidence.records import Evidence
from difflens.diffs.story import diff

STRANGERS = {
    "other names": ({"alpha.weight": (64, 64)}, {"beta.weight": (32, 48)}),
    "other shapes": ({"fc.weight": (64, 64)}, {"fc.weight": (32, 48)}),
    "only a counter shared": ({"alpha.weight": (64, 64)}, {"beta.weight": (32, 48)}),
    "nothing on the left": ({}, {"beta.weight": (32, 48)}),
}
DISTANCES = {
    "change_summary": ("magnitude", "median_relative_l2", "share_by_role", "concentration"),
    "spectral_analysis": ("relative_l2", "cosine"),
    "gradient_analysis": ("update_norm",),
    "learning_progress": ("magnitude", "rel_l2"),
    "performance_impact_estimate": ("output_error",),
    "lineage": ("log10_p", "median_rho", "u_test", "match_test", "direct", "direction"),
    "similarity_matrix": ("mean_similarity", "diagonal_mean"),
}


def strangers(which):
    random = np.random.default_rng(0)
    sides = [
        {name: random.standard_normal(shape).astype("f4") for name, shape in side.items()}
        for side in STRANGERS[which]
    ]
    if which == "only a counter shared":
        sides = [side | {"steps": np.arange(3)} for side in sides]
    return diff(*sides)


@pytest.mark.parametrize("name", DISTANCES)
@pytest.mark.parametrize("which", STRANGERS)
def test_no_distance_is_told_where_no_parameter_was_compared(which, name):
    envelope = analyse(name, strangers(which), Evidence(), Policy())

    known = {field: envelope.fields[field] for field in DISTANCES[name]}
    assert known == dict.fromkeys(DISTANCES[name])


@pytest.mark.parametrize("which", STRANGERS)
def test_no_likeness_is_told_where_no_parameter_was_compared(which):
    found = analyse("lineage", strangers(which), Evidence(), Policy())

    assert found.fields["verdict"] == "inconclusive"
