import pytest
from sources.test_shards import A, B, index, split

from difflens.errors import UnreadableFile
from difflens.sources.models import model_files


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
