import io
import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from difflens.core.errors import CorruptFile, LimitExceeded
from difflens.models.containers import zip as archive
from difflens.models.containers.inner_files import Inflated, Part
from difflens.storage.local import File

NAMES = st.text(
    st.characters(exclude_characters="\\\0", exclude_categories=["Cs"]), min_size=1, max_size=10
).filter(lambda name: name[0] != "/" and name[-1] != "/" and ".." not in name.split("/"))


class Pipe(io.RawIOBase):
    """A stream that cannot seek: what is written to it needs descriptors behind the data."""

    def __init__(self, path):
        self._stream = path.open("wb")

    def writable(self):
        return True

    def write(self, data):
        return self._stream.write(data)

    def close(self):
        self._stream.close()


def contents(path) -> dict[str, bytes]:
    file = File(path)
    found = {}
    for name, member in archive.members(file).items():
        opened = archive.open_member(file, member)
        found[name] = opened.read(0, member.size)
        archive.verify(file, member)
        opened.close()
    file.close()
    return found


@given(
    members=st.dictionaries(NAMES, st.binary(max_size=50), max_size=6),
    method=st.sampled_from([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED]),
    how=st.tuples(st.booleans(), st.booleans()),
    comment=st.binary(max_size=9),
)
def test_whatever_zipfile_writes_is_read(tmp_path, members, method, how, comment):
    piped, wide = how
    path = tmp_path / "a.zip"
    with (
        Pipe(path) if piped else path.open("wb") as stream,
        zipfile.ZipFile(stream, "w", method) as written,
    ):
        written.comment = comment
        written.writestr("folder/", b"")
        for name, data in members.items():
            with written.open(zipfile.ZipInfo(name), "w", force_zip64=wide) as member:
                member.write(data)

    assert members == contents(path)


def test_stored_members_are_parts_and_deflated_ones_are_unpacked(tmp_path):
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as written:
        written.writestr("s", b"x" * 1000, zipfile.ZIP_STORED)
        written.writestr("d", b"x" * 1000, zipfile.ZIP_DEFLATED)
    file = File(path)
    members = archive.members(file)

    assert isinstance(archive.open_member(file, members["s"]), Part)
    assert isinstance(archive.open_member(file, members["d"]), Inflated)
    assert members["d"].stored < members["d"].size == 1000
    file.close()


def test_a_checkpoint_of_torch_is_read_with_its_empty_tensors(tmp_path):
    torch = pytest.importorskip("torch")
    path = tmp_path / "m.pt"
    torch.save({"e": torch.empty(0), "w": torch.arange(5.0), "f": torch.empty(0)}, path)

    found = contents(path)

    with zipfile.ZipFile(path) as reference:
        assert found == {info.filename: reference.read(info) for info in reference.infolist()}


def test_a_wrong_checksum_is_found_by_verify_alone_where_bytes_are_stored(tmp_path):
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as written:
        written.writestr("s", b"x" * 100)
    data = bytearray(path.read_bytes())
    data[50] ^= 1
    path.write_bytes(data)
    file = File(path)
    member = archive.members(file)["s"]

    assert archive.open_member(file, member).read(0, 100)
    with pytest.raises(CorruptFile, match="checksum"):
        archive.verify(file, member)
    file.close()


def test_limits_are_told_with_their_names(tmp_path):
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as written:
        written.writestr("a", bytes(100_000))
        written.writestr("b", b"")

    few, small = File(path, {"zip_members": 1}), File(path, {"zip_bytes": 1000})
    with pytest.raises(LimitExceeded) as caught:
        archive.members(few)
    assert "zip_members" in caught.value.hint
    with pytest.raises(LimitExceeded) as caught:
        archive.open_member(small, archive.members(small)["a"])
    assert "zip_ratio" in caught.value.hint
    few.close()
    small.close()
