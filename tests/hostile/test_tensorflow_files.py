"""Case O14 and its kin: checkpoints, SavedModels and graphs that lie."""

import os
import random
import resource
import time
from pathlib import Path

import pytest
from hostile.files import read
from hostile.fuzz import mutants
from hostile.wire import (
    block,
    checkpoint,
    constant,
    entry,
    header,
    node,
    number,
    saved_model,
    sealed,
    table,
    text,
    varint,
)

from difflens.core.errors import DifflensError
from difflens.models.formats import open_model
from difflens.models.tensorflow.tensors import key_of
from difflens.testing.laws import deeds

DATA = bytes(range(24))
TENSORS = {
    "a": ("F32", (2,), DATA[:8]),
    "b/w": ("U8", (4,), DATA[8:12]),
    "c": ("F64", (), DATA[:8]),
}
LONGEST_SECONDS = 10
MOST_BYTES = 600 << 20


def written(folder: Path, index: bytes, data: bytes | None = DATA) -> Path:
    """Write a SavedModel around an index and its shard."""
    variables = folder / "variables"
    variables.mkdir(exist_ok=True, parents=True)
    (variables / "variables.index").write_bytes(index)
    if data is not None:
        (variables / "variables.data-00000-of-00001").write_bytes(data)
    path = folder / "saved_model.pb"
    path.write_bytes(saved_model(node("v", "VarHandleOp")))
    return path


def one(**more: int) -> bytes:
    """Write an index of one tensor, F32 [2], with some of its numbers wrong."""
    offset = more.pop("offset", 0)
    dtype = more.pop("dtype", 1)
    return table(block({b"": header(), b"w": entry(dtype, (2,), offset, DATA[:8], **more)}))


def refused(path: Path, word: str) -> None:
    with pytest.raises(DifflensError):
        open_model(path)  # our own late imports are over after this
    start = time.monotonic()
    with deeds() as done, pytest.raises(DifflensError) as caught:
        open_model(path)
    said = str(caught.value)
    assert word in said
    assert said.isprintable()
    assert "invalid" not in said.lower()
    assert time.monotonic() - start < LONGEST_SECONDS
    assert done == []


def test_o14_a_wrong_checksum_of_a_block_is_refused(tmp_path):
    index = bytearray(one())
    index[12] ^= 1
    refused(written(tmp_path, bytes(index)), "the block at byte 0 has the checksum")
    refused(tmp_path / "variables" / "variables.index", "the block at byte 0 has the checksum")


def test_o14_a_missing_or_short_shard_is_refused(tmp_path):
    refused(written(tmp_path, one(), None), "shard 'variables.data-00000-of-00001' cannot be read")
    refused(written(tmp_path, one(), DATA[:7]), "ends at byte 8 of")
    refused(written(tmp_path, one(offset=17)), "ends at byte 25 of")
    refused(written(tmp_path, one(offset=2**64 - 8)), "ends at byte 0 of")
    refused(written(tmp_path, one(shard=1)), "shard 1, there are 1")
    refused(written(tmp_path, one(size=4)), "the index says 4")


def test_o14_a_shard_that_is_a_link_out_is_refused(tmp_path):
    (tmp_path / "secret").write_bytes(DATA)
    path = written(tmp_path / "model", one(), None)
    shard = path.parent / "variables" / "variables.data-00000-of-00001"
    shard.symlink_to(tmp_path / "secret")
    refused(path, "by a link")


def extent(start: int, length: int | None = None) -> bytes:
    inner = number(1, start) if start else b""
    return text(1, inner + (b"" if length is None else number(2, length)))


def sliced(*slices: list[tuple[int, int]], sizes: tuple[int, ...] = (4,)) -> bytes:
    """Write a tensor of bytes in slices that lie one after another in the shard."""
    whole = number(1, 4) + text(2, b"".join(text(2, number(1, size)) for size in sizes))
    for each in slices:
        whole += text(7, b"".join(extent(a, None if n == -1 else n) for a, n in each))
    entries, at = {b"": header()}, 0
    for each in slices:
        shape = tuple(size if n == -1 else n for (_, n), size in zip(each, sizes, strict=True))
        count = 1
        for size in shape:
            count *= abs(size) % 100
        entries[key_of(b"w", each)] = entry(4, shape, at, DATA[at : at + count])
        at += count
    entries[b"w"] = whole
    return table(block(dict(sorted(entries.items()))))


def test_o14_slices_are_put_together(tmp_path):
    source = open_model(written(tmp_path, sliced([(2, 2)], [(0, 2)])))

    assert read(source, "w") == bytes([2, 3, 0, 1])
    source.close()


@pytest.mark.parametrize(
    ("index", "word"),
    [
        (sliced([(0, 2)], [(2, 3)]), "outside its shape"),
        (sliced([(0, 2)], [(-2, 2)]), "outside its shape"),
        (sliced([(0, 1)], [(2, 2)]), "a hole or overlap"),
        (sliced([(0, 3)], [(2, 2)]), "a hole or overlap"),
        (sliced([(0, 2)]), "end at 2 of 4"),
    ],
)
def test_o14_a_slice_outside_or_amiss_is_refused(index, word, tmp_path):
    refused(written(tmp_path, index), word)


def test_a_slice_that_is_not_in_the_index_is_refused(tmp_path):
    whole = number(1, 4) + text(2, text(2, number(1, 4))) + text(7, extent(0))
    refused(written(tmp_path, table(block({b"": header(), b"w": whole}))), "not in the index")


def test_slices_along_two_axes_are_left_out_with_a_warning(tmp_path):
    quarters = [[(i, 1), (j, 1)] for i in (0, 1) for j in (0, 1)]
    source = open_model(written(tmp_path, sliced(*quarters, sizes=(2, 2))))

    assert source.warnings == ["not read, because of what they hold: 'w (its slices)'"]
    source.close()


def test_o14_asset_paths_are_ignored(tmp_path):
    asset = text(6, text(1, text(1, "x:0")) + text(2, "../../etc/passwd"))
    path = written(tmp_path, one())
    meta = text(1, text(4, "serve")) + text(2, node("v", "VarHandleOp")) + asset
    path.write_bytes(number(1, 1) + text(2, meta))

    source = open_model(path)

    assert list(source.tensors) == ["w"]
    assert "passwd" not in str(source.metadata)
    source.close()


def test_o14_a_snappy_block_that_claims_four_gigabytes_is_refused(tmp_path):
    packed = sealed(varint(2**32) + b"\x10" + block({b"": header()})[:5], 1)
    refused(written(tmp_path, table(packed)), "claim to unpack to 4294967296")


@pytest.mark.parametrize(
    ("entries", "word"),
    [
        ({b"": header(0)}, "names 0 shards"),
        ({b"": header(2**40)}, "shards"),
        ({b"": header(), b"w": entry(1, (-1,), 0, b"")}, "whole sizes"),
        ({b"": header(), b"w": entry(1, (2**62, 4), 0, b"")}, "overflow"),
        ({b"": header(), b"w": entry(1, (1,) * 99, 0, b"")}, "rank"),
        ({b"": header(), b"w": b"\x0a\x05x"}, "what holds it"),
        ({b"": header(), b"w": text(1, b"x")}, "wire type 2"),
    ],
)
def test_an_index_that_contradicts_itself_is_refused(entries, word, tmp_path):
    refused(written(tmp_path, table(block(entries))), word)


def test_what_has_no_numbers_is_named_and_left_out(tmp_path):
    entries = {
        b"": header(), b"_CHECKPOINTABLE_OBJECT_GRAPH": entry(7, (), 0, b"x"),
        b"names": entry(7, (1,), 0, b"x"), b"odd": entry(99, (1,), 0, b"x"),
    }  # fmt: skip
    source = open_model(written(tmp_path, table(block(entries))))

    assert len(source.tensors) == 0
    assert source.warnings == [
        "not read, because of what they hold: 'names (STRING)', 'odd (type 99)'"
    ]
    source.close()


def test_a_footer_that_points_elsewhere_is_refused(tmp_path):
    good = one()
    for footer, word in (
        (varint(0) * 2 + varint(2**62) + varint(9), "the blocks at"),
        (b"\xff" * 40, "names no index"),
        (varint(0) * 4 + b"x", "mean nothing"),
    ):
        index = good[:-48] + footer.ljust(40, b"\0") + good[-8:]
        refused(written(tmp_path, index), word)
    refused(written(tmp_path, good[:-1]), "does not end as a table")


def test_twenty_thousand_tensors_open_in_time(tmp_path):
    names = sorted(b"layer/%d/kernel" % number for number in range(20_000))
    entries = {b"": header()} | {name: entry(4, (2,), 0, DATA[:2]) for name in names}
    path = written(tmp_path, table(block(entries)))
    start = time.monotonic()

    source = open_model(path)

    assert len(source.tensors) == 20_000
    assert time.monotonic() - start < 20
    source.close()


def goods(folder: Path) -> dict[str, tuple[Path, bytes]]:
    """Write one good file of each kind, and give the bytes of the part to damage."""
    index, data = checkpoint(TENSORS)
    saved = written(folder, index, data)
    graph = folder / "graph.pb"
    nodes = constant("w", 1, (2,), text(4, DATA[:8])) + constant("i", 3, (3,), text(7, b"\x01\x02"))
    inner = constant("k", 3, (1,), number(7, 9))
    library = text(2, text(1, text(1, text(1, "f")) + text(3, inner[2:])))
    graph.write_bytes(nodes + library + text(4, number(1, 1987)))
    saved.write_bytes(saved_model(nodes + node("v", "VarHandleOp") + library))
    first = folder / "variables" / "variables.index"
    return {
        "tensorflow": (first, index),
        "saved-model": (saved, saved.read_bytes()),
        "frozen-graph": (graph, graph.read_bytes()),
    }


def resealed(data: bytes, seed: int) -> bytes:
    """Damage the contents of a block and give it a right checksum again."""
    chance = random.Random(seed)
    contents = bytearray(block({b"": header(), b"w": entry(1, (2,), 0, DATA[:8])})[:-5])
    for _ in range(chance.choice((1, 2, 4))):
        contents[chance.randrange(len(contents))] = chance.choice((0, 1, 0x7F, 0x80, 0xFF, 0x0A))
    del data
    return table(sealed(bytes(contents), chance.choice((0, 0, 0, 1))))


def survive(folder: Path, kind: str, seed: int, count: int) -> int:
    path, good = goods(folder)[kind]
    opened = 0
    damaged = list(mutants(good, seed, count))
    if kind == "tensorflow":
        damaged[::2] = [resealed(good, number) for number in range(len(damaged[::2]))]
    for data in damaged:
        path.write_bytes(data)
        start = time.monotonic()
        try:
            source = open_model(path, format=kind)
        except DifflensError as error:
            assert str(error).isprintable()  # noqa: PT017
            continue
        opened += 1
        for name, info in source.tensors.items():
            assert info.size_bytes < 600 << 20
            source.read_into(name, 0, min(9, info.size_bytes), memoryview(bytearray(9)))
        source.close()
        assert time.monotonic() - start < LONGEST_SECONDS
    return opened


@pytest.mark.parametrize("kind", ["tensorflow", "saved-model", "frozen-graph"])
def test_a_thousand_mutants_give_clean_errors_or_open(kind, tmp_path):
    assert 0 < survive(tmp_path, kind, seed=1, count=1000) < 1000


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["tensorflow", "saved-model", "frozen-graph"])
def test_five_thousand_mutants(kind, tmp_path):
    count = int(os.environ.get("DIFFLENS_FUZZ", "5000"))
    survive(tmp_path, kind, seed=int(os.environ.get("DIFFLENS_SEED", "2")), count=count)

    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 < MOST_BYTES


@pytest.mark.parametrize("kind", ["tensorflow", "saved-model", "frozen-graph"])
def test_a_file_cut_at_any_byte_is_refused_or_says_that_its_end_is_missing(kind, tmp_path):
    path, good = goods(tmp_path)[kind]
    whole = open_model(path)
    full = {name: read(whole, name) for name in whole.tensors}
    whole.close()
    for end in range(len(good)):
        path.write_bytes(good[:end])
        try:
            source = open_model(path)
        except DifflensError:
            continue
        assert kind == "frozen-graph"
        assert any("its end may be missing" in warning for warning in source.warnings)
        assert {name: read(source, name) for name in source.tensors}.items() <= full.items()
        source.close()


def test_a_shard_cut_at_any_byte_is_refused(tmp_path):
    index, data = checkpoint(TENSORS)
    for end in range(len(data)):
        refused(written(tmp_path, index, data[:end]), "ends at byte")


def test_an_index_under_another_name_has_no_shards(tmp_path):
    path = tmp_path / "renamed"
    path.write_bytes(one())
    refused(path, "shard 'renamed.data-00000-of-00001'")
