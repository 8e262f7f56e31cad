import numpy as np
import pytest

from difflens.diffs.story import diff
from difflens.measure.resources import _controls, one_thread_each


def counts():
    return [get() for get, _ in _controls()]


@pytest.fixture(autouse=True)
def _two_threads():
    """The tests have one thread each; what is given back must be seen to come back."""
    if not _controls():
        pytest.skip("NumPy came without OpenBLAS")
    before = counts()
    for _, put in _controls():
        put(2)
    assert set(counts()) == {2}
    yield
    for (_, put), count in zip(_controls(), before, strict=True):
        put(count)


def test_blas_has_one_thread_inside_and_its_own_again_after():
    before = counts()

    with one_thread_each():
        with one_thread_each():
            assert set(counts()) == {1}
        assert set(counts()) == {1}
    assert counts() == before


def test_threads_are_given_back_after_an_error():
    before = counts()

    with pytest.raises(ValueError, match="broken"), one_thread_each():
        raise ValueError("broken")
    assert counts() == before


def test_a_measure_is_taken_with_one_thread_each():
    class Seen:
        threads: set[int] = set()  # noqa: RUF012

        @classmethod
        def wants(cls, _delta):
            return True

        @classmethod
        def of(cls, _left, _right):
            cls.threads |= set(counts())

    list(diff({"w": np.zeros(2)}, {"w": np.ones(2)}).measured(Seen))

    assert Seen.threads == {1}
