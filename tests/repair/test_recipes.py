"""Recipes: what a few numbers explain takes little, and the very bits come back."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from measure.codec.drawn import specials
from models.small import Model, write
from repair.test_patch import assert_applies, bf16, files, steps, weights

import difflens
from difflens.core.errors import CorruptFile, PatchError
from difflens.core.records import TensorInfo
from difflens.measure.codec import scale
from difflens.repair.chunks import kind_of
from difflens.repair.fields import Fields, number
from difflens.repair.recipes import Rows, read_recipe

_EMPTY = 700  # bytes of a patch without chunks


def cast(data: bytes, first: str, last: str) -> bytes:
    kinds = kind_of(first), kind_of(last)
    out = bytearray(len(data) // kinds[0][0] * kinds[1][0])
    scale(data, out, kinds, (1.0, 1), False)
    return bytes(out)


def with_specials(n: int) -> Any:
    """Make F32 weights with zeros, infinities and NaN among them."""
    values = weights(n)
    odd = np.array(specials("F32"), "<u4").view("<f4")
    values[: len(odd)] = odd
    return values


@pytest.mark.parametrize(
    ("first", "last"),
    [("F32", "BF16"), ("F32", "F16"), ("BF16", "F32"), ("F16", "BF16"), ("F32", "F8_E4M3")],
)
def test_a_cast_takes_next_to_nothing(tmp_path, first, last):
    words = cast(with_specials(50_000).tobytes(), "F32", first)
    base = {"w": (first, (250, 200), words)}
    target = {"w": (last, (250, 200), cast(words, first, last))}
    summary = assert_applies(tmp_path, *files(tmp_path, base, target), way_back="never")

    assert summary.size_bytes < _EMPTY
    assert summary.chunks == {"recipe": 1}


def test_a_cast_runs_backwards_where_it_must(tmp_path):
    values = with_specials(50_000)
    base = {"w": ("F32", (50_000,), values.tobytes())}
    target = {"w": ("BF16", (50_000,), cast(values.tobytes(), "F32", "BF16"))}
    summary = assert_applies(tmp_path, *files(tmp_path, base, target), way_back="always")

    assert summary.reversible
    assert 90_000 < summary.size_bytes < 120_000  # the bits that the cast lost


def test_a_trained_tensor_that_was_cast_takes_what_its_steps_take(tmp_path):
    values = weights(60_000)
    moved = values + weights(60_000, 9) * np.float32(1e-4)
    base, target = {"w": ("F32", (60_000,), values.tobytes())}, {"w": bf16(moved)}
    summary = assert_applies(tmp_path, *files(tmp_path, base, target))
    (tmp_path / "again").mkdir()
    plain = assert_applies(tmp_path, *files(tmp_path / "again", {"w": bf16(values)}, target))

    assert summary.size_bytes < plain.size_bytes * 1.1


@pytest.mark.parametrize(("decay", "count"), [(1e-7, 40), (1e-6, 7), (3e-5, 1)])
def test_decay_of_weights_is_found_and_repeated_exactly(tmp_path, decay, count):
    values = weights(50_000)
    shrunk = values.copy()
    for _ in range(count):
        shrunk *= np.float32(1 - decay)
    base, target = ({"w": ("F32", (50_000,), each.tobytes())} for each in (values, shrunk))
    summary = assert_applies(tmp_path, *files(tmp_path, base, target))

    assert summary.size_bytes < _EMPTY
    assert summary.reversible


def test_a_scale_with_other_changes_still_helps(tmp_path):
    values, random = weights(50_000), np.random.default_rng(3)
    scaled = values * np.float32(0.9371)
    scaled[::50] += (random.normal(size=1000) * 1e-3).astype("<f4")
    base, target = ({"w": ("F32", (50_000,), each.tobytes())} for each in (values, scaled))
    summary = assert_applies(tmp_path, *files(tmp_path, base, target))

    assert summary.size_bytes < 20_000


def adapted(rank: int = 4, rows: int = 320, columns: int = 256) -> tuple[Any, Any, Any]:
    """Make a matrix and the two thin ones whose product is added to it."""
    random = np.random.default_rng(5)
    up = (random.normal(size=(rows, rank)) * 0.01).astype("<f4")
    down = (random.normal(size=(rank, columns)) / 16).astype("<f4")
    return weights(rows * columns).reshape(rows, columns), up, down


def merged(base: Any, up: Any, down: Any, factor: float) -> Model:
    """Merge as PEFT does: the product is rounded before it is added."""
    values = np.frombuffer(cast(bf16(base)[2], "BF16", "F32"), "<f4").reshape(base.shape)
    delta = np.frombuffer(cast(bf16(up @ down * factor)[2], "BF16", "F32"), "<f4")
    return {"layers.0.q_proj.weight": bf16(values + delta.reshape(base.shape))}


@pytest.mark.parametrize("way_back", ["auto", "always"])
def test_an_adapter_is_recovered_from_the_weights(tmp_path, way_back):
    base, up, down = adapted()
    models = {"layers.0.q_proj.weight": bf16(base)}, merged(base, up, down, 2.0)
    summary = assert_applies(tmp_path, *files(tmp_path, *models), way_back=way_back)
    matrices = 2 * 4 * (320 + 256)

    assert summary.chunks == {"recipe": 1}
    assert summary.size_bytes < base.size * 2 * (0.06 if way_back == "auto" else 0.11)
    assert summary.size_bytes > matrices * 0.7


@pytest.mark.parametrize("is_turned", [False, True])
def test_with_the_adapter_a_patch_takes_its_matrices(tmp_path, is_turned):
    base, up, down = adapted()
    target = merged(base, up, down, 2.0)
    names = [f"base_model.model.layers.0.q_proj.lora_{each}.weight" for each in "AB"]
    matrices = (up.T, down.T) if is_turned else (down, up)
    adapter = {
        name: ("F32", each.shape, each.tobytes())
        for name, each in zip(names, matrices, strict=True)
    }
    write(tmp_path / "adapter" / "adapter_model.safetensors", adapter)
    config = {"peft_type": "LORA", "r": 4, "lora_alpha": 8, "fan_in_fan_out": is_turned}
    (tmp_path / "adapter" / "adapter_config.json").write_text(json.dumps(config))
    paths = files(tmp_path, {"layers.0.q_proj.weight": bf16(base)}, target)
    summary = assert_applies(tmp_path, *paths, adapter=tmp_path / "adapter", way_back="never")

    assert summary.size_bytes < (up.nbytes + down.nbytes) * 1.05 + _EMPTY


def test_what_is_no_adapter_is_refused(tmp_path):
    base, target, patch = files(tmp_path, *steps(n=100))
    with pytest.raises(PatchError, match="not an adapter"):
        difflens.create_patch(base, target, patch, adapter=base)
    names = [f"w.lora_{each}.weight" for each in "AB"]
    alone = write(tmp_path / "a.safetensors", {name: bf16(weights(4)) for name in names})
    with pytest.raises(PatchError, match="no lora_alpha"):
        difflens.create_patch(base, target, patch, adapter=alone)


def test_rows_in_another_order_take_their_order(tmp_path):
    values = weights(200_000).reshape(500, 400)
    order = np.random.default_rng(1).permutation(500)
    base, target = {"w": bf16(values)}, {"w": bf16(values[order])}
    summary = assert_applies(tmp_path, *files(tmp_path, base, target))

    assert summary.size_bytes < 2500
    assert not summary.reversible
    assert assert_applies(tmp_path, *files(tmp_path, base, target), way_back="always").reversible


@pytest.mark.parametrize("rows", [300, 700])
def test_a_tensor_with_more_or_fewer_rows_takes_what_is_new(tmp_path, rows):
    values = weights(700 * 64).reshape(700, 64)
    moved = np.concatenate([values[:200], values[250:rows]])
    base = {"w": bf16(values[:500]), "v": ("F4", (8, 2), bytes(8))}
    target = {"w": bf16(moved), "v": ("F4", (4, 2), bytes(4))}
    summary = assert_applies(tmp_path, *files(tmp_path, base, target))

    assert summary.size_bytes < _EMPTY + max(rows - 500, 0) * 128


def test_recipes_are_composed_and_applied_in_memory(tmp_path):
    values = weights(30_000)
    models = [values, values * np.float32(0.5), values * np.float32(0.5)]
    models[2] = models[2].copy()
    models[2][:9] += np.float32(1e-3)
    a, b, c = (
        write(tmp_path / f"{i}.safetensors", {"w": ("F32", (30_000,), each.tobytes())})
        for i, each in enumerate(models)
    )
    first, second, both = (tmp_path / name for name in "pqr")
    difflens.create_patch(a, b, first)
    difflens.create_patch(b, c, second)
    difflens.compose_patches(first, second, a, both)
    difflens.create_patch(a, c, tmp_path / "direct")
    assert both.read_bytes() == (tmp_path / "direct").read_bytes()

    model = {"w": values.copy()}
    difflens.apply_patch(model, both)
    assert model["w"].tobytes() == models[2].tobytes()
    difflens.apply_patch(model, both, reverse=True)
    assert model["w"].tobytes() == values.tobytes()


def test_composing_with_rows_and_casts_makes_what_create_makes(tmp_path):
    values = weights(90_000).reshape(300, 300)
    order = np.random.default_rng(1).permutation(300)
    models: list[Model] = [
        {"w": ("F32", (300, 300), values.tobytes())},
        {"w": bf16(values)},
        {"w": bf16(values[order])},
    ]
    a, b, c = (write(tmp_path / f"{i}.safetensors", each) for i, each in enumerate(models))
    first, second, both = (tmp_path / name for name in "pqr")
    difflens.create_patch(a, b, first)
    difflens.create_patch(b, c, second)
    difflens.compose_patches(first, second, a, both)
    difflens.create_patch(a, c, tmp_path / "direct")
    difflens.apply_patch(a, both, tmp_path / "out")

    assert (tmp_path / "out").read_bytes() == c.read_bytes()
    assert both.read_bytes() == (tmp_path / "direct").read_bytes()


INFO = TensorInfo("w", "F32", (4, 6))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        number(9),
        number(1) + number(0) + np.float64(1).tobytes(),
        number(1) + number(2000) + np.float64(1).tobytes(),
        number(1) + number(1) + np.float64(np.nan).tobytes(),
        number(1) + number(1) + np.float64(0).tobytes(),
        number(1) + number(1) + np.float64(1).tobytes() + b"x",
        number(2) + bytes(30),
        number(2) + b"\0" + number(0) + np.float64(1).tobytes() + number(300) + bytes(9),
        number(2) + b"\0" + number(0) + np.float64(1e40).tobytes() + number(1) + bytes(9),
        number(3) + number(0),
        number(3) + number(1) + number(1) + number(5),
        number(3) + number(2) + number(1) + number(2) + number(2) + number(2) + b"\0",
        number(3) + number(1) + number(3) + number(4),
        number(3) + number(1) + number(2) + number(4),
        number(3) + number(1) + number(1) + number(0),
        number(3) + number(2**62),
    ],
)
def test_hostile_recipes_are_refused(data):
    with pytest.raises(CorruptFile):
        read_recipe(Fields(data, "p"), INFO, INFO)


@pytest.mark.parametrize("value", [np.inf, np.nan])
def test_matrices_with_infinities_are_refused(value):
    from difflens.repair.recipes import summed

    factors = np.full((4, 1), value, "<f4"), np.ones((1, 6), "<f4")
    recipe = summed(INFO, factors, "F32", factor=1.0, rounded=False)
    with pytest.raises(CorruptFile, match="does not fit"):
        read_recipe(Fields(recipe.to_bytes(), "p"), INFO, INFO)


def test_runs_of_rows_are_written_and_read():
    for runs in (((1, 4),), ((0, 1), (3, 2), (1, 1)), ((2, 1), (1, 1), (0, 2))):
        rows = Rows(24, runs)

        assert read_recipe(Fields(rows.to_bytes(), "p"), INFO, INFO) == rows


def test_a_recipe_for_another_dtype_is_refused(tmp_path):
    base, target, patch = files(
        tmp_path, {"w": ("F32", (3000,), weights(3000).tobytes())}, {"w": bf16(weights(3000))}
    )
    difflens.create_patch(base, target, patch)
    other = write(tmp_path / "o.safetensors", {"w": ("F64", (3000,), bytes(24_000))})
    integers = write(tmp_path / "i.safetensors", {"w": ("I32", (3000,), bytes(12_000))})
    for model in (other, integers):
        with pytest.raises(difflens.DifflensError):
            difflens.apply_patch(model, patch, tmp_path / "out")
    assert not Path(tmp_path / "out").exists()
