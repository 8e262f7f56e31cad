"""Reading a tensor: one pass, bounded memory, everything that is asked later."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from models.small import write

from difflens.measure.values import Values
from difflens.models.anatomy.roles import kind_of
from difflens.models.health.analyzer import WeightAnalyzer
from difflens.models.health.records import WeightConfig
from difflens.models.health.streaming import (
    Counts,
    Units,
    beyond,
    finite_of,
    open_tensors,
    read_tensor,
)

MEBIBYTE = 1 << 20


def read(values, most=1000, **how):
    with open_tensors({"w": values}) as tensors:
        (info,) = tensors.infos
        return read_tensor(tensors.values(info), kind_of("w", info.shape), most, **how)


def test_values_are_counted_by_what_they_are():
    piece = np.array([0.0, -0.0, 1.0, np.nan, np.inf, -np.inf, -np.inf])

    finite, counts = finite_of(piece)

    assert finite.tolist() == [0, 0, 1]
    assert counts == Counts(7, 1, 1, 2, 2)
    assert counts.finite == 3


def test_up_to_a_limit_values_are_held():
    values = np.arange(10.0)

    assert read(values, most=10, tally=False).array.tolist() == values.tolist()
    assert read(values, most=9, tally=False).array is None
    assert read(values, most=9, tally=False).spread.n == 10


def test_no_tensor_has_a_negative_zero_for_its_end():
    assert str(read(np.array([-0.0, -0.0]), tally=False).high) == "0.0"


def test_units_know_what_is_not_finite():
    values = np.zeros((3, 2))
    values[1, 1] = np.nan

    assert read(values, tally=False).units.zero(1.0).tolist() == [True, False, True]


@pytest.mark.parametrize("held", [True, False])
def test_what_lies_beyond_is_found_with_its_place(held):
    values = np.array([0.0, 5.0, np.inf, -7.0, np.nan, 1.0], np.float32)
    with open_tensors([values]) as tensors:
        source = tensors.values(tensors.infos[0])
        found = list(beyond(source, values if held else None, -1e200, 2.0, step=2))
        low = list(beyond(source, values if held else None, -6.0, 1e200, step=2))

    assert [place for places, _ in found for place in places] == [1]
    assert [value for _, some in low for value in some] == [-7]


def test_a_large_tensor_is_never_held(tmp_path, monkeypatch):
    count = 1 << 23
    data = np.random.default_rng(0).standard_normal(count, np.float32)
    path = write(tmp_path / "m.safetensors", {"w": ("F32", (1024, count // 1024), data.tobytes())})
    largest = []
    original = Values.span

    def span(self, start, stop):
        largest.append(stop - start)
        return original(self, start, stop)

    monkeypatch.setattr(Values, "span", span)
    del data
    tracemalloc.start()
    WeightAnalyzer(WeightConfig(exact_elements=1000)).analyze_weight_distribution(path, threads=1)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    # Two histograms of 16 MiB, of the tensor and of the model, and their sums: not the file.
    assert max(largest) <= 1 << 18
    assert peak < 64 * MEBIBYTE, f"{peak / MEBIBYTE:.0f} MiB"
    assert sum(largest) <= 2 * count + 1


@given(
    st.tuples(st.integers(1, 6), st.integers(1, 5), st.integers(1, 4)),
    st.integers(1, 30),
    st.booleans(),
)
def test_pieces_give_what_the_whole_gives(shape, size, first):
    values = np.abs(np.random.default_rng(0).normal(size=shape))
    units = Units(shape, 0 if first else 2)

    for start in range(0, values.size, size):
        units.add(start, values.reshape(-1)[start : start + size])

    axes = (1, 2) if first else (0, 1)
    assert np.array_equal(units.largest, values.max(axis=axes))


def test_a_unit_is_zero_where_its_largest_weight_is_small():
    units = Units((3, 2), 0)

    units.add(0, np.array([0.0, 0.0, 1e-9, 0.0, 0.0, np.inf]))

    assert units.zero(1e-6).tolist() == [True, True, False]
