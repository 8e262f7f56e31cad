"""Measures with a pass of their own: taken when asked for, once, of the pairs they want."""

import numpy as np
import pytest

from difflens.core.record import Record
from difflens.diffs.story import diff, report


class Peak(Record, frozen=True):
    """The largest value of each side; takes one piece of memory a side."""

    left: float
    right: float

    @classmethod
    def wants(cls, delta):
        return delta.kind == "changed"

    @classmethod
    def of(cls, left, right):
        taken.append(left.info.name)
        if left.info.name == "silent":
            return None
        return cls(*(max(float(each.max()) for each in side.pieces()) for side in (left, right)))

    def figures(self):
        return {"peak_left": self.left, "peak_right": self.right}


taken: list[str] = []


@pytest.fixture
def found():
    taken.clear()
    left = {"a": np.arange(4.0), "b": np.arange(6.0), "same": np.ones(3), "silent": np.ones(2)}
    return diff(left, {name: value + (name != "same") for name, value in left.items()})


def test_it_is_taken_only_of_what_it_wants_and_only_once(found):
    first, second = dict(found.measured(Peak)), dict(found.measured(Peak))

    assert {delta.name: peak.right for delta, peak in first.items()} == {"a": 4.0, "b": 6.0}
    assert first == second
    assert sorted(taken) == ["a", "b", "silent"]


def test_nothing_is_taken_that_nobody_asked_for(found):
    _ = found.deltas

    assert taken == []
    assert all(row.further is None for row in report(found).tensors)


def test_its_figures_reach_the_report_by_themselves(found):
    list(found.measured(Peak))

    rows = {row.name: row.further for row in report(found).tensors}
    assert rows["a"] == {"peak_left": 3.0, "peak_right": 4.0}
    assert rows["same"] is None


def test_headers_alone_give_nothing_to_take():
    found = diff({"a": np.ones(2)}, {"a": np.zeros(2)}, shape_only=True)

    assert list(found.measured(Peak)) == []


def test_progress_is_told_of_a_new_stretch_of_work():
    told = []

    class Bar:
        def __call__(self, size):
            told.append(size)

        def stage(self, name, total):
            told.append((name, total))
            return self

    found = diff({"a": np.ones(4, "f4")}, {"a": np.zeros(4, "f4")})
    found.session.progress = Bar()
    list(found.measured(Peak))

    assert told == [32, ("peak", 32), 32]
