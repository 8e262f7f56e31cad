import numpy as np
import pytest

from difflens.core.records import TensorInfo
from difflens.measure import edits
from difflens.measure.chunks import Side
from difflens.measure.edits import Edits
from difflens.measure.precision import format_of, rounded
from difflens.measure.values import Values

_SEED = 3


class Held:
    """A source that holds one tensor's bytes."""

    def __init__(self, dtype, shape, data):
        self.tensors = {"w": TensorInfo("w", dtype, shape)}
        self._data = data

    def read_into(self, _name, start, stop, buffer):
        buffer[: stop - start] = self._data[start:stop]
        return stop - start


def values(array, dtype="F32"):
    if dtype == "BF16":
        data = (array.view(np.uint32) >> 16).astype("<u2").tobytes()
    else:
        data = array.astype("<f4").tobytes()
    source = Held(dtype, array.shape, data)
    return Values(Side.of(source, source.tensors["w"]))


def weights(rows=300, columns=40):
    return np.random.default_rng(_SEED).normal(0, 0.05, (rows, columns)).astype(np.float32)


def boundaries():
    """Return values around powers of two, halfway between neighbours, and the ends of the range."""
    whole = np.float32(2.0) ** np.arange(-30, 31, dtype=np.float32)
    bits = whole.view(np.uint32)[:, None] + np.arange(-3, 4, dtype=np.int64) * 0x1000
    near = np.concatenate([bits - 1, bits, bits + 1], axis=1).astype(np.uint32).view(np.float32)
    return np.ascontiguousarray(np.concatenate([near, -near], axis=1))


@pytest.mark.parametrize("dtype", ["BF16", "F16", "F8_E4M3"])
@pytest.mark.parametrize("left", [weights(), boundaries()])
def test_the_look_at_bits_never_hides_an_edit(monkeypatch, dtype, left):
    random = np.random.default_rng(_SEED)
    right = rounded(left, dtype)
    right[random.random(right.shape) < 0.01] *= np.float32(1.5)
    quick = Edits.of(values(left), values(right), dtype)
    monkeypatch.setattr(edits, "_is_near", lambda *_: False)

    assert Edits.of(values(left), values(right), dtype) == quick


@pytest.mark.parametrize("dtype", ["BF16", "F16"])
def test_a_cast_is_seen_from_its_bits(dtype):
    left = weights()
    left = np.sign(left) * np.maximum(np.abs(left), np.float32(2.0**-14))  # F16's least normal

    assert edits._is_near(left, rounded(left, dtype), dtype)


def test_a_value_off_by_more_than_half_a_unit_is_not_near():
    left = weights()
    right = rounded(left, "BF16")
    right.view(np.uint32)[7, 3] += 0x20000

    assert not edits._is_near(left, right, "BF16")


def test_sides_of_two_dtypes_do_not_share_a_buffer():
    left = weights()
    found = Edits.of(values(left), values(rounded(left, "BF16"), "BF16"))

    assert (found.before, found.after, found.rounding) == ("F32", "BF16", "nearest")
    assert found.moved == 0


@pytest.mark.parametrize("dtype", ["F8_E5M2", "F8_E4M3", "BF16", "F16", "F32"])
def test_the_format_of_values_is_found_whatever_holds_them(dtype):
    held = rounded(weights(64, 64), dtype)

    assert format_of(held.ravel(), "F32") == dtype


def test_one_value_of_a_finer_format_is_enough():
    held = rounded(weights(64, 64), "BF16").ravel()
    held[5] = np.float32(0.1)

    assert format_of(held, "F32") == "F32"
