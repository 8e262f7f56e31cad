"""Repeated blocks of unknown names: paired where nothing else can be meant."""

from difflens.core.records import TensorInfo
from difflens.diffs.pairing import is_prefix_rename, pair


def model(**families: tuple[int, ...]) -> dict[str, TensorInfo]:
    """Three blocks of each family."""
    names = {f"{stem.replace('__', '.')}".replace("N", str(n)): shape
             for stem, shape in families.items() for n in range(3)}  # fmt: skip
    return {name: TensorInfo(name, "F32", shape) for name, shape in names.items()}


def pairs(left: dict[str, TensorInfo], right: dict[str, TensorInfo]) -> dict[str, str]:
    return {
        each.left.name: each.right.name for each in pair(left, right) if each.left and each.right
    }


def test_families_of_a_shape_nobody_else_has_are_each_other():
    left = model(stage__N__rise=(8, 2), stage__N__fall=(2, 8))
    right = model(net__blockN__up=(8, 2), net__blockN__down=(2, 8))

    found = pairs(left, right)

    assert found == {
        **{f"stage.{n}.rise": f"net.block{n}.up" for n in range(3)},
        **{f"stage.{n}.fall": f"net.block{n}.down" for n in range(3)},
    }


def test_families_that_look_alike_stay_unpaired():
    left = model(stage__N__query=(4, 4), stage__N__key=(4, 4))
    right = model(block__N__one=(4, 4), block__N__two=(4, 4))

    assert pairs(left, right) == {}


def test_another_number_of_blocks_is_another_network():
    left = model(stage__N__rise=(8, 2), stage__N__fall=(2, 8))
    right = model(block__N__up=(8, 2), block__N__down=(2, 8))
    for name, shape in (("block.3.up", (8, 2)), ("block.3.down", (2, 8))):
        right[name] = TensorInfo(name, "F32", shape)

    assert pairs(left, right) == {}


def test_one_family_alone_shows_nothing():
    assert pairs(model(stage__N__rise=(8, 2)), model(block__N__up=(8, 2))) == {}


def test_such_a_rename_is_a_difference_that_is_told():
    left = model(stage__N__rise=(8, 2), stage__N__fall=(2, 8))
    right = model(block__N__up=(8, 2), block__N__down=(2, 8))

    found = pair(left, right)

    assert {each.how for each in found} == {"structure"}
    assert not any(map(is_prefix_rename, found))
