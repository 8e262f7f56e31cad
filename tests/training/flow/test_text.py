"""The gradient flow as text."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from training.flow.flows import recorded

from difflens.core.terminal import display_width
from difflens.render.document.text import painter
from difflens.training.flow.text import EMPTY, heat_map, moving, room_for

ESCAPES = re.compile(r"\x1b\[[0-9;]*m")
names = st.text(
    st.one_of(st.sampled_from("ab.0重みe\u0301\x1b\u202e\n😀"), st.characters()), max_size=60
).filter(lambda name: not any("\ud800" <= letter <= "\udfff" for letter in name))


def many(layers: int = 3, steps: int = 40, **bad):
    rng = np.random.default_rng(1)
    flows = [{f"layer{i}": rng.normal(size=4) for i in range(layers)} for _ in range(steps)]
    for layer, (step, values) in bad.items():
        flows[step][layer] = values
    return recorded(*flows)


@given(st.lists(names, min_size=1, max_size=4, unique=True), st.integers(30, 160),
       st.integers(1, 200))  # fmt: skip
def test_no_row_is_wider_than_the_terminal(layers, width, steps):
    animator = recorded(*[{key: [1.0] for key in layers}] * steps)
    picture = animator.picture(columns=room_for(layers, width))

    for line in heat_map(picture, width=width).splitlines():
        assert display_width(line) <= width
    for line in next(iter(moving(picture, width))).splitlines():
        assert display_width(line) <= width


def test_every_row_begins_its_signs_in_the_same_cell():
    text = recorded({"重み": [1.0], "e\u0301te\u0301": [1.0], "plain.weight": [1.0]})
    rows = text.to_ascii_animation().splitlines()[3:6]

    assert {display_width(row.partition("█")[0]) for row in rows} == {len("plain.weight") + 2}


def test_every_state_has_a_sign_of_its_own_and_stands_in_the_legend():
    bad = {"layer0": (5, [1e6]), "layer1": (6, [np.nan]), "layer2": (7, [1e-12])}
    animator = many(4, 20, **bad)
    animator.record_step(20, {"layer0": [0.0], "layer1": None})
    text = animator.to_ascii_animation()
    rows = dict(line.strip().split("  ", 1) for line in text.splitlines()[3:7])

    assert rows["layer0"].index("!") == 5
    assert rows["layer1"].index("x") == 6
    assert rows["layer2"].index("v") == 7
    assert (rows["layer0"][-1], rows["layer1"][-1], rows["layer3"][-1]) == ("0", "·", "·")
    for word in ("· no gradient", "- frozen", "0 exactly zero", "v vanishing", "! exploding",
                 "x NaN or infinite"):  # fmt: skip
        assert word in text


def test_a_flag_among_many_steps_is_seen_in_a_narrow_terminal():
    animator = many(2, 1000, layer1=(777, [1e6]))
    text = animator.to_ascii_animation(width=60)

    assert text.splitlines()[4].count("!") == 1
    assert "a column is up to" in text


def test_rows_left_out_are_counted():
    text = many(100, 3, layer57=(1, [np.nan])).to_ascii_animation(rows=10)

    assert "90 of 100 layers are left out" in text
    assert "layer57" in text


def test_labels_of_steps_stand_over_their_columns():
    animator = recorded(*[{"a": [1.0]}] * 60, first=990)
    _, labels, rule, *_ = animator.to_ascii_animation().splitlines()
    found = {match.start(): int(match[0]) for match in re.finditer(r"\d+", labels)}

    assert len(found) > 5
    assert all(rule[place] == "┬" and step == 990 + place - 7 for place, step in found.items())


def test_colour_changes_no_sign():
    picture = many(4, 30, layer1=(6, [np.nan])).picture(columns=30)
    painted = heat_map(picture, paint=painter(True))

    assert "\x1b[" in painted
    assert ESCAPES.sub("", painted) == heat_map(picture)


class TestMoving:
    def test_there_is_a_text_for_every_step_and_all_are_equally_tall(self):
        texts = list(many(5, 25).ascii_frames())

        assert len(texts) == 25
        assert len({text.count("\n") for text in texts}) == 1

    def test_each_says_its_step_and_the_numbers_of_it(self):
        texts = list(recorded(*({"a": [10.0**-step]} for step in range(4)), first=7).ascii_frames())

        assert "step 9, 3 of 4" in texts[2]
        assert "1.0e-02" in texts[2]

    def test_the_bar_falls_with_the_value(self):
        texts = recorded(*({"a": [10.0**-step]} for step in range(4))).ascii_frames(50)

        bars = [len(re.search(r"a  (█*)", text.splitlines()[2])[1]) for text in texts]
        assert bars[0] == 20
        assert bars == sorted(bars, reverse=True)

    def test_a_bad_step_says_so_in_words(self):
        texts = list(recorded({"a": [1.0]}, {"a": [np.nan]}).ascii_frames())

        assert "x NaN or infinite" in texts[1].splitlines()[2]
        assert "NaN" not in texts[0].splitlines()[2]

    def test_nothing_recorded_is_said(self):
        assert list(recorded().ascii_frames()) == [EMPTY + "\n"]


@pytest.mark.parametrize(("scale", "word"), [("layer", "each layer"), ("frame", "each column")])
def test_the_legend_says_what_a_shade_means(scale, word):
    assert word in many().to_ascii_animation(scale=scale)


def test_a_title_that_finds_no_room_ends_with_a_whole_word():
    text = recorded({"w": [1.0]}).picture(columns=1, title="sigmoid-mlp")

    assert heat_map(text, width=120).splitlines()[0].endswith("layers run down")
    assert heat_map(text, width=80).splitlines()[0].endswith("of the gradient")
