"""Prints the figures of the tree: `python -m tools.figures [FOLDER] [--list FIGURE]`."""

# ruff: noqa: T201

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from . import house

_FEW = 60  # lines; a smaller file is worth a look at its importers


def main() -> None:
    """Print one line for each figure, or what one figure counts."""
    parser = argparse.ArgumentParser(prog="python -m tools.figures", description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=house.PACKAGE)
    parser.add_argument("--list", choices=sorted(_LISTS), help="print what a figure counts")
    options = parser.parse_args()
    folder = options.folder.resolve()
    if options.list:
        print(*_LISTS[options.list](folder), sep="\n")
        return
    parsed = house.modules(folder)
    entries = house.top_entries()
    rows = {
        f"entries at the top: {' '.join(entries)}": len(entries),
        "Python files": len(parsed),
        "lines": house.lines(parsed),
        f"files under {_FEW} lines": sum(house.lines([each]) < _FEW for each in parsed),
        **{name: len(listed(folder)) for name, listed in _LISTS.items()},
        "fmt: skip": sum(each.text.count("# fmt: skip") for each in parsed),
        "numbers and thresholds set in the diagnoses": sum(map(house.constants, _diagnoses())),
        "lines of the diagnoses": house.lines(_diagnoses()),
    }
    for name, figure in rows.items():
        print(f"{figure:>7,}  {name}")


def _diagnoses() -> list[house.Module]:
    training = house.PACKAGE / "training"
    folders = (training / name for name in ("diagnoses", "detectors", "verdicts"))
    return [each for folder in folders for each in house.modules(folder)]


def _one_importer(folder: Path) -> list[str]:
    counts = house.importers(folder)
    return [each.name for each in house.modules(folder) if counts[each.name] == 1]


def _listed(rule: Callable[[house.Module], object]) -> Callable[[Path], list[str]]:
    return lambda folder: [line for each in house.modules(folder) for line in rule(each)]  # type: ignore[attr-defined]


_LISTS: dict[str, Callable[[Path], list[str]]] = {
    "modules with exactly one importer": _one_importer,
    "docstrings that begin with Give": _listed(house.gives),
    "functions with a banned name": _listed(house.banned_names),
    "references nobody can open": _listed(house.unresolvable),
}

if __name__ == "__main__":
    main()
