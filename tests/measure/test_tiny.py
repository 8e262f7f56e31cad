"""Float64 values whose squares vanish: their norms are those of exact arithmetic."""

from fractions import Fraction
from math import isqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

from difflens import diff
from difflens.diffs.inspection import inspect
from difflens.measure import chunks, tiny
from difflens.measure.kernel import reference, scan

KERNELS = {"kernel": scan, "numpy": reference.scan}


@pytest.fixture(params=KERNELS)
def kernel(request, monkeypatch):
    """Scan with the kernel and with its twin."""
    monkeypatch.setattr(tiny, "scan_bytes", KERNELS[request.param])
    monkeypatch.setattr(chunks, "scan", KERNELS[request.param])


def root(value):
    """Return the square root of an exact number as the nearest float, or almost."""
    if not value:
        return 0.0
    shift = 2 * max(0, 1200 - (value.numerator.bit_length() - value.denominator.bit_length()) // 2)
    whole = isqrt((value.numerator << shift) // value.denominator)
    return float(Fraction(whole, 1 << (shift // 2)))


def norm(values):
    return root(sum(Fraction(float(each)) ** 2 for each in values))


@pytest.mark.usefixtures("kernel")
def test_subnormal_numbers_have_a_distance():
    """It was printed as 0.0: the squares of the moves vanish."""
    left = np.array([1e-310, 2e-310, 0.0, -3e-310])
    right = np.array([1e-310, 4e-310, 5e-324, -1e-310])

    found = diff({"w": left}, {"w": right})["w"]

    assert found.l2 == pytest.approx(norm(right - left), rel=1e-14, abs=0)
    assert found.relative_l2 == pytest.approx(norm(right - left) / norm(left), rel=1e-12)
    cosine = float(np.dot(left * 1e300, right * 1e300))
    cosine /= np.linalg.norm(left * 1e300) * np.linalg.norm(right * 1e300)
    assert found.cosine == pytest.approx(cosine)
    assert found.stats("left").std == pytest.approx(np.std(left * 1e300) / 1e300, rel=1e-12)


@pytest.mark.usefixtures("kernel")
def test_a_tiny_move_beside_large_values_has_a_distance():
    left, right = np.array([1.0, 1e-310, 1e200]), np.array([1.0, 3e-310, 1e200])

    found = diff({"w": left}, {"w": right})["w"]

    assert found.l2 == 2e-310
    assert found.cosine == pytest.approx(1) or found.cosine is None


@pytest.mark.usefixtures("kernel")
def test_the_smallest_move_there_is_has_a_distance():
    found = diff({"w": np.array([0.0])}, {"w": np.array([5e-324])})["w"]

    assert (found.l2, found.max_abs) == (5e-324, 5e-324)
    assert found.relative_l2 is None


SMALL = some.floats(-1e-150, 1e-150, allow_subnormal=True)


@given(some.lists(some.tuples(SMALL, SMALL), min_size=1, max_size=6))
def test_norms_of_small_numbers_are_exact(pairs):
    left, right = (np.array(each) for each in zip(*pairs, strict=True))

    found = diff({"w": left}, {"w": right})["w"]

    if found.kind == "identical":
        return
    assert found.l2 == pytest.approx(norm(right - left), rel=1e-12, abs=5e-324)
    if left.any():
        relative = norm(right - left) / norm(left) if norm(left) > 1e-300 else found.relative_l2
        assert found.relative_l2 == pytest.approx(relative, rel=1e-9)


def test_one_tensor_alone_has_its_spread():
    values = np.array([1e-200, 3e-200])

    (tensor,) = inspect({"w": values}, statistics=True).tensors

    assert tensor.stats.std == pytest.approx(1e-200)


def test_numbers_of_ordinary_size_are_read_once(monkeypatch):
    monkeypatch.setattr(tiny, "with_tiny_values", None)
    left, right = np.array([1.0, 1e-310]), np.array([1.5, 2e-310])

    assert diff({"w": left}, {"w": right})["w"].l2 == 0.5


def test_signal_over_noise_of_subnormal_numbers_is_known():
    found = diff({"w": np.array([1e-310, 0.0])}, {"w": np.array([1.1e-310, 0.0])})["w"]

    assert found.sqnr_db == pytest.approx(20.0, abs=1e-6)
