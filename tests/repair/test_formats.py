"""Patches of GGUF and npz files, and files beside the weights: the very bytes come back."""

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from models.small import write
from repair.test_patch import bf16, contents, steps, weights

import difflens
from difflens.core.errors import CorruptFile, DifflensError, PatchError
from difflens.repair import frame


def npz(path: Path, seed: int, save: Any = np.savez) -> Path:
    values = weights(9000, 1) + weights(9000, seed) * np.float32(1e-4)
    save(path, w=values.reshape(90, 100), n=np.arange(9), half=values[:50].astype("<f2"))
    return path


def gguf(path: Path, seed: int) -> Path:
    writer = pytest.importorskip("gguf").GGUFWriter(path, "test")
    writer.add_description(f"seed {seed}")
    values = weights(6400, 1) + weights(6400, seed) * np.float32(1e-4)
    writer.add_tensor("blk.0.w", values.reshape(64, 100))
    writer.add_tensor("blk.0.v", values[:7].astype("<f2"))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


@pytest.mark.parametrize("make", [npz, gguf])
def test_files_come_back_in_their_own_format_both_ways(tmp_path, make):
    suffix = make.__name__
    base, target = (make(tmp_path / f"{seed}.{suffix}", seed) for seed in (1, 2))
    out, patch = tmp_path / "out", tmp_path / "p"
    summary = difflens.create_patch(base, target, patch)
    difflens.apply_patch(base, patch, out)
    difflens.apply_patch(out, patch, tmp_path / "back", reverse=True)

    assert summary.reversible
    assert out.read_bytes() == target.read_bytes()
    assert (tmp_path / "back").read_bytes() == base.read_bytes()
    with pytest.raises(PatchError, match="not the base"):
        difflens.apply_patch(make(tmp_path / f"3.{suffix}", 3), patch, tmp_path / "x")


def test_a_format_may_change_on_the_way(tmp_path):
    base = write(tmp_path / "b.safetensors", {"w": bf16(weights(9000))})
    target, patch = npz(tmp_path / "t.npz", 1), tmp_path / "p"
    difflens.create_patch(base, target, patch)
    difflens.apply_patch(base, patch, tmp_path / "out.npz")

    assert (tmp_path / "out.npz").read_bytes() == target.read_bytes()


def test_compressed_members_become_a_safetensors_file(tmp_path):
    base, target = (npz(tmp_path / f"{i}.npz", i, np.savez_compressed) for i in (1, 2))
    difflens.create_patch(base, target, tmp_path / "p")
    difflens.apply_patch(base, tmp_path / "p", tmp_path / "out")
    model = difflens.open_model(tmp_path / "out")
    model.close()

    assert model.format == "safetensors"
    assert list(difflens.diff(tmp_path / "out", target).changed) == []


def test_a_patch_does_not_make_a_file_that_another_reader_would_read_otherwise(
    tmp_path, monkeypatch
):
    base, target = (npz(tmp_path / f"{seed}.npz", seed) for seed in (1, 2))
    real = frame.frame_of

    def lying(source):
        made = real(source)
        return made and made._replace(others=made.others.replace(b"w.npy", b"v.npy"))

    monkeypatch.setattr("difflens.repair.layout.frame_of", lying)
    difflens.create_patch(base, target, tmp_path / "p")
    monkeypatch.undo()
    with pytest.raises(DifflensError):
        difflens.apply_patch(base, tmp_path / "p", tmp_path / "out")
    monkeypatch.setattr("difflens.repair.layout.frame_of", lying)
    with pytest.raises(CorruptFile, match="damaged npz"):
        difflens.apply_patch(base, tmp_path / "p", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_an_npz_with_shared_bytes_or_a_comment_is_no_trouble(tmp_path):
    path = npz(tmp_path / "b.npz", 1)
    with zipfile.ZipFile(path, "a") as packed:
        packed.comment = b"hello"
    target = npz(tmp_path / "t.npz", 2)
    difflens.create_patch(path, target, tmp_path / "p")
    difflens.apply_patch(target, tmp_path / "p", tmp_path / "out", reverse=True)

    assert (tmp_path / "out").read_bytes() == path.read_bytes()


def folder(path: Path, seed: int, **files: str) -> Path:
    write(path / "model.safetensors", steps(seed, 2000)[0], {"format": "pt"})
    for name, text in files.items():
        (path / f"{name}.json").write_text(text)
    return path


def test_files_beside_the_weights_are_shipped_where_they_differ(tmp_path):
    random = np.random.default_rng(1).bytes(40_000).hex()
    base = folder(tmp_path / "b", 1, config='{"a": 1}', tokenizer=random, old="1")
    target = folder(tmp_path / "t", 2, config='{"a": 2}', tokenizer=random, new="2")
    (target / "vocab.txt").write_text("a\nb")
    patch = tmp_path / "p"
    plain = difflens.create_patch(base, target, patch).size_bytes
    summary = difflens.create_patch(base, target, patch, with_files=True, way_back="always")
    difflens.apply_patch(base, patch, tmp_path / "out")
    difflens.apply_patch(tmp_path / "out", patch, tmp_path / "back", reverse=True)

    assert summary.size_bytes < plain * 1.2 + 1000  # the tokenizer is not in it
    assert contents(tmp_path / "out") == contents(target)
    assert contents(tmp_path / "back") == contents(base)
    (base / "tokenizer.json").write_text("other")
    with pytest.raises(PatchError, match="another base"):
        difflens.apply_patch(base, patch, tmp_path / "x")
    assert not (tmp_path / "x").exists()


def test_the_same_files_take_nothing(tmp_path):
    sides = [folder(tmp_path / each, 1, config="{}", tokenizer="x" * 999) for each in "bt"]
    summary = difflens.create_patch(*sides, tmp_path / "p", with_files=True)
    difflens.apply_patch(sides[0], tmp_path / "p", tmp_path / "out")

    assert summary.size_bytes < 600
    assert contents(tmp_path / "out") == contents(sides[1])


def test_only_folders_have_files_beside_them_and_links_do_not_lead_out(tmp_path):
    base = folder(tmp_path / "b", 1, config="{}")
    with pytest.raises(PatchError, match="no folder"):
        difflens.create_patch(base, base / "model.safetensors", tmp_path / "p", with_files=True)
    (tmp_path / "secret.json").write_text("secret")
    (base / "link.json").symlink_to(tmp_path / "secret.json")
    with pytest.raises(CorruptFile, match="outside its folder"):
        difflens.create_patch(base, base, tmp_path / "p", with_files=True)


def test_frames_that_do_not_add_up_are_refused(tmp_path):
    from difflens.repair.fields import Fields

    source = difflens.open_model(npz(tmp_path / "b.npz", 1))
    made = frame.frame_of(source)
    source.close()
    data = made.to_bytes()
    assert frame.read_frame(Fields(data, "p")) == made
    tensors = tuple((info, at - 1) for info, at in made.tensors)
    hostile = [
        made._replace(size=made.size + 1),
        made._replace(size=2**62),
        made._replace(tensors=made.tensors * 2),
        made._replace(tensors=tensors[:1] + made.tensors[:1]),
        made._replace(others=made.others[:-1]),
    ]
    for each in hostile:
        with pytest.raises(CorruptFile):
            frame.read_frame(Fields(each.to_bytes(), "p"))
