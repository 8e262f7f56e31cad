"""The table of methods 7.3, by quantising again."""

from functools import partial

import ml_dtypes
import numpy as np
import pytest
from gguf import GGMLQuantizationType, quants

from difflens.diffs.methods.quantisation import TABLE, expected_db, is_calibrated, shape_of

SIDE = 1024
SHAPES = {
    "gaussian": lambda random: random.normal(size=(SIDE, SIDE)),
    "laplace": lambda random: random.laplace(size=(SIDE, SIDE)),
    # What a grid of powers of two costs depends on where the range ends: by 1.5 dB for BF16.
    "uniform": lambda random: random.uniform(-0.02, 0.02, (SIDE, SIDE)),
    "t4": lambda random: random.standard_t(4, (SIDE, SIDE)),
}


def weight(shape):
    return SHAPES[shape](np.random.default_rng(0)).astype(np.float32)


def decibels(weight, found):
    return 10 * np.log10((weight**2).sum() / ((weight - found) ** 2).sum())


def through_gguf(values, scheme):
    kind = GGMLQuantizationType[scheme]
    return quants.dequantize(quants.quantize(values, kind), kind)


def symmetric(values, bits, group):
    groups = values.reshape(-1, group)
    most = 2 ** (bits - 1) - 1
    step = np.abs(groups).max(1, keepdims=True) / most
    return (np.clip(np.rint(groups / step), -most - 1, most) * step).reshape(values.shape)


def asymmetric(values, bits, group):
    groups = values.reshape(-1, group)
    low, high = groups.min(1, keepdims=True), groups.max(1, keepdims=True)
    step = (high - low) / (2**bits - 1)
    return (np.rint((groups - low) / step) * step + low).reshape(values.shape)


QUANTISERS = {
    **{
        scheme: partial(through_gguf, scheme=scheme)
        for scheme in ("Q8_0", "Q5_0", "Q5_1", "Q4_0", "Q4_1", "MXFP4")
    },
    "BF16": lambda values: values.astype(ml_dtypes.bfloat16).astype(np.float32),
    "F16": lambda values: values.astype(np.float16).astype(np.float32),
    "int8 per row": lambda values: symmetric(values, 8, SIDE),
    "int8 per tensor": lambda values: symmetric(values, 8, SIDE * SIDE),
    "int4 g128": lambda values: symmetric(values, 4, 128),
    "int4 asymmetric g128": lambda values: asymmetric(values, 4, 128),
    "int4 per row": lambda values: symmetric(values, 4, SIDE),
    "int4 per tensor": lambda values: symmetric(values, 4, SIDE * SIDE),
}
# The largest of a million weights with heavy tails is another one for every seed.
BY_LARGEST = {"int8 per tensor", "int4 per tensor"}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("scheme", QUANTISERS)
def test_the_table_is_what_rounding_to_nearest_costs(scheme, shape):
    values = weight(shape)

    found = decibels(values, QUANTISERS[scheme](values))

    loose = {"gaussian": 0.7, "laplace": 2.5, "uniform": 0.3, "t4": 8.0}
    slack = loose[shape] if scheme in BY_LARGEST else 0.8 if shape == "t4" else 0.3
    assert found == pytest.approx(getattr(TABLE[scheme], shape), abs=slack)


@pytest.mark.parametrize("shape", SHAPES)
def test_kurtosis_tells_the_shape(shape):
    values = weight(shape)
    centred = values - values.mean()

    kurtosis = (centred**4).mean() / (centred**2).mean() ** 2

    assert shape_of(float(kurtosis)) == shape


def test_calibrated_schemes_have_no_row():
    for scheme in ("GPTQ int4 g128", "AWQ int4 g64"):
        assert is_calibrated(scheme)
        assert expected_db(scheme, 3.0) is None


def test_an_unknown_scheme_or_kurtosis_expects_nothing():
    assert expected_db("Q4_K", 3.0) is None
    assert expected_db("Q4_0", None) is None


def test_uniform_weights_lose_six_decibels_a_bit():
    assert expected_db("int8 per tensor", 1.8) == pytest.approx(6.02 * 8, abs=0.1)
