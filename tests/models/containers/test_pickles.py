import collections
import pickle
import pickletools
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from difflens.core.errors import CorruptFile, DifflensError, LimitExceeded
from difflens.models.containers.pickle_nodes import Blob, Call, Dict, Global, Persistent, Set
from difflens.models.containers.pickle_scalars import OPCODES
from difflens.models.containers.pickles import unpickle
from difflens.storage.local import File

PROTOCOLS = range(pickle.HIGHEST_PROTOCOL + 1)


@pytest.fixture
def read(tmp_path):
    def read(content: bytes, start: int = 0, **limits: int):
        path = tmp_path / "pickle"
        path.write_bytes(content)
        file = File(path, limits)
        try:
            return unpickle(file, start)
        finally:
            file.close()

    return read


def plain(value):  # noqa: PLR0911  a case a line
    """Turn nodes back into what Python would have made; only tests may recurse."""
    if isinstance(value, Dict):
        return {plain(k): plain(v) for k, v in zip(value.flat[::2], value.flat[1::2], strict=True)}
    if isinstance(value, Set):
        return set(map(plain, value.elements))
    if isinstance(value, Call):
        if str(value.function) == "_codecs.encode":
            return value.arguments[0].encode("latin-1")
        if value.function.name in ("set", "frozenset"):
            return set(map(plain, value.arguments[0]))
        if value.function.name in ("bytes", "bytearray"):
            return plain(value.arguments[0]) if value.arguments else b""
    if isinstance(value, list | tuple) and not isinstance(value, Global):
        return type(value)(map(plain, value))
    return value


hashable = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(), st.binary()
)
values = st.recursive(
    hashable,
    lambda inner: st.one_of(
        st.lists(inner, max_size=5),
        st.tuples(inner, inner),
        st.dictionaries(hashable, inner, max_size=5),
        st.sets(hashable, max_size=4),
    ),
    max_leaves=12,
)


@given(values, st.sampled_from(PROTOCOLS))
def test_plain_values_come_back_as_they_were(tmp_path_factory, value, protocol):
    path = tmp_path_factory.getbasetemp() / "value.pickle"
    path.write_bytes(pickle.dumps(value, protocol))
    file = File(path)

    found = unpickle(file)
    file.close()

    assert plain(found.value) == value
    assert found.end == file.size


def test_every_opcode_python_knows_has_an_answer():
    ours = {code for code in range(256) if "_unknown" not in OPCODES[code].__qualname__}

    assert ours | {ord(".")} == {ord(opcode.code) for opcode in pickletools.opcodes}


class Thing:
    """Something only this file knows."""

    def __init__(self, size):
        self.size = size


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_an_object_stays_a_name_with_its_state(read, protocol):
    found = read(pickle.dumps(Thing([1, 2]), protocol))

    assert type(found.value) is Call
    assert found.value.state.named() == {"size": [1, 2]}
    assert any(name.name == "Thing" for name in found.names)


def test_nothing_is_imported(read):
    found = read(b"cantigravity\nfly\n(Vx\ntR.")

    assert "antigravity" not in sys.modules
    assert found.value.function == Global("antigravity", "fly")
    assert str(found.value.function) == "antigravity.fly"


def test_persistent_ids_are_kept(read):
    found = read(b"\x80\x02(X\x01\x00\x00\x00aK\x05tQ.")

    assert type(found.value) is Persistent
    assert found.value.id == ("a", 5)


def test_a_dictionary_of_counts_takes_items_state_and_appended_elements(read):
    thing = collections.deque([1, 2], maxlen=5)
    found = read(pickle.dumps(thing, 4))

    assert found.value.items == [1, 2]
    assert str(found.value.function) == "collections.deque"


def test_one_pickle_after_another_is_read_from_its_place(read):
    content = pickle.dumps(5) + pickle.dumps([6])

    first = read(content)
    second = read(content, first.end)

    assert (first.value, second.value) == (5, [6])
    assert second.end == len(content)


def test_a_long_string_is_left_in_the_file(read):
    long = b"x" * (1 << 21)
    found = read(pickle.dumps([long, "y" * (1 << 21), 7], 4))

    blob, text, number = found.value
    assert type(blob) is Blob
    assert (blob.length, blob.text, text.text, number) == (1 << 21, False, True, 7)


def test_strings_of_python_2_are_text_where_they_can_be(read):
    assert read(b"U\x02hi.").value == "hi"
    assert read(b"U\x02\xff\xfe.").value == b"\xff\xfe"
    assert read(b"S'a\\x00b'\n.").value == "a\0b"


def test_shared_and_cyclic_structures_are_kept_as_they_are(read):
    loop: list = []
    loop.append(loop)
    found = read(pickle.dumps(loop))

    assert found.value[0] is found.value


BROKEN = {
    "no stop": (b"\x80\x02}", "does not end"),
    "empty": (b"", "does not end"),
    "stop on nothing": (b".", "0 objects"),
    "two on the stack": (b"K\x01K\x02.", "2 objects"),
    "an open mark": (b"(K\x01.", "1 objects"),
    "pop of nothing": (b"0.", "empty stack"),
    "pop below a mark": (b"K\x01(\x85.", "empty stack"),
    "no mark": (b"t.", "mark"),
    "unset memo": (b"h\x05.", "memo holds nothing at 5"),
    "unset memo as text": (b"g7\n.", "memo holds nothing at 7"),
    "put of nothing": (b"q\x01.", "empty stack"),
    "append to a number": (b"K\x01K\x02a.", "no list"),
    "set in a list": (b"]K\x01K\x02s.", "no dictionary"),
    "odd items": (b"}(K\x01u.", "without a value"),
    "add to a list": (b"](K\x01\x90.", "no set"),
    "state of a list": (b"]}b.", "state"),
    "an unknown opcode": (b"\xff.", "no opcode"),
    "protocol 6": (b"\x80\x06N.", "protocol 6"),
    "text of 2^62": (b"\x8d" + (2**62).to_bytes(8, "little") + b"x.", "4611686018427387904"),
    "bytes of 2^62": (b"\x8e" + (2**62).to_bytes(8, "little") + b"x.", "4611686018427387904"),
    "byte array of 2^62": (b"\x96" + (2**62).to_bytes(8, "little") + b"x.", "4611686018427387904"),
    "frame of 2^62": (b"\x95" + (2**62).to_bytes(8, "little") + b"N.", "4611686018427387904"),
    "number of 2^31 bytes": (b"\x8b" + (2**31).to_bytes(4, "little") + b"x.", "2147483648"),
    "string of 2^31": (b"T" + (2**31).to_bytes(4, "little") + b"x.", "2147483648"),
    "a number that is none": (b"Iabc\n.", "abc"),
    "a number with an underscore": (b"I1_0\n.", "1_0"),
    "a number of 5000 digits": (b"I" + b"9" * 5000 + b"\n.", "whole number"),
    "a float that is none": (b"Fx\n.", "no number"),
    "an endless line": (b"V" + b"x" * 100, "does not end"),
    "a string without quotes": (b"Sab\n.", "quotes"),
    "a text that is no UTF-8": (b"X\x01\x00\x00\x00\xff.", "UTF-8"),
    "arguments that are no tuple": (b"cos\nmkdir\n]R.", "no tuple"),
    "a class that is a number": (b"K\x01K\x02\x93.", "no name"),
    "an object of no class": (b"(o.", "no class"),
    "extension 1": (b"\x82\x01.", "extension"),
    "extension 2": (b"\x83\x01\x00.", "extension"),
    "extension 4": (b"\x84\x01\x00\x00\x00.", "extension"),
    "a persistent id as text": (b"Pabc\n.", "persistent id as text"),
    "a buffer from outside": (b"\x97.", "buffer"),
    "a class that is changed": (
        b"cx\ny\n)R}X\x09\x00\x00\x00__class__cos\nsystem\nsb.",
        "changes the class",
    ),
}


@pytest.mark.parametrize(("content", "word"), BROKEN.values(), ids=BROKEN)
def test_a_broken_pickle_is_told(read, content, word):
    with pytest.raises(CorruptFile) as caught:
        read(content)
    assert word in str(caught.value)
    assert str(caught.value).isprintable()


def test_opcodes_and_objects_are_limited(read):
    with pytest.raises(LimitExceeded, match="more opcodes than 100"):
        read(b"(" * 200, pickle_opcodes=100)
    with pytest.raises(LimitExceeded, match="more objects than 100"):
        read(b"]" * 200 + b".", pickle_nodes=100)


def test_a_pickle_cut_at_any_byte_is_refused(read):
    value = {"a": [1, 2.5, None, True, 2**70], "b": ("x", b"y", {1, 2}), 3: Thing(4)}
    for protocol in PROTOCOLS:
        good = pickle.dumps(value, protocol)
        for end in range(len(good)):
            with pytest.raises(DifflensError):
                read(good[:end])


def test_a_line_longer_than_the_window_is_read(read):
    text = "é" * 100_000

    assert read(pickle.dumps(text, 0)).value == text


def test_a_million_levels_are_read_without_recursion(read):
    found = read(b")" + b"\x85" * 999_000 + b".")

    assert type(found.value) is tuple


def test_the_module_imports_no_unpickler():
    code = Path(sys.modules[unpickle.__module__].__file__ or "").read_text()

    assert "import pickle" not in code
