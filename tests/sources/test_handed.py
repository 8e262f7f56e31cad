"""What a user hands over: the names that show whether it must be decoded."""

import numpy as np

from difflens.sources.handed import MARKS, handed, meant
from difflens.sources.quantised import _ENDINGS


def test_every_name_a_scheme_is_known_by_is_marked():
    assert [ending for ending in _ENDINGS if not MARKS.search(f"layer{ending}")] == []


def test_models_that_mean_what_they_hold_are_given_back_as_they_are():
    (_, left), (_, right) = (handed({"model.layers.0.mlp.weight": np.ones(2)}) for _ in range(2))

    assert meant(left, right, ({}, {})) == (left, right)


def test_a_quantised_side_is_decoded():
    arrays = {"w.weight": np.ones((4, 4), np.int8), "w.SCB": np.full(4, 127, np.float32)}
    (_, left), (_, right) = handed(arrays), handed({"w.weight": np.ones((4, 4), np.float32)})

    decoded, _ = meant(left, right, ({}, {}))

    assert decoded.tensors["w.weight"].dtype == "F32"
