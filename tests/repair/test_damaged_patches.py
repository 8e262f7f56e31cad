"""Damaged and hostile patches: no wrong output, no signal, nothing outside the path."""

import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from hostile.fuzz import mutants
from hostile.watch import WATCH
from repair.relations import RELATIONS, related
from repair.test_patch import contents, files, shards, steps

import difflens
from difflens.core.errors import DifflensError
from difflens.core.escape import visible
from difflens.repair.fields import Fields, text
from difflens.repair.layout import Layout, read_layout
from difflens.repair.patch_file import PatchFile


def survive(folder: Path, seed: int, count: int, models: Any = None) -> int:
    """Apply damaged copies of a patch; count those that were refused."""
    base, target, patch = files(folder, *(models or steps(seed, 3000)))
    difflens.create_patch(base, target, patch, way_back=("auto", "never")[seed % 2])
    good, out, wanted = patch.read_bytes(), folder / "out", target.read_bytes()
    refused = 0
    for number, data in enumerate(mutants(good, seed, count)):
        patch.write_bytes(data)
        try:
            difflens.apply_patch(base, patch, out, threads=1)
        except DifflensError as error:
            refused += 1
            reason = str(error)
            assert visible(reason) == reason
            assert not out.exists()
        else:
            assert out.read_bytes() == wanted, number
            out.unlink()
    names = sorted(path.name for path in folder.iterdir())
    assert names == ["base.safetensors", "made.patch", "target.safetensors"]
    return refused


def test_two_thousand_damaged_patches_give_the_target_or_an_error(tmp_path):
    refused = sum(survive(tmp_path, seed, 500) for seed in range(4))

    assert refused > 1000


@pytest.mark.slow
def test_a_hundred_thousand_damaged_patches_give_the_target_or_an_error(tmp_path):
    refused = sum(survive(tmp_path, seed, 2500) for seed in range(100, 140))

    assert refused > 50_000


@pytest.mark.parametrize("seed", range(10))
def test_damaged_patches_with_recipes_give_the_target_or_an_error(tmp_path, seed):
    assert survive(tmp_path, seed, 60, related(seed % len(RELATIONS))) > 30


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 120))
def test_thousands_of_damaged_patches_with_recipes_give_the_target_or_an_error(tmp_path, seed):
    assert survive(tmp_path, seed, 5000, related(seed % len(RELATIONS))) > 2500


def test_a_patch_cut_anywhere_is_refused(tmp_path):
    base, target, patch = files(tmp_path, *steps(n=800))
    difflens.create_patch(base, target, patch)
    good = patch.read_bytes()
    for length in range(0, len(good), 7):
        patch.write_bytes(good[:length])
        with pytest.raises(DifflensError):
            difflens.apply_patch(base, patch, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "name", ["/etc/x", "../x", "a/b", ".x", "..", "", "a\\b", "a\0b", "x" * 300]
)
def test_a_layout_names_no_file_outside_of_its_folder(name):
    data = Layout((("a", b"{}"), (name, b"{}"))).to_bytes()
    with pytest.raises(DifflensError, match=r"cannot be written side by side"):
        read_layout(Fields(data, "p"))


def test_a_layout_names_no_file_twice():
    with pytest.raises(DifflensError, match="side by side"):
        read_layout(Fields(Layout((("a", b"{}"),), (("a", b"x"),)).to_bytes(), "p"))


def test_an_index_that_unpacks_to_gigabytes_is_refused(tmp_path, monkeypatch):
    import zlib

    base, target, patch = files(tmp_path, *steps(n=800))
    difflens.create_patch(base, target, patch)
    packed = zlib.compress(bytes(50_000_000), 9)
    index = text(packed) + b"\x80\xe1\xeb\x17"  # it says 50,000,000
    monkeypatch.setattr("difflens.repair.container._index", lambda *_: index)
    difflens.create_patch(base, target, patch)

    with pytest.raises(DifflensError):
        PatchFile(patch, {"json_header": 1_000_000})
    with pytest.raises(DifflensError):
        PatchFile(patch)


def test_applying_reads_and_writes_and_does_nothing_else(tmp_path):
    base, target, patch = files(tmp_path, *steps(n=800))
    difflens.create_patch(base, target, patch)
    WATCH.seen.clear()
    WATCH.listening = True
    try:
        difflens.verify_patch(base, patch)
    finally:
        WATCH.listening = False

    assert WATCH.seen == []


def started(base: Path, patch: Path, out: Path) -> subprocess.Popen[bytes]:
    """Start an apply in its own process."""
    return subprocess.Popen(
        [sys.executable, "-m", "difflens", "patch", "apply", base, patch, "-o", out, "-q"]
    )


def killed(base: Path, patch: Path, out: Path, seconds: float) -> None:
    """Start an apply and kill it after a while."""
    process = started(base, patch, out)
    time.sleep(seconds)
    process.send_signal(signal.SIGKILL)
    process.wait()


def kill_at_random_moments(folder: Path, count: int, read: Any) -> int:
    """Kill applies; the target must be absent or complete. Return how often it was absent."""
    models = steps(n=3_000_000)
    if read is contents:
        base, target = (shards(folder, each, n) for each, n in zip(models, "bt", strict=True))
    else:
        base, target, _ = files(folder, *models)
    patch, out, chance, absent = folder / "p", folder / "out", random.Random(1), 0
    difflens.create_patch(base, target, patch)
    wanted = read(target)
    began = time.monotonic()
    assert started(base, patch, out).wait() == 0
    longest = time.monotonic() - began
    for _ in range(count):
        if out.is_dir():
            for each in out.iterdir():
                each.unlink()
            out.rmdir()
        out.unlink(missing_ok=True)
        killed(base, patch, out, chance.uniform(0, longest))
        absent += not out.exists()
        assert not out.exists() or read(out) == wanted
    return absent


def test_an_apply_that_is_killed_leaves_the_target_absent_or_complete(tmp_path):
    assert kill_at_random_moments(tmp_path, 8, Path.read_bytes) > 0


@pytest.mark.slow
@pytest.mark.parametrize("read", [Path.read_bytes, contents])
def test_an_apply_killed_a_hundred_times_leaves_the_target_absent_or_complete(tmp_path, read):
    assert kill_at_random_moments(tmp_path, 100, read) > 10
