import onnx
import pytest
from hostile.wire import fixed32, number, text, varint
from hypothesis import given
from hypothesis import strategies as st
from lanes import examples
from onnx import helper

from difflens.core.errors import CorruptFile, LimitExceeded
from difflens.models.containers import protobuf
from difflens.models.containers.protobuf import Wire, signed
from difflens.storage.local import File


def wire(tmp_path, data: bytes) -> Wire:
    path = tmp_path / "message"
    path.write_bytes(data)
    return Wire(File(path))


def fields(tmp_path, data: bytes):
    return list(wire(tmp_path, data).fields(0, len(data)))


def test_fields_come_with_number_value_and_place(tmp_path):
    found = fields(tmp_path, number(1, 300) + text(2, "abc") + fixed32(3, 7))

    assert [(each.number, each.value) for each in found] == [(1, 300), (2, 0), (3, 7)]
    assert (found[1].start, found[1].stop) == (5, 8)


@examples(100)
@given(st.integers(0, 2**64 - 1), st.integers(1, 2**29 - 1))
def test_any_number_in_any_field_comes_back(tmp_path_factory, value, field):
    (found,) = fields(tmp_path_factory.mktemp("m"), number(field, value))

    assert (field, value) == (found.number, found.value)
    assert -(2**63) <= signed(found.value) < 2**63


@given(st.binary(max_size=200))
@examples(200)
def test_any_bytes_give_fields_or_a_clean_error(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("m") / "message"
    path.write_bytes(data)
    file = File(path)
    try:
        found = list(Wire(file).fields(0, len(data)))
    except (CorruptFile, LimitExceeded):
        return
    finally:
        file.close()
    assert all(0 <= each.start <= each.stop <= len(data) for each in found)


def test_the_window_moves_over_what_is_not_asked_for(tmp_path, monkeypatch):
    monkeypatch.setattr(protobuf, "WINDOW", 32)
    data = b"".join(text(1, b"x" * size) + number(2, size) for size in range(0, 300, 7))
    found = fields(tmp_path, data)

    assert list(range(0, 300, 7)) == [each.value for each in found if each.number == 2]


def test_groups_are_passed_over(tmp_path):
    group = varint(5 << 3 | 3) + number(1, 1) + varint(6 << 3 | 3) + varint(6 << 3 | 4)
    data = group + text(2, b"inside") + varint(5 << 3 | 4) + number(9, 1)

    assert [each.number for each in fields(tmp_path, data)] == [9]


@pytest.mark.parametrize(
    ("data", "word"),
    [
        (b"\x08" + b"\xff" * 11, "ten bytes"),
        (b"\x08" + b"\xff" * 9 + b"\x02", "ten bytes"),
        (b"\x08\x80", "ten bytes"),
        (b"\x0a\x05abc", "ends at byte 7"),
        (b"\x09abc", "ends at byte"),
        (b"\x0e\x00", "wire type 6"),
        (b"\x00\x00", "no field tag"),
        (b"\x0b\x08\x01", "does not end"),
        (b"\x0c", "did not begin"),
        (b"\x0b\x14", "did not begin"),
        (b"\xff\xff\xff\xff\xff\x01", "no field tag"),
    ],
)
def test_a_field_that_is_none_is_refused(data, word, tmp_path):
    with pytest.raises(CorruptFile, match=word):
        fields(tmp_path, data)


def test_groups_nested_100000_deep_are_refused_without_recursion(tmp_path):
    with pytest.raises(LimitExceeded, match="deeper than 100"):
        fields(tmp_path, b"\x0b" * 100_000 + b"\x0c" * 100_000)


def test_what_the_reference_library_wrote_is_walked_whole(tmp_path):
    made = helper.make_model(helper.make_graph([], "g", [], []), producer_name="me")
    assert onnx.ModelProto.FromString(made.SerializeToString()) == made
    found = fields(tmp_path, made.SerializeToString())

    assert [field.number for field, _ in made.ListFields()] == [each.number for each in found]
