"""Texts that fit: every part keeps its head, and says what it left out."""

import re

from hypothesis import given
from hypothesis import strategies as st

from difflens.render.document.cutting import Part, fitted

lines = st.lists(st.text(st.characters(min_codepoint=33, max_codepoint=300), max_size=60))
parts = st.lists(
    st.builds(Part, st.just(["head"]), lines, st.just(["tail"]), st.integers(0, 300)), max_size=6
)


@given(parts, st.integers(1200, 4000))
def test_it_takes_no_more_than_it_may(given_parts: list[Part], most: int) -> None:
    text = fitted([part._replace(share=most // 12) for part in given_parts], most)

    assert len(text.encode()) <= most
    assert text.count("head") >= len(given_parts)
    assert text.count("tail") >= len(given_parts)


@given(parts)
def test_where_there_is_room_nothing_is_left_out(given_parts: list[Part]) -> None:
    text = fitted(given_parts, 10**6)

    assert "left out" not in text
    assert text == "\n\n".join("\n".join([*p.head, *p.lines, *p.tail]) for p in given_parts) + "\n"


def test_the_first_part_takes_what_the_others_do_not_need() -> None:
    long = [f"{number:09}" for number in range(100)]
    first, second = Part(["a"], long, (), 100), Part(["b"], long, (), 100)

    text = fitted([first, second], 200 + 170 + 600)

    kept = [len(re.findall(r"^\d{9}$", part, re.MULTILINE)) for part in text.split("b\n")]
    assert kept[0] > kept[1] == 10
    assert "90 lines more are left out here: `-o json` has them." in text
