"""`diff -r`: two folders of models, compared file by file by their relative names."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import click

from . import EXIT_DIFFERENT, EXIT_SAME, EXIT_TROUBLE, _say
from ._compare import compare
from ._output import emit
from ._show import rendered
from .diff import exit_code


def compare_folders(left: str, right: str, options: dict[str, Any]) -> int:
    """Compare every model both folders hold, and name those only one holds."""
    from ..errors import ModelError, UnknownFormat
    from ..sources.models import model_files

    if options["output"] in {"html", "markdown"} or options["generate_report"]:
        raise click.UsageError("a report is about one pair: name the two models")
    names = [set(model_files(left)), set(model_files(right))]
    if not names[0] | names[1]:
        raise UnknownFormat(left, f"neither it nor {right} holds a model")
    code = EXIT_SAME
    parts: dict[str, Any] = {}
    for name in sorted(names[0] | names[1]):
        if not (name in names[0] and name in names[1]):
            parts[name] = None if name in names[0] else False
            code = max(code, EXIT_DIFFERENT)
            continue
        try:
            report = compare(str(Path(left) / name), str(Path(right) / name), options)
        except ModelError as error:  # the others can still be compared; the exit code tells
            _say(error)
            code = EXIT_TROUBLE
        else:
            code = max(code, exit_code(report, options))
            parts[name] = rendered(report, options)
    if not options["quiet"] and parts:
        emit(_joined(left, right, parts, options), options["out"])
    return code


def _joined(left: str, right: str, parts: dict[str, Any], options: dict[str, Any]) -> str:
    """Put the models' results together: text after text, or one document of them all."""
    output = options["output"]
    if options["brief"] or output == "cli":
        return _text(left, right, parts, brief=options["brief"])
    if output == "csv":
        return _csv(parts)
    if output == "yaml":
        import yaml

        whole = {name: _or_lone(text, name, yaml.safe_load) for name, text in parts.items()}
        return yaml.safe_dump(whole, sort_keys=False)
    whole = {name: _or_lone(text, name, json.loads) for name, text in parts.items()}
    return json.dumps(whole, indent=1).replace("\x7f", "\\u007f")


def _or_lone(text: Any, name: str, parse: Any) -> Any:
    if isinstance(text, str):
        return parse(text)
    return [{"ModelRemoved" if text is None else "ModelAdded": [name]}]


def _text(left: str, right: str, parts: dict[str, Any], *, brief: bool) -> str:
    from ..escape import for_terminal

    said = []
    for name, text in parts.items():
        shown = for_terminal(name)
        if isinstance(text, str):
            said.append(text if brief else f"== {shown}\n{text}")
        else:
            said.append(f"Only in {for_terminal(left if text is None else right)}: {shown}\n")
    return ("" if brief else "\n").join(said)


def _csv(parts: dict[str, Any]) -> str:
    from ..escape import for_csv
    from ..render.csv import COLUMNS
    from ..render.rows import FIGURES

    out = io.StringIO()
    tables = {
        name: list(csv.DictReader(io.StringIO(text, newline="")))
        if isinstance(text, str)
        else [{"kind": "model removed" if text is None else "model added"}]
        for name, text in parts.items()
    }
    found = [key for rows in tables.values() for row in rows for key in row]
    # Two models may have been measured by different measures: every column once, ours first.
    columns = dict.fromkeys(["file", *COLUMNS, *FIGURES, *found])
    writer = csv.DictWriter(out, list(columns), restval="", lineterminator="\n")
    writer.writeheader()
    for name, rows in tables.items():
        writer.writerows({"file": for_csv(name), **row} for row in rows)
    return out.getvalue()
