"""Mutated files: a clean error or right values, never anything else, never for long."""

import os
import resource
import time
from pathlib import Path

import pytest
from hostile.fuzz import mutants
from models.small import tensor, write
from safetensors.numpy import load

from difflens.core.errors import DifflensError
from difflens.diffs.inspection import inspect

LONGEST_SECONDS = 10
MOST_BYTES = 600 * 1024 * 1024


@pytest.fixture
def good(tmp_path: Path) -> bytes:
    model = {
        "a.weight": tensor([[1.0, 2.0], [3.0, 4.0]]),
        "b": tensor([1, 2, 3], "I64"),
        "é": tensor([0.5], "F16"),
        "empty": tensor([], "F64"),
    }
    return write(tmp_path / "good.safetensors", model, {"format": "pt"}).read_bytes()


def survive(good: bytes, folder: Path, seed: int, count: int) -> int:
    """Open every mutant; count those that opened, and hold them against the reference library."""
    path, opened = folder / "mutant.safetensors", 0
    for data in mutants(good, seed, count):
        path.write_bytes(data)
        began = time.monotonic()
        try:
            seen = inspect(path, statistics=True, threads=1)
        except DifflensError as error:
            clean = str(error).isprintable()
        else:
            clean = True
            opened += 1
            agrees(data, {each.info.name: each.info.shape for each in seen.tensors})
        assert clean
        assert time.monotonic() - began < LONGEST_SECONDS
    return opened


def agrees(data: bytes, ours: dict[str, tuple[int, ...]]) -> None:
    """What we open, the reference opens too, with the same shapes (where NumPy has the dtype)."""
    try:
        theirs = load(data)
    except (KeyError, TypeError, AttributeError):
        return  # a dtype NumPy lacks
    assert {name: array.shape for name, array in theirs.items()} == ours


def test_a_thousand_mutants_give_clean_errors_or_right_values(good, tmp_path):
    opened = survive(good, tmp_path, seed=1, count=1000)

    assert 0 < opened < 1000


@pytest.mark.slow
def test_five_thousand_mutants(good, tmp_path):
    count = int(os.environ.get("DIFFLENS_FUZZ", "5000"))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    survive(good, tmp_path, seed=int(os.environ.get("DIFFLENS_SEED", "2")), count=count)

    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert (after - before) * 1024 < MOST_BYTES


def test_a_file_cut_at_any_byte_is_refused(good, tmp_path):
    path = tmp_path / "cut.safetensors"
    for end in range(len(good)):
        path.write_bytes(good[:end])
        with pytest.raises(DifflensError):
            inspect(path)
