"""How the house is kept: short files, plain names, one line on top of each."""

import ast
import re
from pathlib import Path
from statistics import median

import pytest
from contracts.plugins import REGISTRIES, ROOT, SOURCE

FILES = sorted(SOURCE.rglob("*.py"))
LONGEST_FILE, LONGEST_FUNCTION, LONG_FUNCTION, MEDIAN_FILE, STORY = 400, 60, 40, 130, 150
VAGUE = {"utils", "util", "helpers", "helper", "common", "base", "manager", "misc", "core", "tools"}

every_file = pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))


def functions(path: Path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node, (node.end_lineno or 0) - node.lineno + 1


def overlong(path: Path) -> list[str]:
    """Name the functions that are too long, or long and unexplained."""
    return [
        f"{path.name}:{node.lineno} {node.name} has {length} lines"
        for node, length in functions(path)
        if length > LONGEST_FUNCTION or (length > LONG_FUNCTION and not ast.get_docstring(node))
    ]


def opening(path: Path) -> str:
    """Give the first line of a file's docstring."""
    return (ast.get_docstring(ast.parse(path.read_text())) or "").partition("\n\n")[0]


@every_file
def test_a_file_opens_with_one_line_that_says_what_it_is_for(path):
    assert opening(path)
    assert "\n" not in opening(path)


@every_file
def test_no_file_is_longer_than_four_hundred_lines(path):
    assert len(path.read_text().splitlines()) <= LONGEST_FILE


@every_file
def test_no_function_is_overlong(path):
    assert overlong(path) == []


@every_file
def test_no_file_has_a_name_that_says_nothing(path):
    assert path.stem.strip("_") not in VAGUE


def test_half_of_the_files_fit_on_two_screens():
    assert median(len(path.read_text().splitlines()) for path in FILES) <= MEDIAN_FILE


@pytest.mark.parametrize("name", ["pipeline.py", "gathering.py", "training.py"])
def test_the_story_stays_short(name):
    assert len((SOURCE / name).read_text().splitlines()) <= STORY


@pytest.mark.parametrize("name", ["registry.py", "pipeline.py", "protocols.py", "records.py"])
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
    contract = "baseline_model"  # what `detect_regressions` calls its second argument
    found = [path for path in FILES if banned.search(path.read_text().replace(contract, ""))]

    assert found == []


def test_these_tests_can_fail(tmp_path):
    body = "\n".join("    x = 1" for _ in range(LONG_FUNCTION))
    path = tmp_path / "planted.py"
    path.write_text(f"def long():\n{body}\n")

    assert overlong(path) == ["planted.py:1 long has 41 lines"]
    assert opening(path) == ""


def test_every_test_of_these_contracts_has_a_sentence_for_a_name():
    """A name of three words or more reads as a sentence in `pytest -v`."""
    short = [
        f"{path.name}: {node.name}"
        for path in sorted((ROOT / "tests" / "contracts").rglob("test_*.py"))
        for node, _ in functions(path)
        if node.name.startswith("test_") and node.name.count("_") < 3
    ]

    assert short == []


def kept_generators(path: Path) -> list[str]:
    """Name what a test file draws from across its tests, so that their order would matter."""
    return [
        ast.unparse(node)
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.Assign)
        and re.fullmatch(r".*(default_rng|Random|Generator)\([^()]*\)", ast.unparse(node.value))
    ]


def test_no_test_draws_from_a_generator_of_the_whole_file():
    kept = {path.name: found for path in (ROOT / "tests").rglob("*.py")
            if (found := kept_generators(path))}  # fmt: skip

    assert kept == {}
