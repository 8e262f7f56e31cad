"""Text by the cells of a terminal: what fits, fits, and stays harmless."""

from hypothesis import given
from hypothesis import strategies as st

from difflens.core.escape import for_terminal
from difflens.core.terminal import PLAIN, cut, display_width, fitted_names, flush, folded

names = (
    st.text(st.one_of(st.sampled_from("ab.0重みe\u0301\x1b\u202e\n😀 ✈\ufe0f"), st.characters()),
            max_size=60)
    .filter(lambda name: not any("\ud800" <= letter <= "\udfff" for letter in name))
    .map(for_terminal)
)  # fmt: skip


@given(st.lists(names, min_size=1, max_size=5, unique=True), st.integers(6, 40))
def test_shortened_names_fit_and_short_ones_stay(texts, width):
    for text, shown in zip(texts, fitted_names(texts, width), strict=True):
        assert display_width(shown) <= width
        assert shown.isprintable()
        assert display_width(text) > width or shown == text
        assert display_width(flush(shown, width)) == width
        assert display_width(flush(shown, width, right=True)) == width


@given(names, st.integers(2, 40))
def test_a_folded_text_fits_and_loses_nothing_but_spaces(text, width):
    lines = folded(text, width)

    assert all(display_width(line) <= width for line in lines)
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")


@given(names, st.integers(2, 40))
def test_a_cut_text_fits_and_begins_as_the_whole(text, width):
    shown = cut(text, width)

    assert display_width(shown) <= width
    assert text.startswith(shown.removesuffix("…"))


def test_words_are_torn_only_where_they_are_longer_than_a_line():
    assert folded("one two three", 7) == ["one two", "three"]
    assert folded("ab cdefghij k", 4) == ["ab", "cdef", "ghij", "k"]
    assert folded("  a text further in", 10) == ["  a text", "further in"]


def test_two_long_names_that_begin_alike_stay_two():
    shown = fitted_names([f"transformer.encoder.layers.{i}.weight" for i in range(12)], 16)

    assert len(set(shown)) == 12


@given(st.text("abc.", min_size=20, max_size=60), st.data())
def test_two_names_that_differ_in_one_letter_stay_two(name, data):
    place, width = data.draw(st.integers(0, len(name) - 1)), data.draw(st.integers(8, 40))
    other = f"{name[:place]}X{name[place + 1 :]}"
    shown = fitted_names([name, other], width)

    assert shown[0] != shown[1]
    assert all(display_width(each) <= width for each in shown)


def test_the_projections_of_one_layer_stay_four():
    names = [f"model.layers.{i}.self_attn.{p}_proj.weight" for i in range(12) for p in "qkvo"]

    assert len(set(fitted_names(names, 24))) == 48


def test_what_an_encoding_lacks_becomes_a_lookalike_of_the_same_width_or_its_code():
    drawn = "layer ─┬─ ░▒▓█ … · →"

    assert drawn.encode("ascii", PLAIN) == b"layer -+- .:*# ~ , >"
    assert "β₁ ≥ ±0.9".encode("ascii", PLAIN) == b"beta1 >= +-0.9"
    assert "重み\udcff".encode("ascii", PLAIN) == b"\\u91cd\\u307f\\udcff"
    assert drawn.encode("utf-8", PLAIN) == drawn.encode()
