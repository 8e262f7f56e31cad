"""What recipes predict: correctly rounded, and the same bits from C and from NumPy."""

from typing import Any

import numpy as np
import pytest
from measure.codec.drawn import KINDS, specials, words

from difflens.measure.codec import reference

FLOATS = [name for name in KINDS if KINDS[name][2]]
SIZES = (1, 63, 64, 65, 300, 1000)
try:
    from difflens.measure.codec import _codec
except ImportError:
    _codec = None  # type: ignore[assignment]
CODECS = [
    reference,
    pytest.param(_codec, marks=pytest.mark.skipif(_codec is None, reason="not compiled")),
]


def drawn(random: Any, dtype: str, n: int) -> bytes:
    """Make weights with special values among them."""
    values = words(random, dtype, n, weights=bool(random.integers(3)))
    some = random.random(n) < 0.1
    values[some] = random.choice(np.array(specials(dtype), np.uint64), int(some.sum()))
    return values.tobytes()


def scaled(codec: Any, data: bytes, first: str, last: str, factor: float, **how: Any) -> bytes:
    n = len(data) // KINDS[first][0]
    out = bytearray(n * KINDS[last][0])
    back = how.get("backwards", False)
    kinds = KINDS[last if back else first], KINDS[first if back else last]
    codec.scale(data, out, kinds, (factor, how.get("times", 1)), back)
    return bytes(out)


def added(codec: Any, data: bytes, dtype: str, place: Any, factors: Any) -> bytes:
    out = bytearray(len(data))
    start, rounded = place
    left, right = factors
    place = start, right.shape[1], rounded
    codec.add_product(data, out, KINDS[dtype], place, (left.tobytes(), right.tobytes()))
    return bytes(out)


@pytest.mark.skipif(_codec is None, reason="the compiled codec is not built")
def test_c_and_numpy_scale_to_the_same_bits():
    for seed in range(400):
        random = np.random.default_rng(seed)
        first, last = (str(each) for each in random.choice(FLOATS, 2))
        last = first if seed % 2 else last
        data = drawn(random, first, int(random.choice(SIZES)))
        factor = float(
            random.choice([1.0, 0.75, -2.5, 1e30, 1e-30, 3e-310, np.float32(0.9999), 0.99])
        )
        how = {"times": int(random.choice([1, 3])) if first == last else 1}
        there = scaled(reference, data, first, last, factor, **how)

        assert scaled(_codec, data, first, last, factor, **how) == there, (seed, first, last)
        back = [
            scaled(each, there, last, first, factor, backwards=True, **how)
            for each in (_codec, reference)
        ]
        assert back[0] == back[1], (seed, first, last)


@pytest.mark.skipif(_codec is None, reason="the compiled codec is not built")
def test_c_and_numpy_add_products_to_the_same_bits():
    for seed in range(200):
        random = np.random.default_rng(seed)
        dtype, n = str(random.choice(FLOATS)), int(random.choice(SIZES))
        data, start = drawn(random, dtype, n), int(random.choice([0, 5, 127]))
        columns, rank = int(random.choice([1, 7, 100])), int(random.choice([1, 2, 9]))
        rows = (start + n) // columns + 1
        factors = random.normal(size=(rows, rank)), random.normal(size=(rank, columns))
        factors[0][0, 0] = random.choice([1.0, 1e300, 0.0])
        for rounded in (False, True):
            place = start, rounded
            made = [added(each, data, dtype, place, factors) for each in (_codec, reference)]

            assert made[0] == made[1], (seed, dtype)


@pytest.mark.parametrize("codec", CODECS)
def test_casts_round_as_numpy_does(codec):
    random = np.random.default_rng(1)
    values = np.concatenate(
        [
            random.normal(size=4000) * 10.0 ** random.integers(-45, 39, 4000),
            [0.0, -0.0, np.inf, -np.inf, 65504, 65519.99, 65520, 2**-24, 2**-25, 3 * 2**-25],
        ]
    )
    with np.errstate(over="ignore"):
        singles = values.astype("<f4")
        halves = singles.astype("<f2")

    assert scaled(codec, values.astype("<f8").tobytes(), "F64", "F32", 1.0) == singles.tobytes()
    assert scaled(codec, singles.tobytes(), "F32", "F16", 1.0) == halves.tobytes()
    assert scaled(codec, halves.tobytes(), "F16", "F32", 1.0) == halves.astype("<f4").tobytes()
    bits = singles.view("<u4")
    nearest = (bits + 0x7FFF + (bits >> 16 & 1) >> 16).astype("<u2")
    assert scaled(codec, singles.tobytes(), "F32", "BF16", 1.0) == nearest.tobytes()


@pytest.mark.parametrize("codec", CODECS)
def test_repeated_scaling_is_that_of_numpy_and_is_undone(codec):
    values = np.random.default_rng(2).normal(size=5000).astype("<f4")
    factor, wanted = np.float32(1 - 1e-6), values.copy()
    for _ in range(40):
        wanted *= factor
    there = scaled(codec, values.tobytes(), "F32", "F32", float(factor), times=40)
    back = scaled(codec, there, "F32", "F32", float(factor), times=40, backwards=True)

    assert there == wanted.tobytes()
    assert (np.frombuffer(back, "<f4") == values).mean() > 0.999


@pytest.mark.parametrize("codec", CODECS)
def test_a_sum_is_made_in_the_order_of_the_rank(codec):
    left, right = np.array([[1.0, 1e16, -1e16]]), np.ones((3, 1))
    made = added(codec, np.zeros(1, "<f8").tobytes(), "F64", (0, False), (left, right))

    assert np.frombuffer(made, "<f8")[0] == (1.0 + 1e16) - 1e16


@pytest.mark.parametrize("codec", CODECS)
def test_factors_that_do_not_fit_are_refused(codec):
    data, good = bytes(40), (np.ones((2, 3)), np.ones((3, 5)))
    for start, factors in (
        (1, good),
        (-1, good),
        (1 << 62, good),
        (0, (np.ones((1, 3)), good[1])),
        (0, (np.ones((7, 1)), good[1])),
        (0, (good[0], np.ones((3, 5))[:0])),
    ):
        with pytest.raises(ValueError, match="do not fit"):
            added(codec, data, "F32", (start, False), factors)
    with pytest.raises(ValueError, match="only floats"):
        codec.scale(data, bytearray(40), ((4, 0, 0), (4, 23, 8)), (1.0, 1), False)
    with pytest.raises(ValueError, match="another size"):
        codec.scale(data, bytearray(44), ((4, 23, 8), (4, 23, 8)), (1.0, 1), False)
