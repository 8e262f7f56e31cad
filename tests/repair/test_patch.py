"""Patches: the target comes back with its very bytes, whatever the two models are."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from models.small import Encoded, Model, tensors, write
from strategies import DTYPES, NUMPY, pairs

import difflens
from difflens.core.errors import DifflensError, LimitExceeded, OutputError, PatchError

SIDES = st.dictionaries(st.sampled_from("abcdeé"), tensors(), max_size=5)


def weights(n: int, seed: int = 0) -> Any:
    return (np.random.default_rng(seed).normal(size=n) * 0.02).astype("<f4")


def bf16(values: Any) -> Encoded:
    bits = values.astype("<f4").view("<u4")
    return "BF16", values.shape, (bits + 0x7FFF + (bits >> 16 & 1) >> 16).astype("<u2").tobytes()


def steps(seed: int = 0, n: int = 60_000) -> tuple[Model, Model]:
    """Make a model and the same one after a small step."""
    first = {f"layers.{i}.w": weights(n >> i, seed + i) for i in range(4)}
    moved = {name: each + weights(len(each), 9) * 1e-4 for name, each in first.items()}
    return {name: bf16(each) for name, each in first.items()}, {
        name: bf16(each) for name, each in moved.items()
    }


def files(folder: Path, base: Model, target: Model) -> tuple[Path, Path, Path]:
    return (
        write(folder / "base.safetensors", base, {"format": "pt"}),
        write(folder / "target.safetensors", target, {"format": "pt"}),
        folder / "made.patch",
    )


def assert_applies(folder: Path, base: Path, target: Path, patch: Path, **how: Any) -> Any:
    """Check that the patch makes the target of the base, and the base of the target if it can."""
    summary = difflens.create_patch(base, target, patch, **how)
    difflens.apply_patch(base, patch, folder / "there.safetensors")
    assert (folder / "there.safetensors").read_bytes() == target.read_bytes()
    if summary.reversible:
        difflens.apply_patch(target, patch, folder / "back.safetensors", reverse=True)
        assert (folder / "back.safetensors").read_bytes() == base.read_bytes()
    return summary


@given(base=SIDES, target=SIDES, way_back=st.sampled_from(["auto", "never"]))
def test_any_two_models_are_patched(tmp_path, base, target, way_back):
    assert_applies(tmp_path, *files(tmp_path, base, target), way_back=way_back)


@given(data=st.data(), dtype=st.sampled_from(DTYPES))
def test_alike_tensors_of_every_dtype_are_patched_both_ways(tmp_path, data, dtype):
    left, right = data.draw(pairs(dtype))
    count = len(left) // max(np.dtype(NUMPY[dtype]).itemsize, 1)
    shape = (count // 2,) if dtype == "C64" else (count * 2,) if dtype == "F4" else (count,)
    models = ({"w": (dtype, shape, each)} for each in (left, right))
    summary = assert_applies(tmp_path, *files(tmp_path, *models), way_back="always")

    assert summary.reversible


def test_a_step_of_training_takes_little_and_runs_both_ways(tmp_path):
    summary = assert_applies(tmp_path, *files(tmp_path, *steps()))

    assert summary.reversible
    assert summary.changed == 4
    assert summary.size_bytes < summary.target_bytes / 20


def test_the_same_model_takes_an_index_and_no_chunk(tmp_path):
    base, target, patch = files(tmp_path, steps()[0], steps()[0])
    summary = assert_applies(tmp_path, base, target, patch)

    assert (summary.changed, summary.chunks) == (0, {"identical": 4})
    assert summary.size_bytes < 600


def test_unrelated_models_take_no_more_than_the_target(tmp_path):
    noise = np.random.default_rng(1)
    base, target = (
        {"w": ("U8", (300_000,), noise.bytes(300_000)), "v": bf16(weights(50_000, seed))}
        for seed in (1, 2)
    )
    summary = assert_applies(tmp_path, *files(tmp_path, base, target))

    assert summary.size_bytes <= summary.target_bytes * 1.001 + 600


def test_tensors_may_be_added_removed_renamed_reshaped_and_recast(tmp_path):
    values = weights(6000)
    base = {
        "gone": bf16(values[:100]),
        "model.h.w": bf16(values),
        "shape": ("F32", (60, 100), values.tobytes()),
        "cast": ("F32", (6000,), values.tobytes()),
    }
    target = {
        "new": bf16(values[:333]),
        "h.w": bf16(values + np.float32(1e-4)),
        "shape": ("F32", (100, 60), values.tobytes()),
        "cast": bf16(values),
    }
    summary = assert_applies(tmp_path, *files(tmp_path, base, target))

    assert (summary.added, summary.removed, summary.reversible) == (1, 1, False)
    assert summary.chunks["identical"] == 1
    assert summary.chunks["recipe"] == 1


def test_what_cannot_run_backwards_says_so(tmp_path):
    base, target, patch = files(tmp_path, steps()[0], {"other": bf16(weights(10))})
    with pytest.raises(PatchError, match="cannot run backwards"):
        difflens.create_patch(base, target, patch, way_back="always")
    assert not patch.exists()
    difflens.create_patch(base, target, patch)
    with pytest.raises(PatchError, match="cannot be applied backwards"):
        difflens.apply_patch(target, patch, tmp_path / "out.safetensors", reverse=True)


@pytest.mark.parametrize("shift", [0, 3])
def test_a_wrong_base_is_refused_and_nothing_is_written(tmp_path, shift):
    base, target, patch = files(tmp_path, *steps())
    difflens.create_patch(base, target, patch)
    data = bytearray(base.read_bytes())
    data[-1 - shift * 9000] ^= 1
    wrong = tmp_path / "wrong.safetensors"
    wrong.write_bytes(data)
    before = sorted(tmp_path.iterdir())

    for model in (wrong, target):
        with pytest.raises(PatchError, match="not the base it was made with"):
            difflens.apply_patch(model, patch, tmp_path / "out.safetensors")
    with pytest.raises(PatchError, match="not the base"):
        difflens.verify_patch(wrong, patch)
    assert sorted(tmp_path.iterdir()) == before


def test_a_wrong_base_is_refused_before_a_file_is_opened_for_writing(tmp_path, monkeypatch):
    base, target, patch = files(tmp_path, *steps())
    difflens.create_patch(base, target, patch)
    monkeypatch.setattr("tempfile.NamedTemporaryFile", None)

    with pytest.raises(PatchError, match="not the base"):
        difflens.apply_patch(target, patch, tmp_path / "out.safetensors")


def test_a_base_with_another_header_or_other_tensors_is_refused(tmp_path):
    base, target, patch = files(tmp_path, *steps())
    difflens.create_patch(base, target, patch)
    resaved = write(tmp_path / "resaved.safetensors", steps()[0])
    other = write(tmp_path / "other.safetensors", {"w": bf16(weights(5))})

    for model in (resaved, other):
        with pytest.raises(PatchError, match="made for another base"):
            difflens.apply_patch(model, patch, tmp_path / "out.safetensors")


def test_a_model_of_another_format_is_a_base_and_a_target(tmp_path):
    first, second = ({"w": weights(5000), "n": np.arange(9)} for _ in range(2))
    second["w"] = second["w"] + np.float32(1e-6)
    base, target, patch = tmp_path / "b.npz", tmp_path / "t.npz", tmp_path / "p"
    np.savez(base, **first)
    np.savez(target, **second)
    difflens.create_patch(base, target, patch)
    difflens.apply_patch(base, patch, tmp_path / "out.safetensors")
    difflens.apply_patch(tmp_path / "out.safetensors", patch, tmp_path / "back", reverse=True)

    assert list(difflens.diff(tmp_path / "out.safetensors", target).changed) == []
    assert list(difflens.diff(tmp_path / "back", base).changed) == []


def shards(folder: Path, model: Model, name: str) -> Path:
    """Write a model as two shards with an index."""
    names = list(model)
    parts = {f"model-0000{i + 1}-of-00002.safetensors": names[i::2] for i in range(2)}
    for file, some in parts.items():
        write(folder / name / file, {each: model[each] for each in some})
    weight_map = {each: file for file, some in parts.items() for each in some}
    text = json.dumps({"metadata": {"total_size": 1}, "weight_map": weight_map})
    (folder / name / "model.safetensors.index.json").write_text(text)
    return folder / name


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def test_folders_of_shards_come_back_with_their_index(tmp_path):
    base, target = (shards(tmp_path, each, name) for each, name in zip(steps(), "bt", strict=True))
    patch, out = tmp_path / "p", tmp_path / "out"
    assert difflens.create_patch(base, target, patch).reversible
    difflens.apply_patch(base, patch, out)
    difflens.apply_patch(out, patch, tmp_path / "back", reverse=True)

    assert contents(out) == contents(target)
    assert contents(tmp_path / "back") == contents(base)
    with pytest.raises(OutputError, match="it exists"):
        difflens.apply_patch(base, patch, out)
    assert contents(out) == contents(target)


def test_a_file_is_patched_to_a_folder_and_back(tmp_path):
    base, _, patch = files(tmp_path, *steps())
    target = shards(tmp_path, steps()[1], "t")
    assert difflens.create_patch(base, target, patch).reversible
    difflens.apply_patch(base, patch, tmp_path / "out")
    difflens.apply_patch(tmp_path / "out", patch, tmp_path / "back", reverse=True)

    assert contents(tmp_path / "out") == contents(target)
    assert (tmp_path / "back").read_bytes() == base.read_bytes()


def test_composed_patches_do_what_both_do(tmp_path):
    models = [steps(seed)[side] for seed, side in ((0, 0), (0, 1), (5, 0))]
    a, b, c = (write(tmp_path / f"{i}.safetensors", each) for i, each in enumerate(models))
    first, second, both = (tmp_path / name for name in ("p", "q", "r"))
    difflens.create_patch(a, b, first)
    difflens.create_patch(b, c, second)
    difflens.compose_patches(first, second, a, both)
    difflens.create_patch(a, c, tmp_path / "direct")

    assert both.read_bytes() == (tmp_path / "direct").read_bytes()
    with pytest.raises(PatchError, match="does not follow"):
        difflens.compose_patches(second, first, b, tmp_path / "x")


def test_arrays_are_patched_in_place_and_back(tmp_path):
    base, target = ({"w": weights(9000), "v": weights(40).reshape(8, 5)} for _ in range(2))
    target["w"] = target["w"] * np.float32(1.001)
    patch = tmp_path / "p"
    difflens.create_patch(base, target, patch)
    model = {name: each.copy() for name, each in base.items()}
    held = model["w"]
    difflens.apply_patch(model, patch)

    assert held is model["w"]
    assert all((model[name] == target[name]).all() for name in target)
    difflens.apply_patch(model, patch, reverse=True)
    assert all((model[name] == base[name]).all() for name in base)
    wrong = {"w": base["w"], "v": base["v"] + 1}
    with pytest.raises(PatchError, match="not the base"):
        difflens.apply_patch(wrong, patch)
    assert (wrong["w"] == base["w"]).all()


def test_a_torch_module_is_patched_while_it_is_in_use(tmp_path):
    torch = pytest.importorskip("torch")
    base, target = torch.nn.Linear(64, 32), torch.nn.Linear(64, 32)
    target.load_state_dict({name: each * 1.0001 for name, each in base.state_dict().items()})
    base, target = base.bfloat16(), target.bfloat16()
    difflens.create_patch(base, target, tmp_path / "p")
    weight, pointer = base.weight, base.weight.data_ptr()
    difflens.apply_patch(base, tmp_path / "p")

    assert base.weight is weight
    assert weight.data_ptr() == pointer
    assert all(
        torch.equal(base.state_dict()[name], each) for name, each in target.state_dict().items()
    )


def test_a_patch_that_adds_tensors_is_not_applied_in_place(tmp_path):
    base, target = {"w": weights(50)}, {"w": weights(50), "v": weights(9)}
    difflens.create_patch(base, target, tmp_path / "p")
    with pytest.raises(PatchError, match="adds, removes or reshapes"):
        difflens.apply_patch(base, tmp_path / "p")


def test_a_patch_is_a_safetensors_file_that_lists_large_changes(tmp_path):
    base, target, patch = files(tmp_path, *steps())
    difflens.create_patch(base, target, patch)
    model = difflens.open_model(patch)
    sizes = {name: info.shape for name, info in model.tensors.items()}
    shown = difflens.show_patch(patch)
    model.close()

    assert list(sizes)[:2] == ["index", "small"]
    assert shown.reversible
    assert len(shown.target) == 64


def test_tensors_may_be_called_as_parts_of_the_patch_are(tmp_path):
    noise = np.random.default_rng(1)
    base, target = (
        {name: ("U8", (9000,), noise.bytes(9000)) for name in ("index", "small", "w")}
        for _ in range(2)
    )
    assert_applies(tmp_path, *files(tmp_path, base, target))


def test_patches_do_not_depend_on_threads_and_need_no_digests(tmp_path):
    base, target, patch = files(tmp_path, *steps())
    difflens.create_patch(base, target, patch, threads=1)
    alone = patch.read_bytes()
    difflens.create_patch(base, target, patch, threads=5)
    assert patch.read_bytes() == alone

    assert_applies(tmp_path, base, target, patch, digests=False)
    assert patch.stat().st_size <= len(alone) - 64
    assert difflens.show_patch(patch).target is None


def test_a_patch_may_make_its_own_base(tmp_path):
    base, target, patch = files(tmp_path, *steps())
    difflens.create_patch(base, target, patch)
    difflens.apply_patch(base, patch, base)

    assert base.read_bytes() == target.read_bytes()


def test_a_patch_that_makes_far_more_than_it_has_is_refused(tmp_path):
    base, target, patch = files(
        tmp_path, {"w": bf16(weights(5))}, {"w": ("U8", (3_000_000,), bytes(3_000_000))}
    )
    difflens.create_patch(base, target, patch)
    with pytest.raises(LimitExceeded, match="makes 3000000 bytes"):
        difflens.apply_patch(base, patch, tmp_path / "out")
    difflens.apply_patch(base, patch, tmp_path / "out", limits={"patch_ratio": 10**6})

    assert (tmp_path / "out").read_bytes() == target.read_bytes()


def test_bad_arguments_are_errors_of_the_house(tmp_path):
    base, target, patch = files(tmp_path, *steps())
    with pytest.raises(PatchError, match="way_back is 'perhaps'"):
        difflens.create_patch(base, target, patch, way_back="perhaps")
    with pytest.raises(DifflensError, match="no such file"):
        difflens.apply_patch(base, patch, tmp_path / "out")
    with pytest.raises(DifflensError, match="no path to write"):
        difflens.apply_patch(base, patch)
    with pytest.raises(DifflensError, match="not a patch"):
        difflens.apply_patch(base, target, tmp_path / "out")
    with pytest.raises(DifflensError):
        difflens.create_patch(base, target, tmp_path / "absent" / "p")
    assert sorted(tmp_path.iterdir()) == [base, target]
