"""What must not matter to a diff: sides, order, files, threads, chunks, neighbours, formats."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from models import small as models
from models.small import Model, model_pairs, write

import difflens
from difflens.core.records import Delta, Report, View
from difflens.diffs.story import report
from difflens.measure import chunks
from difflens.render.diffs.full_json import full_json, parse

KINDS = {"added": "removed", "removed": "added"}
SIDED = ("left", "right")


@pytest.fixture
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("laws")


def compared(folder: Path, left: Model, right: Model, **options: Any) -> Report:
    paths = [
        write(folder / f"{side}.safetensors", model)
        for side, model in zip(SIDED, (left, right), strict=True)
    ]
    return report(difflens.diff(*paths, **options))


def facts(judged: Report) -> dict[str, Any]:
    return {row.name: row for row in judged.tensors}


@given(model=models.models())
def test_a_model_is_identical_to_itself_even_with_nans(folder, model):
    judged = compared(folder, model, model)

    assert {row.kind for row in judged.tensors} <= {"identical"}
    assert judged.verdict.word == ("identical" if model else "nothing_to_compare")
    assert judged.verdict.differs == (not model)


@given(pair=model_pairs())
def test_swapping_the_sides_swaps_added_and_removed_and_keeps_absolute_figures(folder, pair):
    there, back = compared(folder, *pair), compared(folder, *reversed(pair))

    ways = {(row.left.name if row.left else row.right.name): row for row in back.tensors}
    for row in there.tensors:
        twin = ways[(row.right or row.left).name]
        assert KINDS.get(row.kind, row.kind) == twin.kind
        assert (row.left, row.right) == (twin.right, twin.left)
        for key in ("max_abs", "max_abs_index", "changed_count", "sign_flips", "bit_equal_count"):
            assert getattr(row.figures, key, None) == getattr(twin.figures, key, None)
        assert row.left_stats == twin.right_stats
    assert there.verdict.differs == back.verdict.differs


@given(pair=model_pairs(), order=st.randoms(use_true_random=False))
def test_the_order_of_tensors_in_a_file_does_not_matter(folder, pair, order):
    shuffled = []
    for model in pair:
        names = list(model)
        order.shuffle(names)
        shuffled.append({name: model[name] for name in names})

    assert compared(folder, *pair).tensors == compared(folder, *shuffled).tensors


@given(pair=model_pairs(), cut=st.integers(0, 5))
def test_one_file_or_two_shards_give_the_same_deltas(folder, pair, cut):
    for side, model in zip(SIDED, pair, strict=True):
        names = sorted(model)
        for old in (folder / side).glob("*"):
            old.unlink()
        write(folder / side / "model-1.safetensors", {name: model[name] for name in names[:cut]})
        write(folder / side / "model-2.safetensors", {name: model[name] for name in names[cut:]})

    sharded = report(difflens.diff(folder / "left", folder / "right"))

    assert compared(folder, *pair).tensors == sharded.tensors


def large_pair() -> tuple[dict[str, Any], dict[str, Any]]:
    random = np.random.default_rng(7)
    left = {
        f"layers.{layer}.w": random.standard_normal((300, 1001)).astype("float32")
        for layer in range(4)
    }
    right = {name: array + np.float32(0.01) for name, array in left.items()}
    right["layers.2.w"] = left["layers.2.w"].copy()
    right["layers.2.w"][17, 5] = np.nan
    return left, right


@pytest.mark.parametrize("threads", [2, 3, 8])
def test_threads_change_nothing_bit_for_bit(monkeypatch, threads):
    monkeypatch.setattr(chunks, "STEP", 1 << 12)
    monkeypatch.setattr("difflens.measure.pairs.CHUNK", 1 << 14)
    left, right = large_pair()

    alone = difflens.diff(left, right, threads=1).deltas

    assert alone == difflens.diff(left, right, threads=threads).deltas


@pytest.mark.parametrize(
    ("step", "chunk"), [(1000, 5000), (1 << 10, 1 << 12), (77, 1001), (4096, 8192)]
)
def test_the_size_of_chunks_changes_counts_not_at_all_and_sums_by_rounding(
    monkeypatch, step, chunk
):
    left, right = large_pair()
    whole = difflens.diff(left, right).deltas
    monkeypatch.setattr(chunks, "STEP", step)
    monkeypatch.setattr("difflens.measure.pairs.CHUNK", chunk)

    parts = difflens.diff(left, right).deltas

    for one, other in zip(whole, parts, strict=True):
        assert_same_but_for_rounding(one, other)


def assert_same_but_for_rounding(one: Delta, other: Delta) -> None:
    assert (one.pair, one.kind) == (other.pair, other.kind)
    for before, after in zip(one.measures, other.measures, strict=True):
        for field in before.__struct_fields__:
            a, b = getattr(before, field), getattr(after, field)
            if isinstance(a, float) and "mean" not in field and "m3" not in field:
                assert a == pytest.approx(b, rel=1e-12)
            elif isinstance(a, float):
                assert a == pytest.approx(b, rel=1e-9, abs=1e-12)
            else:
                assert a == b


@given(pair=model_pairs())
def test_a_report_written_as_full_json_reads_back_as_the_same_report(folder, pair):
    judged = compared(folder, *pair)

    text = full_json(judged, View())

    assert full_json(parse(text), View()) == text
    assert [row.name for row in parse(text).tensors] == [row.name for row in judged.tensors]
    assert parse(text).totals == judged.totals


@given(pair=model_pairs(), frozen=models.tensors())
def test_a_frozen_tensor_on_both_sides_changes_no_other_delta(folder, pair, frozen):
    with_frozen = [{**model, "zz.frozen": frozen} for model in pair]

    alone, together = compared(folder, *pair), compared(folder, *with_frozen)

    rest = tuple(row for row in together.tensors if row.name != "zz.frozen")
    assert alone.tensors == rest


def test_a_mapping_of_arrays_and_a_file_of_them_are_the_same_model(folder):
    left, right = large_pair()
    encoded = [
        {name: models.tensor(array) for name, array in side.items()} for side in (left, right)
    ]

    filed = compared(folder, *encoded)

    assert report(difflens.diff(left, right)).tensors == filed.tensors
