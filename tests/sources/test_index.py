import pytest
from sources.test_shards import A, index, split

from difflens.errors import CorruptFile
from difflens.sources import open_model
from difflens.sources.index import read_index
from difflens.sources.limits import DEFAULTS


def test_shards_are_named_once_and_in_order(tmp_path):
    index(tmp_path, {"a": "z", "b": "y", "c": "z"}, "i.index.json", total_size=3)

    found = read_index(tmp_path / "i.index.json", DEFAULTS)

    assert (found.shards, found.total_size) == (["y", "z"], 3)


def test_a_shard_in_a_folder_below_is_inside(tmp_path):
    split(tmp_path / "sub", one=A)
    index(tmp_path, {"a": "sub/one.safetensors"})
    model = open_model(tmp_path)

    assert list(model.tensors) == ["a"]
    model.close()


@pytest.mark.parametrize("name", ["./x", "x//y", "x/", "/x", "x/../y", "..", "\\x"])
def test_a_name_that_is_not_plain_is_refused(name, tmp_path):
    index(tmp_path, {"a": name})

    with pytest.raises(CorruptFile, match="is no name of a file in this folder"):
        open_model(tmp_path)


def test_the_message_says_what_stands_where_a_shard_should(tmp_path):
    index(tmp_path, {"a\n": 5})

    with pytest.raises(CorruptFile) as caught:
        open_model(tmp_path)
    assert caught.value.reason == "tensor 'a\\x0a' is in 5, the name of a shard is wanted"
