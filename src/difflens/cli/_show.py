"""Shows a report as asked: as text, as a document, as a page beside the text."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from ..records import Report

Command = TypeVar("Command", bound=Callable[..., Any])

PAGE = "difflens-report.html"


def document_flags(command: Command) -> Command:
    """Add the options that choose how a report is written."""
    for option in (
        click.option("--review-friendly", "review", is_flag=True,
                     help="At most ten findings, most important first."),
        click.option("--include-charts", "charts", is_flag=True,
                     help="Interactive charts in the page (needs the extra `charts`)."),
        click.option("--generate-report", is_flag=True,
                     help=f"Also write one self-contained page: --out, or {PAGE}."),
        click.option("--markdown-output", "markdown", is_flag=True,
                     help="The same as -o markdown."),
    ):  # fmt: skip
        command = option(command)
    return command


def check_output(options: dict[str, Any]) -> None:
    """Settle which renderer is meant, before anything is read; an unknown one is told now."""
    from ..render import renderer

    if options["markdown"]:
        if options["output"] not in {"cli", "markdown"}:
            raise click.UsageError(f"--markdown-output and -o {options['output']}: name one")
        options["output"] = "markdown"
    if options["charts"] and options["output"] != "html":
        options["generate_report"] = True
    if options["charts"]:
        from importlib.util import find_spec

        from ..errors import MissingExtra

        if find_spec("plotly") is None:
            raise MissingExtra("--include-charts", "charts")
    renderer[options["output"]]


def show(report: Report, options: dict[str, Any]) -> None:
    """Render a report as asked, and write it where asked."""
    from ._output import emit

    if options["generate_report"] and options["output"] != "html":
        _page(report, options)
        options = options | {"out": None}
    if not options["quiet"]:
        emit(rendered(report, options), options["out"])


def _page(report: Report, options: dict[str, Any]) -> None:
    from ._output import emit

    where = options["out"] or PAGE
    emit(rendered(report, options | {"output": "html", "brief": False}), where)
    if not options["quiet"]:
        sys.stderr.write(f"difflens: the report is in {where}\n")


def rendered(report: Report, options: dict[str, Any]) -> str:
    """Render a report as asked."""
    from ..escape import for_terminal
    from ..render import renderer
    from ._output import view

    if options["brief"]:
        names = f"{for_terminal(report.left.path)} and {for_terminal(report.right.path)}"
        return f"Files {names} differ\n" if report.verdict.differs else ""
    how = view(
        color="never" if options["no_color"] else options["color"],
        stats=options["stats"],
        verbose=options["verbose"],
        to_file=options["out"] is not None,
        review=options["review"],
        charts=options["charts"],
    )
    return renderer[options["output"]].plugin(report, how)  # type: ignore[no-any-return]
