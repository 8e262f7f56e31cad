"""Casts both ways: rounded values, values that the other side had lost, and exact ones."""

import ml_dtypes
import numpy as np
import pytest
from diffs.analyses.small import decoder

from difflens.diffs.analyses import analyse
from difflens.diffs.story import diff

MODEL = decoder(2)
COARSE = [np.float16, ml_dtypes.bfloat16]


def cast(model, dtype):
    return {name: value.astype(dtype) for name, value in model.items()}


def summary(left, right):
    return analyse("change_summary", diff(left, right)).fields


@pytest.mark.parametrize("dtype", COARSE)
def test_values_that_the_left_had_rounded_are_not_said_to_be_where_they_were(dtype):
    before = {np.float16: "F16"}.get(dtype, "BF16")

    assert summary(cast(MODEL, dtype), MODEL)["sentence"] == (
        f"the left is the right cast from F32 to {before}: all {len(MODEL)} tensors, rounded"
    )


@pytest.mark.parametrize("dtype", COARSE)
def test_a_cast_that_loses_nothing_moves_no_value(dtype):
    coarse = cast(MODEL, dtype)

    sentence = summary(coarse, cast(coarse, np.float32))["sentence"]

    assert sentence.startswith("cast from ")
    assert sentence.endswith("no value moved")


@pytest.mark.parametrize("turned", [False, True])
def test_tensors_that_a_cast_leaves_as_they_are_stand_with_the_others(turned):
    model = MODEL | {"model.norm.weight": np.ones(64, np.float32)}
    sides = [model, cast(model, np.float16)]

    changes = summary(*(sides[::-1] if turned else sides))["changes"]

    assert [(each["kind"], len(each["names"])) for each in changes] == [("cast", len(model))]
