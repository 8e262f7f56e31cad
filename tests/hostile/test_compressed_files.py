"""Table Z of the security specification: compressed data that is cut, wrong, nested or a bomb."""

import bz2
import gzip
import lzma
import time
import zlib

import pytest
from backports import zstd
from hostile.files import GOOD
from hostile.survival import MANY, cut, damaged, survive, values

from difflens.core.errors import CorruptFile, DifflensError, LimitExceeded
from difflens.models.formats import open_model

PACKED = {
    "gzip": gzip.compress(GOOD),
    "zstd": zstd.compress(GOOD, options={zstd.CompressionParameter.checksum_flag: 1}),
    "xz": lzma.compress(GOOD),
    "bzip2": bz2.compress(GOOD),
}
every_kind = pytest.mark.parametrize("kind", PACKED)


def changed(at: int, value: int) -> bytes:
    data = bytearray(PACKED["gzip"])
    data[at] ^= value
    return bytes(data)


REFUSED = {
    "Z01 cut": (PACKED["gzip"][:-9], "ends before"),
    "Z01 wrong checksum": (changed(-8, 1), "incorrect data check"),
    "Z01 wrong length": (changed(-4, 1), "incorrect length check"),
    "Z01 reserved flag": (changed(3, 0x80), "unknown header flags"),
    "Z01 trailing bytes": (PACKED["gzip"] + b"more", "damaged"),
    "Z03 twice": (gzip.compress(PACKED["gzip"]), "gzip in gzip: it is compressed twice"),
    "Z03 twice by two": (lzma.compress(PACKED["zstd"]), "zstd in xz: it is compressed twice"),
    "empty within": (gzip.compress(b""), "the file is empty"),
    "a page within": (gzip.compress(b"<!DOCTYPE html>" + b" " * 50), "HTML page"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_stream_that_is_not_right_is_refused(case, tmp_path):
    data, said = REFUSED[case]
    (tmp_path / "m.safetensors.gz").write_bytes(data)

    with pytest.raises(DifflensError, match=said):
        values(tmp_path / "m.safetensors.gz")


def test_z02_two_members_in_a_row_are_one_model(tmp_path):
    path = tmp_path / "m.gz"
    path.write_bytes(gzip.compress(GOOD[:20]) + gzip.compress(GOOD[20:]))

    assert values(path) == {"a": b"abcd"}


def test_z03_thirty_deep_is_refused_after_one(tmp_path):
    data = GOOD
    for _ in range(30):
        data = gzip.compress(data)
    (tmp_path / "m.gz").write_bytes(data)

    with pytest.raises(CorruptFile, match="twice"):
        open_model(tmp_path / "m.gz")


def zeros(path, mebibytes: int, said: int) -> None:
    """Write a header that opens, zeros, and a length that may be another."""
    coder, block = zlib.compressobj(1, zlib.DEFLATED, 31), bytes(1 << 20)
    with path.open("wb") as stream:
        stream.write(coder.compress((32).to_bytes(8, "little") + b"{}".ljust(32)))
        for _ in range(mebibytes):
            stream.write(coder.compress(block))
        stream.write(coder.flush()[:-4] + (said % 2**32).to_bytes(4, "little"))


def test_z03_zeros_beyond_the_limit_are_refused(tmp_path):
    zeros(tmp_path / "m.gz", 40, 40 << 20)

    with pytest.raises(LimitExceeded, match="more than 100 times"):
        open_model(tmp_path / "m.gz", limits={"compressed_bytes": 1 << 24, "compressed_ratio": 100})


@pytest.mark.slow
def test_z03_four_gigabytes_of_zeros_are_refused_soon(tmp_path):
    zeros(tmp_path / "m.gz", 4096, 40)
    began = time.monotonic()

    with pytest.raises(LimitExceeded, match=r"times|trailing"):
        open_model(tmp_path / "m.gz", limits={"compressed_ratio": 200})
    assert time.monotonic() - began < 20


def test_z04_the_name_in_the_header_is_ignored(tmp_path):
    name = b"../../x\0"
    head = b"\x1f\x8b\x08\x08" + bytes(6) + name
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "m.gz").write_bytes(head + PACKED["gzip"][10:])

    assert values(tmp_path / "in" / "m.gz") == {"a": b"abcd"}
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["in", "m.gz"]


def test_z04_a_plain_file_called_gz_is_read_as_what_it_is(tmp_path):
    (tmp_path / "m.gz").write_bytes(GOOD)

    model = open_model(tmp_path / "m.gz")

    assert model.format == "safetensors"
    model.close()


def test_p25_xz_called_pt_is_opened_by_content(tmp_path):
    (tmp_path / "m.pt").write_bytes(PACKED["xz"])

    assert values(tmp_path / "m.pt") == {"a": b"abcd"}


def test_an_xz_that_wants_gigabytes_of_memory_is_refused(tmp_path):
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 0, "dict_size": 1 << 28}]
    (tmp_path / "m.xz").write_bytes(lzma.compress(GOOD, filters=filters))

    with pytest.raises(CorruptFile):
        open_model(tmp_path / "m.xz")


@every_kind
def test_a_stream_cut_at_any_byte_is_refused(kind, tmp_path):
    assert survive(cut(PACKED[kind]), tmp_path / "m.bin") == 0


def right(data: bytes, found: dict[str, bytes]) -> bool:
    """A checksum covers every byte of what was packed, so nothing else can come out of it."""
    del data
    return found == {"a": b"abcd"}


@every_kind
def test_hundreds_of_mutants_give_clean_errors_or_right_values(kind, tmp_path):
    survive(damaged(PACKED[kind], 1, 300), tmp_path / "m.bin", right)


@pytest.mark.slow
@every_kind
def test_thousands_of_mutants(kind, tmp_path):
    survive(damaged(PACKED[kind], 2, MANY), tmp_path / "m.bin", right)
