"""The laws of patches over thousands of random pairs, in every format that is written."""

from pathlib import Path

import numpy as np
import pytest
from models.small import Model, write
from repair.relations import related

import difflens

_NUMPY = {
    "F32": "<f4",
    "F16": "<f2",
    "I64": "<i8",
    "U8": "u1",
    "I32": "<i4",
    "U16": "<u2",
    "BOOL": "?",
}


def stored(folder: Path, name: str, model: Model, form: int) -> Path:
    """Write a model as a file, as a folder of shards or, where it can be, as npz."""
    if form == 1:
        for number, (tensor, each) in enumerate(model.items()):
            write(folder / name / f"model-{number + 1:05}-of-00003.safetensors", {tensor: each})
        return folder / name
    if form == 2 and all(dtype in _NUMPY for dtype, _, _ in model.values()):
        arrays = {
            tensor: np.frombuffer(data, "u1" if dtype == "BOOL" else _NUMPY[dtype]).reshape(shape)
            for tensor, (dtype, shape, data) in model.items()
        }
        np.savez(folder / f"{name}.npz", **arrays)  # type: ignore[arg-type]
        return folder / f"{name}.npz"
    return write(folder / f"{name}.safetensors", model)


def read(path: Path) -> dict[str, bytes]:
    """Read all bytes of a model."""
    files = sorted(path.iterdir()) if path.is_dir() else [path]
    return {each.name if path.is_dir() else "": each.read_bytes() for each in files}


def check(folder: Path, seed: int) -> None:
    """Check one pair: there, back where that can be, and by way of a third model."""
    first, second = related(seed)
    third = {**second, "layers.0.w": related(seed + 1)[1]["layers.0.w"]}
    paths = [
        stored(folder, name, each, (seed + number) % 3 if seed % 2 else 0)
        for number, (name, each) in enumerate(zip("abc", (first, second, third), strict=True))
    ]
    way_back = ("auto", "never", "auto")[seed % 3]
    summary = difflens.create_patch(paths[0], paths[1], folder / "p", way_back=way_back, threads=1)
    difflens.apply_patch(paths[0], folder / "p", folder / "out", threads=1)
    assert read(folder / "out") == read(paths[1]), seed
    if summary.reversible:
        difflens.apply_patch(paths[1], folder / "p", folder / "back", reverse=True, threads=1)
        assert read(folder / "back") == read(paths[0]), seed
    if seed % 4 == 0:
        difflens.create_patch(paths[1], paths[2], folder / "q", threads=1)
        difflens.compose_patches(folder / "p", folder / "q", paths[0], folder / "r", threads=1)
        difflens.apply_patch(paths[0], folder / "r", folder / "third", threads=1)
        assert read(folder / "third") == read(paths[2]), seed
        difflens.create_patch(paths[0], paths[2], folder / "direct", threads=1)
        assert (folder / "r").read_bytes() == (folder / "direct").read_bytes(), seed


def test_what_a_patch_makes_of_the_base_is_the_target(tmp_path):
    for seed in range(60):
        (tmp_path / str(seed)).mkdir()
        check(tmp_path / str(seed), seed)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_ten_thousand_pairs_come_back(tmp_path, part):
    for seed in range(1000 * part + 60, 1000 * part + 1060):
        (tmp_path / str(seed)).mkdir()
        check(tmp_path / str(seed), seed)
