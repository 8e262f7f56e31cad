from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from difflens.diffs.analyses.attention_analysis import assigned


@given(st.integers(0, 10**6), st.sampled_from([(4, 1), (4, 2), (4, 4), (6, 3)]))
def test_no_allowed_order_fits_better(seed, shape):
    heads, group = shape
    scores = np.random.default_rng(seed).normal(size=(heads, heads))

    found = assigned(scores, group)

    def is_allowed(order):
        groups = [
            {left // group for left in order[at : at + group]} for at in range(0, heads, group)
        ]
        return all(len(each) == 1 for each in groups)

    best = max(
        sum(scores[left, right] for right, left in enumerate(order))
        for order in permutations(range(heads))
        if is_allowed(order)
    )
    assert is_allowed([left for left, _ in found])
    assert sum(cosine for _, cosine in found) == pytest.approx(best)
