"""`difflens demo`: the main job with nothing to prepare."""

import hashlib

import pytest
from cli.command import assert_refused

NAMES = ("base", "finetuned", "lora-merged", "quantised", "damaged")


@pytest.fixture
def told(difflens):
    return difflens("demo", "--out", "here", "--color", "never")


def test_it_makes_models_and_a_page_for_each_question(told, tmp_path):
    assert (told.code, told.err) == (0, "")
    made = {path.name for path in (tmp_path / "here").iterdir()}
    pages = {f"{name}.html" for name in NAMES if name != "base"}
    assert {f"{name}.safetensors" for name in NAMES} | pages <= made


def test_it_asks_and_answers(told):
    assert told.out.count("$ difflens here/base.safetensors") == 4
    assert "NON-FINITE: 0 -> 12" in told.out
    assert "ALL ZERO NOW" in told.out
    assert "\x1b" not in told.out


def test_what_it_shows_is_what_the_command_says(told, difflens):
    pair = ("here/base.safetensors", "here/quantised.safetensors")

    alone = difflens(*pair, "--change-summary")

    assert alone.code == 1
    assert alone.out in told.out


def test_it_is_the_same_on_every_machine(told, difflens, tmp_path):
    again = difflens("demo", "--out", "there", "--color", "never")

    assert told.out.replace("here/", "there/") == again.out
    for name in NAMES:
        files = [tmp_path / place / f"{name}.safetensors" for place in ("here", "there")]
        assert len({hashlib.sha256(file.read_bytes()).digest() for file in files}) == 1


def test_its_models_are_whole_and_one_is_not_finite(told, difflens):
    assert told.code == 0
    codes = {name: difflens("check", f"here/{name}.safetensors", "-q").code for name in NAMES}
    assert codes == dict.fromkeys(NAMES, 0) | {"damaged": 1}


def test_a_place_that_cannot_be_a_folder(difflens, tmp_path):
    (tmp_path / "file").write_text("")

    assert_refused(difflens("demo", "--out", "file"), "file")
    assert_refused(difflens("demo", "--out", "file/below"), "file/below")
