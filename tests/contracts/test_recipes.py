"""`make new` for every kind: the rules hold at once, and hold again without the new files."""

import filecmp
import re
import shutil
from pathlib import Path

import pytest
from contracts.plugins import ROOT, copy_house, load, run

new = load(ROOT / "docs" / "new.py", "new")
MADE = {
    "format": "big-blob",
    "analysis": "odd_ones",
    "renderer": "wide",
    "diagnosis": "cold-start",
    "command": "weigh-all",
}


def make(house: Path, kind: str, name: str) -> list[Path]:
    done = run("docs/new.py", f"{kind}={name}", cwd=house)
    assert done.returncode == 0, done.stdout
    return [house / line for line in done.stdout.split()]


def succeed(house: Path, *command: str) -> str:
    done = run(*command, cwd=house, path=house / "src")
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


CACHES = ["__pycache__", ".hypothesis", ".mypy_cache", ".ruff_cache"]


def differing(left: Path, right: Path) -> list[str]:
    """List the files that only one of two folders has, or that differ."""
    compared = filecmp.dircmp(left, right, ignore=[*CACHES, "tests"])
    own = [*compared.left_only, *compared.right_only, *compared.diff_files]
    inner = [line for name in compared.common_dirs for line in differing(left / name, right / name)]
    return [*(str(right / name) for name in own), *inner]


@pytest.mark.parametrize("word", new.RECIPES.values())
def test_a_recipe_is_four_new_files(word):
    files = new.recipe(word)

    assert len(files) == 4
    assert [path for path in files if (ROOT / path).exists()] == []


# The pages that list plug-ins; the others are executed here in the slow lane alone.
LISTS = re.compile(
    r"<!-- (files|fragments|thresholds|run: difflens ([a-z-]+ )?(--help|list|policy))"
)
LANES = [
    pytest.param("not slow and not long", LISTS, marks=pytest.mark.long, id="ci"),
    pytest.param("not slow", re.compile(""), marks=pytest.mark.slow, id="full"),
]


def pages(house: Path, which: re.Pattern[str]) -> list[str]:
    """List the pages that have such a part."""
    every = [*house.glob("*.md"), *(house / "docs").rglob("*.md")]
    names = {str(path.relative_to(house)) for path in every if which.search(path.read_text())}
    return sorted(names - {"CONTRIBUTING.md"})


@pytest.mark.parametrize(("lane", "which"), LANES)
def test_what_make_new_writes_passes_every_rule_and_can_be_taken_out_again(tmp_path, lane, which):
    """No file is edited by hand: `make docs` writes the lists that name all plug-ins."""
    before, house = copy_house(tmp_path / "before"), copy_house(tmp_path / "house")
    if (known := ROOT / ".mypy_cache").exists():
        shutil.copytree(known, house / known.name)
    made = [path for kind, name in MADE.items() for path in make(house, kind, name)]
    changed = succeed(house, "docs/update.py", *pages(house, which)).split()
    sources = [str(each) for each in made if each.is_relative_to(house / "src")]
    tests = [str(each) for each in made if each.is_relative_to(house / "tests")]

    assert len(made) == 4 * len(MADE)
    succeed(house, "-m", "ruff", "format", "--check", ".")
    succeed(house, "-m", "ruff", "check", ".")
    succeed(house, "-m", "mypy", *sources)
    output = succeed(
        house,
        *("-m", "pytest", "-q", "-n", "auto", "-p", "no:cacheprovider", "tests/contracts"),
        *("tests/training/diagnoses/test_every_diagnosis.py", *tests),
        *("--ignore=tests/contracts/test_recipes.py", "-m", lane),
    )
    assert " passed" in output
    assert {
        f"- {(house / f'changelog.d/{each}').read_text().strip()}" for each in fragments(made)
    } <= set((house / "CHANGELOG.md").read_text().splitlines())

    for path in made:
        path.unlink()
    written = {str(each.relative_to(house)) for each in made}
    succeed(house, "docs/update.py", *(each for each in changed if each not in written))
    assert differing(before, house) == []


def fragments(made: list[Path]) -> list[str]:
    return [each.name for each in made if each.parent.name == "changelog.d"]


def test_make_new_overwrites_nothing(tmp_path):
    house = copy_house(tmp_path)
    make(house, "renderer", "wide")

    done = run("docs/new.py", "renderer=wide", cwd=house)

    assert done.returncode == 2
    assert done.stdout.startswith("there already: src/difflens/render/diffs/wide.py")


@pytest.mark.parametrize("asked", ["", "renderer", "renderer=", "renderer=../x", "flavour=mint"])
def test_make_new_says_what_it_takes(asked):
    done = run("docs/new.py", *filter(None, [asked]), cwd=ROOT)

    assert done.returncode == 2
    assert "format, analysis, renderer, diagnosis, command" in done.stdout
