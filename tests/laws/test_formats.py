"""The format does not matter: the same tensors in any two formats give the same deltas."""

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy
import scipy.io
from cli.command import InProcess
from contracts.plugins import TESTS, load
from models.small import Model

import difflens
from difflens.core.records import Row
from difflens.models.formats import source

FIXTURES = TESTS / "fixtures" / "tensorflow"
KINDS = {
    "F32": "<f4", "F16": "<f2", "F64": "<f8", "I64": "<i8", "I32": "<i4", "U8": "u1", "BOOL": "?",
}  # fmt: skip
WIDTHS = {"BF16": 2} | {dtype: np.dtype(kind).itemsize for dtype, kind in KINDS.items()}
SHAPE = (4, 6)


def values(dtype: str, seed: int) -> bytes:
    random = np.random.default_rng(seed)
    if dtype == "BOOL":
        return random.integers(0, 2, SHAPE).astype("?").tobytes()
    numbers = random.integers(-9, 9, SHAPE) if dtype[0] == "I" else random.random(SHAPE)
    if dtype == "BF16":
        return (numbers.astype("<f4").view("<u4") >> 16).astype("<u2").tobytes()
    return (numbers * (50 if dtype == "U8" else 1)).astype(KINDS[dtype]).tobytes()


def model(side: str) -> Model:
    """A tensor that moved and one that did not, of each dtype; `data` is what every format has."""
    seed = {"left": 1, "right": 2}[side]
    made: Model = {"data": ("F32", SHAPE, values("F32", seed))}
    for dtype in WIDTHS:
        made[f"{dtype}_kept"] = dtype, SHAPE, values(dtype, 3)
        made[f"{dtype}_moved"] = dtype, SHAPE, values(dtype, seed)
    return made


def arrays(tensors: Model) -> dict[str, Any] | None:
    if any(dtype not in KINDS for dtype, _, _ in tensors.values()):
        return None
    return {
        name: np.frombuffer(data, KINDS[dtype]).reshape(shape)
        for name, (dtype, shape, data) in tensors.items()
    }


def by_safetensors(path: Path, tensors: Model) -> Path | None:
    made = arrays(tensors)
    if made is None:
        return None
    safetensors.numpy.save_file(made, path)
    return path


def by_numpy(path: Path, tensors: Model) -> Path | None:
    made = arrays(tensors)
    if made is None:
        return None
    np.savez_compressed(path, **made)
    return path


def by_scipy(path: Path, tensors: Model) -> Path | None:
    made = arrays(tensors)
    if made is None or any(array.dtype == np.float16 for array in made.values()):
        return None
    scipy.io.savemat(path, made)
    return path


def of_its_test(name: str) -> tuple[str, Any]:
    """Every reader's own test knows how to write its format, mostly with the real library."""
    module = load(
        TESTS / "models" / "formats" / f"test_{name.replace('-', '_')}.py", f"formats_{name}"
    )
    endings = source[name].options.get("suffixes") or (".bin",)
    return f"data{endings[0]}", module.sample  # npy calls its tensor after the file


FURTHER = {
    "safetensors by its library": ("m.safetensors", by_safetensors),
    "npz by savez_compressed": ("m.npz", by_numpy),
    "mat by scipy": ("m.mat", by_scipy),
}
FORMATS = [*(entry.name for entry in source.ours()), *FURTHER]


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Write each side in each format once: as many of its tensors as the format can hold."""

    @cache
    def write(form: str, side: str) -> Path:
        name, sample = FURTHER.get(form) or of_its_test(form)
        folder = tmp_path_factory.mktemp("formats")
        whole = model(side)
        held = {
            each: tensor
            for each, tensor in whole.items()
            if sample(tmp_path_factory.mktemp("probe") / name, {each: tensor})
        }
        path = sample(folder / name, held) or sample(folder / name, {"data": whole["data"]})
        assert path, f"{form} holds not even F32"
        return path

    return write


@pytest.fixture(scope="module")
def expected(written):
    return compared(written("safetensors", "left"), written("safetensors", "right"))


def compared(left: Path, right: Path) -> dict[str, Row]:
    return {row.name: row for row in difflens.diff(left, right).report().tensors}


def seen(row: Row) -> Any:
    return row.kind, row.figures, row.left_stats, row.right_stats


def test_the_model_moves_in_every_dtype_and_half_of_it_stays(expected):
    kinds = {name: row.kind for name, row in expected.items()}

    assert set(kinds.values()) == {"changed", "identical"}
    assert all((kind == "identical") == name.endswith("_kept") for name, kind in kinds.items())


@pytest.mark.parametrize("left", FORMATS)
def test_deltas_are_the_same_in_every_pair_of_formats(written, expected, left):
    for right in FORMATS:
        rows = compared(written(left, "left"), written(right, "right"))
        # What only one of the two formats can hold is added or removed, and no delta.
        found = {name: row for name, row in rows.items() if row.kind not in {"added", "removed"}}
        assert "data" in found, (left, right)
        for name, row in found.items():
            assert seen(row) == seen(expected[name]), (left, right, name)


HOLDS = {
    "gguf": {"F32", "F16", "BF16", "F64", "I64", "I32"},
    "mat": {"F32", "F64", "I64", "I32", "U8", "BOOL"},
    "mat by scipy": {"F32", "F64", "I64", "I32", "U8", "BOOL"},
    "npy": {"F32"},
    "npz by savez_compressed": set(KINDS),
    "pytorch-tar": {"F32", "F16", "F64", "I64", "I32", "U8"},
    "safetensors by its library": set(KINDS),
}


@pytest.mark.parametrize("form", FORMATS)
def test_every_dtype_that_a_format_has_took_part(written, form):
    tensors = difflens.open_model(written(form, "left")).tensors

    assert {info.dtype for info in tensors.values()} == HOLDS.get(form, set(WIDTHS))


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("is_left", [True, False])
def test_the_same_values_in_two_formats_are_identical_and_exit_0(tmp_path, capsys, form, is_left):
    tensors = {"data": model("left")["data"]}
    name, sample = FURTHER.get(form) or of_its_test(form)
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    path = sample(tmp_path / "one" / name, tensors)
    plain = of_its_test("safetensors")[1](tmp_path / "two" / "m.safetensors", tensors)

    outcome = InProcess(capsys)(*((path, plain) if is_left else (plain, path)))

    assert (outcome.code, outcome.err) == (0, "")
    assert "1 tensor: 1 identical" in outcome.out


@pytest.mark.parametrize("folder", ["saved_model", "keras_saved_model", "object_graph"])
def test_what_tensorflow_wrote_is_identical_to_the_same_arrays_in_an_archive(
    tmp_path, capsys, folder
):
    ending = "/.ATTRIBUTES/VARIABLE_VALUE"
    with np.load(FIXTURES / folder / "expected.npz") as arrays:
        kept = {key.removesuffix(ending): array for key, array in arrays.items()}
    np.savez(tmp_path / "m.npz", **kept)
    here = FIXTURES / folder
    left = here / "ckpt-2" if folder == "object_graph" else here
    # Keras keeps every variable once more, in a list.
    ignore = ["--ignore-keys-regex", "^_all_variables"]

    outcome = InProcess(capsys)(left, tmp_path / "m.npz", *ignore)

    assert outcome.code == 0, outcome.out


def test_no_format_is_left_out():
    assert {entry.name for entry in source.ours()} <= set(FORMATS)
    assert len(FORMATS) >= 20
