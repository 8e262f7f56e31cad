"""Which norm follows which layer, by their names: also by names that nobody would give."""

import pytest

from difflens.diffs.pairing.scopes import JOINED, Places, follows, matched


@pytest.mark.parametrize("digits", ["9" * 5000, "٣"], ids=["many", "not ASCII"])
def test_a_number_that_no_list_has_is_a_word(digits):
    assert follows(f"a.{digits}", "a.1") == 0
    assert follows(f"a.bn.{digits}", f"a.conv.{digits}") != JOINED


def test_numbered_norms_go_with_as_many_layers_in_the_order_they_run():
    layers = ["b.conv_pw", "b.conv_dw", "b.conv_pwl"]

    assert matched(layers, ["b.bn1", "b.bn2", "b.bn3"]) == {
        "b.conv_pw": "b.bn1", "b.conv_dw": "b.bn2", "b.conv_pwl": "b.bn3"
    }  # fmt: skip
    assert matched(layers, ["b.x", "b.y", "b.z"]) == {}


def test_a_name_of_many_modules_takes_no_more_room_than_its_letters():
    deep = "a." * 200_000 + "weight"
    places = Places([deep, "a.b.weight", "ab.weight"])

    assert places.within("a.b.") == ["a.b.weight"]
    assert places.within("ab.") == ["ab.weight"]
    assert places.within("a.a.") == [deep]
