"""How pairs become deltas: chunk by chunk, and each byte no more often than needed."""

import itertools

import numpy as np
import pytest

from difflens.diffs import story as pipeline
from difflens.diffs.pairing import pair
from difflens.measure import Scan, Threads, deltas
from difflens.models.opening import InMemory, MemorySource


def scanned(left, right, **options) -> Scan:
    """Measure one pair; as a record of plain numbers, so that equality is bit for bit."""
    found = pipeline.diff({"w": left}, {"w": right}, **options)["w"].measured(Scan)
    assert found is not None
    return found


# Where the one change is: in the first step, within a chunk, at its edges, in the last element.
PLACES = [0, 7, 8, 9, 31, 32, 33, 63, 64, 95, 99]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("threads", [1, 3])
def test_equal_parts_of_a_changed_tensor_count_as_if_all_had_been_scanned(cut, place, threads):
    cut(8, 32)
    left = np.random.default_rng(1).standard_normal(100)
    right = left.copy()
    right[place] += 1

    lazily = scanned(left, right, threads=threads)

    assert lazily == scanned(left, right, threads=1, always=True)
    assert (lazily.count, lazily.changed, lazily.max_abs_at) == (100, 1, place)
    assert lazily.left_mean == pytest.approx(left.mean(), rel=1e-12)


@pytest.mark.parametrize("dtype", ["float16", "float32", "int8", "int64", "uint8", "complex64"])
def test_so_it_is_for_other_kinds_of_numbers(cut, dtype):
    cut(8, 32)
    left = (np.arange(100) % 50).astype(dtype)
    right = left.copy()
    right[77] += 1

    assert scanned(left, right) == scanned(left, right, always=True)


def test_so_it_is_with_many_changes_at_random_places(cut):
    cut(8, 24)
    random = np.random.default_rng(5)
    for _ in range(20):
        left = random.standard_normal(random.integers(1, 200))
        right = np.where(random.random(left.size) < 0.03, left + 1, left)
        if (left != right).any():
            assert scanned(left, right) == scanned(left, right, always=True)


def test_identical_tensors_are_not_scanned_unless_asked(monkeypatch):
    def refuse(*_):
        pytest.fail("a tensor that is the same was scanned")

    monkeypatch.setattr("difflens.measure.chunks.scan", refuse)
    same = np.arange(1000.0)

    delta = pipeline.diff({"w": same}, {"w": same.copy()})["w"]

    assert (delta.kind, delta.measures) == ("identical", ())


def test_asked_for_they_have_their_statistics():
    same = np.array([1.0, 3])

    delta = pipeline.diff({"w": same}, {"w": same}, always=True)["w"]

    assert delta.kind == "identical"
    assert (delta.stats("left").mean, delta.relative_l2) == (2, 0)


def test_what_has_no_partner_is_described_alone():
    diff = pipeline.diff({"gone": np.array([1.0, np.nan])}, {"new": np.array([2.0, 4])})

    assert (diff["gone"].kind, diff["new"].kind) == ("removed", "added")
    assert (diff["gone"].stats("left").nan, diff["gone"].stats("right")) == (1, None)
    assert (diff["new"].stats("right").mean, diff["new"].stats("left")) == (3, None)


def test_a_reshaped_tensor_is_not_read(monkeypatch):
    monkeypatch.setattr(InMemory, "read_into", lambda *_: pytest.fail("it was read"))

    delta = pipeline.diff({"w": np.zeros((2, 3))}, {"w": np.zeros((3, 2))})["w"]

    assert (delta.kind, delta.measures) == ("reshaped", ())


@pytest.mark.parametrize(
    ("left", "right", "kind"),
    [
        (np.zeros(0), np.zeros(0), "identical"),
        (np.zeros(0), np.zeros(0, "float32"), "recast"),
        (np.zeros((0, 2)), np.zeros((2, 0)), "reshaped"),
        (np.float32(1), np.float32(1), "identical"),
        (np.zeros(1, "complex64"), np.zeros(1), "uncompared"),
        (np.array([0.0]), np.array([-0.0]), "changed"),
        (np.array([True]), np.array([1], "uint8"), "recast"),
    ],
)
def test_the_kind_of_odd_pairs(left, right, kind):
    assert pipeline.diff({"w": left}, {"w": right})["w"].kind == kind


def test_progress_adds_up_to_the_bytes_of_both_sides(cut):
    cut(8, 32)
    left = {"a": np.zeros(100), "b": np.zeros(3, "float32"), "gone": np.zeros(5)}
    right = {"a": np.ones(100), "b": np.zeros(3, "float32")}
    seen: list[int] = []

    diff = pipeline.diff(left, right)
    diff.session.progress = seen.append
    diff.measure()

    sizes = [array.nbytes for array in itertools.chain(left.values(), right.values())]
    assert sum(seen) == pytest.approx(sum(sizes), abs=len(seen))


def test_deltas_come_in_the_order_of_the_pairs_while_later_ones_are_measured(cut):
    cut(4, 8)
    arrays = {f"t{n}": np.arange(float(n % 7 * 10)) for n in range(50)}
    left, right = (
        MemorySource(arrays),
        MemorySource({name: array + 1 for name, array in arrays.items()}),
    )
    pairs = pair(left.tensors, right.tensors)
    engine = Threads(4)

    found = [delta.pair for delta in deltas(pairs, left, right, engine)]

    engine.close()
    assert found == pairs


def test_a_fault_while_reading_comes_out_where_it_is_waited_for():
    class Broken(InMemory):
        def read_into(self, start, buffer):  # noqa: ARG002
            raise OSError(5, "the disk is gone")

    arrays = {"w": np.zeros(10)}
    engine = Threads(2)
    broken = MemorySource(arrays)
    broken.arrays["w"] = Broken("w", b"")

    with pytest.raises(OSError, match="the disk is gone"):
        list(deltas(pair(broken.tensors, broken.tensors), broken, MemorySource(arrays), engine))
    engine.close()
