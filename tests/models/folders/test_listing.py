import pytest
from models.folders.test_shards import A, B, index, split

from difflens.core.errors import UnknownFormat, UnreadableFile
from difflens.models.folders.listing import describe_folder_files, model_files
from difflens.models.formats import open_model


def cache(root, **snapshots):
    """Build a cache of Hugging Face: snapshots hold links into blobs."""
    (root / "blobs").mkdir(parents=True)
    (root / "refs").mkdir()
    for commit, tensors in snapshots.items():
        split(root / "blobs", **{commit: tensors})
        place = root / "snapshots" / commit
        place.mkdir(parents=True)
        (place / "model.safetensors").symlink_to(f"../../blobs/{commit}.safetensors")
        (place / "config.json").write_text("{}")
    return root


def opened(path) -> list[str]:
    model = open_model(path)
    model.close()
    return list(model.tensors)


def test_a_snapshot_of_links_is_a_model(tmp_path):
    root = cache(tmp_path / "models--org--name", c1=A)

    assert opened(root / "snapshots" / "c1") == ["a"]


def test_the_root_of_a_cache_means_its_only_snapshot(tmp_path):
    assert opened(cache(tmp_path / "models--org--name", c1=A)) == ["a"]


def test_the_root_of_a_cache_means_the_snapshot_of_main(tmp_path):
    root = cache(tmp_path / "models--org--name", c1=A, c2=B)
    (root / "refs" / "main").write_text("c2\n")

    assert opened(root) == ["b"]
    assert {"config.json": root / "snapshots" / "c2" / "config.json"} == describe_folder_files(root)


def test_several_snapshots_and_no_main_is_an_error_that_names_them(tmp_path):
    with pytest.raises(UnknownFormat, match="'c1', 'c2'"):
        open_model(cache(tmp_path / "models--org--name", c1=A, c2=B))


@pytest.mark.parametrize("text", ["gone", "../snapshots/c1", "", "/etc", "\x1b[2J", "x" * 9999])
def test_main_can_only_mean_a_snapshot_that_is_there(text, tmp_path):
    root = cache(tmp_path / "models--org--name", c1=A)
    (root / "refs" / "main").write_text(text)

    with pytest.raises(UnreadableFile, match="which does not exist") as caught:
        open_model(root)
    assert str(caught.value).isprintable()


def test_models_in_sub_folders_earn_a_hint(tmp_path):
    split(tmp_path / "sub", model=A)

    with pytest.raises(UnknownFormat) as caught:
        open_model(tmp_path)
    assert "-r" in caught.value.hint


def test_an_empty_folder_earns_no_hint_to_look_below(tmp_path):
    with pytest.raises(UnknownFormat, match="no model in this folder") as caught:
        open_model(tmp_path)
    assert caught.value.hint == ""


def test_weights_no_reader_knows_are_named(tmp_path):
    (tmp_path / "pytorch_model.bin").write_bytes(b"no model at all")

    with pytest.raises(UnknownFormat, match=r"pytorch_model\.bin"):
        open_model(tmp_path)


def test_what_training_leaves_beside_the_weights_is_no_part_of_the_model(tmp_path):
    torch = pytest.importorskip("torch")
    torch.save({"a": torch.zeros(2)}, tmp_path / "pytorch_model.bin")
    torch.save({"state": {0: torch.zeros(3)}}, tmp_path / "optimizer.pt")

    source = open_model(tmp_path)

    assert list(source.tensors) == ["a"]
    assert "optimizer.pt" in source.warnings[0]


def test_a_model_that_lies_there_in_two_formats_is_read_once(tmp_path):
    numpy = pytest.importorskip("numpy")
    torch = pytest.importorskip("torch")
    torch.save({"a": torch.zeros(2)}, tmp_path / "pytorch_model.bin")
    numpy.savez(tmp_path / "model.npz", a=numpy.zeros(2))

    source = open_model(tmp_path)

    assert source.format == "pytorch"
    assert "model.npz" in source.warnings[0]


def test_hidden_files_are_no_weights(tmp_path):
    split(tmp_path, model=A)
    (tmp_path / "._model.safetensors").write_bytes(b"finder")

    assert opened(tmp_path) == ["a"]


def test_files_beside_the_weights_are_found_by_name(tmp_path):
    for name in ("config.json", "tokenizer.json", "README.md", "model.safetensors"):
        (tmp_path / name).write_text("x")
    (tmp_path / "vocab.json").mkdir()

    assert list(describe_folder_files(tmp_path)) == ["config.json", "tokenizer.json"]
    assert describe_folder_files(tmp_path / "config.json") == {}


def test_files_and_folders_with_an_index_are_models(tmp_path):
    split(tmp_path, top=A)
    split(tmp_path / "plain", one=A, two=B)
    split(tmp_path / "sharded", one=A)
    index(tmp_path / "sharded", {"a": "one.safetensors"})
    split(tmp_path / "sharded" / "below", deep=A)
    (tmp_path / "plain" / "notes.txt").write_text("x")
    (tmp_path / ".cache").mkdir()
    split(tmp_path / ".cache", hidden=A)

    assert model_files(tmp_path) == [
        "plain/one.safetensors",
        "plain/two.safetensors",
        "sharded",
        "sharded/below/deep.safetensors",
        "top.safetensors",
    ]


def test_a_link_to_a_folder_is_not_followed_and_a_link_to_a_file_is(tmp_path):
    split(tmp_path / "out", one=A)
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "folder").symlink_to(tmp_path / "out")
    (tmp_path / "in" / "round").symlink_to(tmp_path / "in")
    (tmp_path / "in" / "x.safetensors").symlink_to(tmp_path / "out" / "one.safetensors")

    assert model_files(tmp_path / "in") == ["x.safetensors"]


def test_a_folder_that_is_not_there_is_unreadable(tmp_path):
    with pytest.raises(UnreadableFile, match="no such file"):
        model_files(tmp_path / "gone")
