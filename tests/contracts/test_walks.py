"""The walks through the code: short, numbered, and every file and function on them exists."""

import ast
import re
from pathlib import Path

import pytest
from contracts.plugins import ROOT

WALKS = sorted((ROOT / "docs" / "walks").glob("*.md"))
SOURCE = ROOT / "src" / "difflens"
MOST_HOPS = {"diff": 25}  # of the others 20
HOP = re.compile(r"^\| (\d+) \| `([^`]+)` \| `([^`]+)` \| \S.* \|$", re.MULTILINE)


def hops(path: Path) -> list[tuple[int, str, str]]:
    """Return number, file and function of each hop."""
    text = path.read_text("utf-8")
    return [(int(number), file, function) for number, file, function in HOP.findall(text)]


def functions(path: Path) -> set[str]:
    """Name the functions and classes of a file, and the methods as `Class.method`."""
    body = ast.parse(path.read_text("utf-8")).body
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    names = {each.name for each in body if isinstance(each, kinds)}
    for each in body:
        if isinstance(each, ast.ClassDef):
            names |= {f"{each.name}.{part.name}" for part in each.body if isinstance(part, kinds)}
    return names


def missing(path: Path) -> list[str]:
    """List the hops of a walk whose file or function does not exist."""
    return [
        f"{number}: {file} {function}"
        for number, file, function in hops(path)
        if not (SOURCE / file).is_file() or function not in functions(SOURCE / file)
    ]


def test_there_are_walks():
    assert WALKS


@pytest.mark.parametrize("path", WALKS, ids=lambda path: path.stem)
def test_a_walk_is_short_and_every_file_and_function_on_it_exists(path):
    numbers = [number for number, _, _ in hops(path)]
    rows = re.findall(r"^\| \d+ \|", path.read_text("utf-8"), re.MULTILINE)

    assert missing(path) == []
    assert numbers == list(range(1, len(rows) + 1))
    assert 1 <= len(numbers) <= MOST_HOPS.get(path.stem, 20)


def test_a_hop_that_does_not_exist_is_found(tmp_path):
    page = tmp_path / "planted.md"
    page.write_text(
        "| 1 | `training/story.py` | `monitor` | watches |\n"
        "| 2 | `training/story.py` | `Monitor.fly` | is not there |\n"
        "| 3 | `training/tale.py` | `monitor` | is not there either |\n"
    )

    assert missing(page) == ["2: training/story.py Monitor.fly", "3: training/tale.py monitor"]
