"""Leftovers matched by what they hold: what is paired is identical, what is in doubt stays lone."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import difflens
from difflens.core.records import Delta, Pair, TensorInfo
from difflens.diffs import story as pipeline
from difflens.diffs.pairing import content
from difflens.measure import Threads, deltas
from difflens.measure.scan import Scan
from difflens.models.opening import InMemory, MemorySource


def random(*shape: int, seed: int = 0, dtype: Any = np.float32) -> Any:
    return (100 * np.random.default_rng([seed, *shape]).standard_normal(shape)).astype(dtype)


def found(left: dict[str, Any], right: dict[str, Any], **options: Any) -> dict[str, Delta]:
    return {delta.name: delta for delta in pipeline.diff(left, right, **options).deltas}


def told(delta: Delta) -> tuple[str, str, str | None]:
    return delta.kind, delta.pair.how, delta.pair.transform


def gates(array: Any, *order: int) -> Any:
    return np.concatenate([np.split(array, len(order))[gate] for gate in order])


def test_a_tensor_under_a_name_nobody_knows_is_found():
    deltas = found({"w": random(4, 8)}, {"onnx::Add_12": random(4, 8)})

    assert told(deltas["onnx::Add_12"]) == ("identical", "content", None)
    assert list(deltas) == ["onnx::Add_12"]
    assert deltas["onnx::Add_12"].pair.left.name == "w"


@pytest.mark.parametrize("shape", [(8, 5), (6, 6), (3, 4000)])
def test_a_transposed_matrix_is_found_even_a_square_one(shape):
    deltas = found({"w": random(*shape)}, {"onnx::MatMul_12": random(*shape).T.copy()})

    assert told(deltas["onnx::MatMul_12"]) == ("identical", "content", "left transposed")


def test_dimensions_of_1_do_not_matter():
    before = {"bias": random(64), "w": random(8, 5, seed=1), "g": random(1, 8, 3)}
    after = {
        "c1": random(64).reshape(1, 64, 1, 1),
        "c2": random(8, 5, seed=1).T.reshape(1, 5, 8),
        "c3": random(1, 8, 3)[0].T.copy(),
    }

    deltas = found(before, after)

    assert told(deltas["c1"]) == ("identical", "content", "right [1, 64, 1, 1] seen as [64]")
    assert told(deltas["c2"]) == ("identical", "content", "left transposed")
    assert told(deltas["c3"]) == ("identical", "content", "right transposed")


@pytest.mark.parametrize(
    ("order", "said"),
    [
        ((0, 3, 1, 2), "left gates re-ordered"),
        ((0, 2, 1, 3), "left gates re-ordered"),
        ((1, 0, 2), "left gates re-ordered"),
        ((3, 2, 1, 0), "left rows shuffled"),
        ((2, 1, 0), "left rows shuffled"),
    ],
)
def test_the_gates_of_a_recurrent_layer_are_put_in_order(order, said):
    weights, biases = random(len(order) * 8, 5), random(len(order) * 8)

    deltas = found(
        {"weight": weights, "bias": biases},
        {"W": gates(weights, *order)[None], "B": gates(biases, *order)[None]},
    )

    assert told(deltas["W"]) == ("identical", "content", said)
    assert told(deltas["B"]) == ("identical", "content", said)


def test_the_side_without_a_leading_1_is_the_one_re_ordered():
    weights = random(32, 5)

    deltas = found({"W": gates(weights, 0, 3, 1, 2)[None]}, {"weight": weights})

    assert told(deltas["weight"]) == ("identical", "content", "right gates re-ordered")


@given(order=st.permutations(range(12)))
def test_any_order_of_rows_is_undone_and_said(order):
    array = random(12, 3)

    (delta,) = found({"a": array}, {"b": array[order]}).values()

    assert (delta.kind, delta.pair.how) == ("identical", "content")
    assert bool(delta.pair.transform) == (list(order) != list(range(12)))


@pytest.mark.parametrize("dtype", [np.float16, np.float64, np.int8, np.int64, np.uint8])
def test_names_shuffled_over_many_tensors_are_all_found(dtype):
    before = {f"layers.{n}.w": random(12, 16, seed=n, dtype=dtype) for n in range(40)}
    after = {f"t{(7 * n) % 40}": array for n, array in enumerate(before.values())}

    deltas = found(before, after)

    assert {told(delta) for delta in deltas.values()} == {("identical", "content", None)}
    assert len(deltas) == 40
    assert all(after[name] is before[each.pair.left.name] for name, each in deltas.items())


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ({"a": random(20), "b": random(20)}, {"c": random(20)}),
        ({"a": random(20)}, {"c": random(20), "d": random(20)}),
        ({"a": random(4, 5), "b": random(4, 5).T.copy()}, {"c": random(4, 5)}),
        ({"a": np.ones(64, "f4")}, {"c": np.ones(64, "f4")}),
        ({"a": random(15)}, {"c": random(15)}),
        ({"a": random(20)}, {"c": random(20, seed=1).astype(np.float64)}),
        ({"a": random(20)}, {"c": random(20, seed=1)}),
        ({"a": random(4, 5)}, {"c": random(4, 5).reshape(2, 10)}),
        ({"a": random(6, 4)}, {"c": np.random.default_rng(1).permuted(random(6, 4), axis=1)}),
        ({"a": np.full(20, np.nan, "f4")}, {"c": np.full(20, np.nan, "f4")}),
    ],
    ids=["two to one", "one to two", "a transpose beside it", "constant", "too small",
         "another dtype", "other values", "another shape", "columns shuffled", "no value"],
)  # fmt: skip
def test_what_is_in_doubt_stays_unpaired(left, right):
    deltas = found(left, right)

    assert {delta.kind for delta in deltas.values()} == {"added", "removed"}
    assert len(deltas) == len(left) + len(right)


def test_equal_rows_have_no_order_to_find():
    array = random(8, 4)
    array[3] = array[5]

    assert {each.kind for each in found({"a": array}, {"b": array[::-1]}).values()} == {
        "added",
        "removed",
    }


def test_nans_and_signed_zeros_are_compared_as_bits():
    array = random(8, 4)
    array[0, 0], array[1, 1] = np.nan, -0.0
    flipped = array.copy()
    flipped[1, 1] = 0.0

    assert told(found({"a": array}, {"b": array.T.copy()})["b"])[0] == "identical"
    assert found({"a": array}, {"b": flipped})["b"].kind == "added"


def test_too_many_leftovers_are_left_alone(monkeypatch):
    monkeypatch.setattr(content, "_MOST", 1)
    left = {"a": random(20), "b": random(20, seed=1)}

    assert found(left, {"c": random(20)})["c"].kind == "added"


def test_exact_matching_and_headers_alone_never_look_inside():
    left, right = {"a": random(20)}, {"b": random(20)}

    assert found(left, right, match="exact")["b"].kind == "added"
    assert found(left, right, shape_only=True)["b"].kind == "added"


def test_nothing_is_read_until_somebody_looks_and_leftovers_only_for_leftovers(monkeypatch):
    read = []
    kept = InMemory.read_into
    monkeypatch.setattr(
        InMemory, "read_into", lambda self, *rest: read.append(self.name) or kept(self, *rest)
    )
    diff = pipeline.diff({"w": random(20), "a": random(32)}, {"w": random(20), "b": random(32)})
    assert read == []

    assert diff["w"].kind == "identical"
    assert set(read) == {"w"}

    assert diff["a"].kind == diff["b"].kind == "identical"
    assert diff["a"].pair.how == "content"


def test_a_path_on_either_name_finds_the_pair():
    left, right = {"enc.w": random(20), "x": random(3)}, {"onnx::1": random(20), "x": random(3)}

    for path in ("enc", "onnx"):
        (delta,) = found(left, right, path=path).values()
        assert told(delta) == ("identical", "content", None)


def test_statistics_are_there_where_they_are_asked_for():
    (delta,) = found({"a": random(4, 8)}, {"b": random(4, 8).T.copy()}, always=True).values()

    assert delta.measured(Scan).count == 32
    assert delta.relative_l2 == 0


def test_within_one_format_another_name_is_a_difference():
    report = difflens.diff({"a": random(20)}, {"b": random(20)}).report()

    assert report.verdict.differs
    assert report.totals.renamed_beyond_prefix == 1
    assert report.verdict.sentence == "different: 1 renamed, of 1 tensor"


def test_fingerprints_do_not_depend_on_the_order_of_large_tensors():
    array = random(3000, 2000)
    shuffled = array[np.random.default_rng(1).permutation(3000)]
    source = MemorySource({"a": array, "b": shuffled.T.copy()})
    lone = [(Pair(info, None), info) for info in source.tensors.values()]

    one, other = content._fingerprints(lone, source, Threads(2))

    assert one.exact[2:] == other.exact[2:]
    assert list(content._alike(one, [other])) == [other]


@pytest.mark.parametrize("is_left", [True, False])
def test_two_vectors_kept_in_one_are_told_apart(is_left):
    parts = {"b_ih": random(32), "b_hh": random(32, seed=1), "other": random(32, seed=2)}
    whole = {"B": np.concatenate([gates(parts[name], 0, 3, 1, 2) for name in ("b_ih", "b_hh")])}
    whole["B"] = whole["B"][None]

    deltas = found(whole, parts) if is_left else found(parts, whole)

    names = [(each.pair.left, each.pair.right) for each in deltas.values()]
    paired = {tuple(side.name for side in both) for both in names if all(both)}
    expected = {("B[0]", "b_ih"), ("B[1]", "b_hh")}
    assert paired == (expected if is_left else {(part, half) for half, part in expected})
    lone = [each for each in deltas.values() if each.kind != "identical"]
    assert [each.name for each in lone] == ["other"]
    undone = {each.pair.transform for each in deltas.values()}
    assert undone == {None, "left gates re-ordered"}


def test_half_a_match_is_none():
    whole = np.concatenate([random(32), random(32, seed=1)])

    kinds = [
        each.kind
        for each in found({"B": whole}, {"a": random(32), "b": random(32, seed=5)}).values()
    ]

    assert set(kinds) == {"added", "removed"}


def test_runs_of_rows_are_written_as_spans():
    assert content._spans([2, 3, 0, 1, 5, 4]) == ((2, 2), (0, 2), (5, 1), (4, 1))


def test_packed_floats_that_only_bytes_can_compare_are_left_alone():
    assert content._look(TensorInfo("a", "F6_E2M3", (64,))) is None


def test_a_lone_tensor_is_described_as_before():
    pair = Pair(TensorInfo("a", "F32", (20,)), None)
    source = MemorySource({"a": random(20)})

    (delta,) = deltas([pair], source, source, Threads(1))

    assert delta.kind == "removed"
