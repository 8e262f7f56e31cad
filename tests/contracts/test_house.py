"""How the house is kept: short files, plain names, one line on top of each."""

import ast
import re
from pathlib import Path
from statistics import median

import pytest
from contracts.plugins import REGISTRIES, ROOT, SOURCE

from tools import house

LONGEST_FILE, LONGEST_FUNCTION, LONG_FUNCTION, MEDIAN_FILE, STORY = 400, 60, 40, 165, 150
VAGUE = {"utils", "util", "helpers", "helper", "common", "base", "manager", "misc", "tools"}


def length(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    return (node.end_lineno or 0) - node.lineno + 1


def overlong(module: house.Module) -> list[str]:
    """Name the functions that are too long, or long and unexplained."""
    return [
        f"{module.path.name}:{node.lineno} {node.name} has {length(node)} lines"
        for node in house.functions(module)
        if length(node) > LONGEST_FUNCTION
        or (length(node) > LONG_FUNCTION and not ast.get_docstring(node))
    ]


def opening(module: house.Module) -> str:
    """Return the first paragraph of a file's docstring."""
    return (ast.get_docstring(module.tree) or "").partition("\n\n")[0]


def test_a_file_opens_with_one_line_that_says_what_it_is_for():
    assert [
        each.path for each in house.modules() if not opening(each) or "\n" in opening(each)
    ] == []


def test_no_file_is_longer_than_four_hundred_lines():
    assert [each.path for each in house.modules() if house.lines([each]) > LONGEST_FILE] == []


def test_no_function_is_overlong():
    assert [line for each in house.modules() for line in overlong(each)] == []


def test_no_file_has_a_name_that_says_nothing():
    assert [each.path for each in house.modules() if each.path.stem.strip("_") in VAGUE] == []


def test_half_of_the_files_fit_on_three_screens():
    assert median(house.lines([each]) for each in house.modules()) <= MEDIAN_FILE


def test_at_the_top_of_the_package_are_folders_and_four_files():
    files = {"__init__.py", "__init__.pyi", "__main__.py", "py.typed"}
    entries = house.top_entries()

    assert {each for each in entries if not each.endswith("/")} == files
    assert len(entries) <= 18


def test_no_function_has_a_name_that_stands_for_anything():
    assert [line for each in house.modules() for line in house.banned_names(each)] == []


def test_no_docstring_begins_with_give():
    assert [line for each in house.modules() for line in house.gives(each)] == []


def test_no_sentence_refers_to_what_a_reader_cannot_open():
    assert [line for each in house.modules() for line in house.unresolvable(each)] == []


@pytest.mark.parametrize(
    "name", ["diffs/story.py", "diffs/evidence/gather.py", "training/story.py"]
)
def test_the_story_stays_short(name):
    assert len((SOURCE / name).read_text().splitlines()) <= STORY


@pytest.mark.parametrize(
    "name", ["core/registry.py", "diffs/story.py", "core/protocols.py", "core/records.py"]
)
def test_the_ground_knows_no_plug_in_by_name(name):
    text = (SOURCE / name).read_text()
    plugins = {entry.name for registry, _ in REGISTRIES.values() for entry in registry.ours()}
    # Also words of the language, of the library or of what the house itself says.
    words = {"json", "html", "csv", "yaml", "cli", "data", "nan", "dead", "slow"}
    known = {spelling for each in plugins - words for spelling in (each, each.replace("-", "_"))}

    assert [each for each in known if re.search(rf"\b{each}\b", text)] == []


def test_sides_are_left_and_right():
    """No file calls the two models old and new, or source and target."""
    banned = re.compile(r"\b(old|new|src|dst|baseline|candidate)_(model|tensor|path|file|side)\b")
    public = "baseline_model"  # what `detect_regressions` calls its second argument

    assert [
        each.path for each in house.modules() if banned.search(each.text.replace(public, ""))
    ] == []


def planted(text: str) -> house.Module:
    return house.Module(ROOT / "planted.py", "planted", text, ast.parse(text))


def test_these_tests_can_fail():
    body = "\n".join("    x = 1" for _ in range(LONG_FUNCTION))
    long = planted(f"def long():\n{body}\n")
    vague = planted('def _told():\n    """Give what methods 9.1 asks."""\n')

    assert overlong(long) == ["planted.py:1 long has 41 lines"]
    assert opening(long) == ""
    assert list(house.banned_names(vague)) == ["planted.py:1 _told"]
    assert list(house.gives(vague)) == ["planted.py:1"]
    assert list(house.unresolvable(vague)) == ["planted.py:2 methods 9.1"]


def test_every_test_of_these_contracts_has_a_sentence_for_a_name():
    """A name of three words or more reads as a sentence in `pytest -v`."""
    short = [
        f"{path.name}: {node.name}"
        for path in sorted((ROOT / "tests" / "contracts").rglob("test_*.py"))
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.FunctionDef)
        and node.name.startswith("test_")
        and node.name.count("_") < 3
    ]

    assert short == []


def shared_generators(path: Path) -> list[str]:
    """Name what a test file draws from across its tests, so that their order would matter."""
    return [
        ast.unparse(node)
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.Assign)
        and re.fullmatch(r".*(default_rng|Random|Generator)\([^()]*\)", ast.unparse(node.value))
    ]


def test_no_test_draws_from_a_generator_of_the_whole_file():
    paths = (ROOT / "tests").rglob("*.py")

    assert [line for path in paths for line in shared_generators(path)] == []
