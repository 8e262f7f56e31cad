import ast
from pathlib import Path

from difflens import training
from difflens.training.detectors.signs import degrees

WORDS = {(type(each), each): name for name, each in vars(degrees).items() if name.isupper()}
ROOMS = [Path(training.__file__).parent / name for name in ("detectors", "diagnoses", "verdicts")]


def numbers(path):
    """List the private names of numbers that stand alone at the top of a module."""
    for node in ast.parse(path.read_text("utf-8")).body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
            value = node.value.value
            if type(value) in {int, float}:
                yield from ((each.id, value) for each in node.targets if each.id.startswith("_"))


def test_a_number_of_the_scale_has_no_second_name_beside_a_rule():
    doubled = [
        f"{path.name}: {name} is {WORDS[type(value), value]}"
        for room in ROOMS
        for path in sorted(room.rglob("*.py"))
        for name, value in numbers(path)
        if (type(value), value) in WORDS
    ]

    assert doubled == []


def test_the_words_of_the_scale_are_in_their_order():
    for kind in (int, float):
        sizes = [value for each, value in WORDS if each is kind]
        assert sizes == sorted(sizes)
