import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from difflens.core.errors import CorruptFile, DifflensError, LimitExceeded
from difflens.core.limits import LARGEST
from difflens.models.strict_json import parse

whole = st.integers(-LARGEST, LARGEST)
values = st.recursive(
    st.none() | st.booleans() | whole | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(values, st.booleans())
def test_it_reads_what_json_writes(value, ascii_only):
    text = json.dumps(value, ensure_ascii=ascii_only)

    assert value == parse(text.encode(), "x", depth=64)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        (b"", "not JSON"),
        (b"{} x", "extra data"),
        (b'{"a": 1, "b": {"c": 1, "c": 1}}', "'c' stands twice"),
        (b"[1.5]", "1.5 is not an integer"),
        (b"[1e3]", "1e3"),
        (b"[NaN]", "NaN"),
        (b"[-Infinity]", "-Infinity"),
        (b"[9223372036854775808]", "overflows"),
        (b"[-9223372036854775808]", "overflows"),
        (b"[" + b"9" * 5000 + b"]", "overflows"),
        (b'["\\ud800"]', "surrogate"),
        (b'{"\\udc00": 1}', "surrogate"),
        (b'["\\ude00\\ud83d"]', "surrogate"),
        (b'["\xed\xa0\x80"]', "not UTF-8"),
        (b'["\x01"]', "control character"),
        (b"\xef\xbb\xbf[]", "byte-order mark"),
        ("[]".encode("utf-16"), "not UTF-8"),
        ("[]".encode("utf-16-le"), "not JSON"),
        (b"[01]", "not JSON"),
        (b'["\\x"]', "escape"),
    ],
)
def test_what_two_readers_could_read_in_two_ways_is_refused(text, word):
    with pytest.raises(CorruptFile, match=word) as caught:
        parse(text, "x", depth=64)
    assert "invalid" not in str(caught.value).lower()


def test_a_pair_of_surrogates_is_one_character():
    assert parse(b'["\\ud83d\\ude00"]', "x", depth=64) == ["😀"]


def test_a_backslash_before_u_is_no_surrogate():
    assert parse(b'["\\\\ud800"]', "x", depth=64) == ["\\ud800"]


@pytest.mark.parametrize("opening", [b"[", b'{"a":'])
@pytest.mark.parametrize("depth", [65, 900, 5_000, 100_000])
def test_deep_nesting_is_refused(opening, depth):
    closing = b"]" if opening == b"[" else b"}"
    with pytest.raises(LimitExceeded, match="deeper than 64"):
        parse(opening * depth + (b"1" if closing == b"}" else b"") + closing * depth, "x", depth=64)


def test_the_deepest_allowed_opens():
    parse(b"[" * 64 + b"]" * 64, "x", depth=64)
    parse(b"[" * 64 + b"1" + b"]" * 64, "x", depth=64)


def test_fractions_are_read_where_they_are_asked_for():
    assert parse(b"[1.5]", "x", depth=64, floats=True) == [1.5]
    with pytest.raises(CorruptFile):
        parse(b"[NaN]", "x", depth=64, floats=True)


@given(st.binary(max_size=40))
def test_any_bytes_are_json_or_refused(data):
    try:
        parse(data, "x", depth=4)
    except DifflensError as error:
        assert str(error).isprintable()  # noqa: PT017  either way is right
