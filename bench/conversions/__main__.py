"""`python -m bench.conversions`: the table of right and wrong conversions, in Markdown.

Every wrong file is checked to compute something else before difflens is asked about it. The exit
code is 1 where a right conversion is not the same, or a wrong one is.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from .cells import NOT_APPLICABLE, SKIPPED, Bench, Cell
from .exports import EXPORTERS
from .networks import MAKERS, STATES


def main(arguments: list[str] | None = None) -> int:
    """Make the cells, print the table; 1 where an answer was wrong."""
    options = _options(arguments)
    with tempfile.TemporaryDirectory() as made:
        folder = options.keep or Path(made)
        cells = []
        for model in options.only or MAKERS:
            for state in options.state or STATES:
                for exporter in options.exporter or EXPORTERS:
                    cells += _measured(model, state, exporter, folder, options.kind)
    print(table(cells))
    print(f"\n{summary(cells)}")
    for cell in cells:
        if cell.passed is False:
            print(f"\n- {cell.model} {cell.state} {cell.exporter}, {cell.kind}: {cell.last[:300]}")
    return int(any(cell.passed is False for cell in cells))


def _measured(model: str, state: str, exporter: str, folder: Path, kinds: list[str]) -> list[Cell]:
    begun = time.perf_counter()
    cells = list(Bench(model, state, exporter, folder).cells(kinds))
    wrong = sum(cell.passed is False for cell in cells)
    seconds = time.perf_counter() - begun
    print(
        f"{model} {state} {exporter}: {wrong} wrong of {len(cells)}, {seconds:.0f} s",
        file=sys.stderr,
    )
    return cells


def table(cells: list[Cell]) -> str:
    """Print a row for each export and a column for each thing done to it."""
    kinds = list(dict.fromkeys(cell.kind for cell in cells))
    rows: dict[tuple[str, ...], dict[str, Cell]] = {}
    for cell in cells:
        row = rows.setdefault(cell[:3], {})
        if cell.kind not in row or cell.passed is False:  # of several places the worst is shown
            row[cell.kind] = cell
    lines = [f"| model | state | exporter | {' | '.join(kinds)} |", "|---" * (len(kinds) + 3) + "|"]
    for key, row in rows.items():
        words = (_word(row[kind]) if kind in row else "" for kind in kinds)
        lines.append(f"| {' | '.join((*key, *words))} |")
    return "\n".join(lines)


def _word(cell: Cell) -> str:
    if cell.note:
        return {SKIPPED: "no change", NOT_APPLICABLE: "-"}.get(cell.note, cell.note)
    said = cell.last.partition(":")[0]
    short = {
        "same model": "same", "same within storage rounding": "rounded", "not the same": "not same"
    }.get(said, said[:30])  # fmt: skip
    return short if cell.passed else f"**{short}**"


def summary(cells: list[Cell]) -> str:
    """Count the answers."""
    rights = [cell for cell in cells if cell.is_right and cell.passed is not None]
    wrongs = [cell for cell in cells if not cell.is_right and cell.passed is not None]
    return (
        f"right: {sum(map(bool, (cell.passed for cell in rights)))} of {len(rights)} the same; "
        f"wrong: {sum(map(bool, (cell.passed for cell in wrongs)))} of {len(wrongs)} not the same; "
        f"{sum(cell.note == SKIPPED for cell in cells)} faults changed nothing, "
        f"{sum(cell.note == NOT_APPLICABLE for cell in cells)} do not apply"
    )


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench.conversions", description=__doc__)
    add = parser.add_argument
    add("--only", action="append", choices=list(MAKERS), help="this model")
    add("--state", action="append", choices=STATES)
    add("--exporter", action="append", choices=EXPORTERS)
    add("--kind", action="append", default=[], help="a column, beside right")
    add("--keep", type=Path, metavar="FOLDER", help="the files of wrong answers stay here")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
