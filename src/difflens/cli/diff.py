"""`difflens diff LEFT RIGHT`: what changed between two models."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from . import EXIT_DIFFERENT, EXIT_SAME
from ._analyses import analysis_flags, chosen, gate_code
from ._evidence import evidence_options, refuse_for_folders
from ._options import Epsilon, FilePath, shared
from ._show import check_output, document_flags, show

if TYPE_CHECKING:
    from ..records import Report

_ALIASES = {"text": "cli", "diffai": "cli"}


def _output(_context: click.Context, _option: click.Parameter, name: str) -> str:
    return _ALIASES.get(name, name)


@click.command(name="diff")
@click.argument("left", type=FilePath())
@click.argument("right", type=FilePath(), required=False)
@click.option("-o", "--output", default="cli", callback=_output, help=(
    "cli (also: text, diffai), json, full-json, yaml, csv, markdown, html."
))  # fmt: skip
@click.option("--stats", is_flag=True, help="Per changed tensor: mean=a->b, std=c->d.")
@click.option("--epsilon", type=Epsilon(0), default=0.0, metavar="X",
              help="Count an element as changed only if it moved by more than X.")  # fmt: skip
@click.option("--path", metavar="TEXT", help="Only tensors whose name contains TEXT.")
@click.option("--ignore-keys-regex", "ignore", metavar="RE",
              help="Leave out tensors whose name RE finds a match in.")  # fmt: skip
@click.option("--match", type=click.Choice(["exact", "auto"]), default="auto", show_default=True,
              help="Pair by exact names, or see through prefixes too.")  # fmt: skip
@click.option("--shape-only", is_flag=True, help="Names, shapes, dtypes: read headers alone.")
@click.option("--verify-conversion", is_flag=True,
              help="Ask only this: is it the same model, in whatever format?")  # fmt: skip
@click.option("--sort-by-change-magnitude", "by_magnitude", is_flag=True,
              help="Largest relative change first.")  # fmt: skip
@click.option("--check", is_flag=True, help="Verify the files and compare nothing.")
@click.option("-r", "--recursive", is_flag=True, help="Compare folders of models, file by file.")
@click.option("-q", "--quiet", is_flag=True, help="Print nothing; the exit code tells.")
@click.option("--brief", is_flag=True, help="Say only whether they differ.")
@click.option("-v", "--verbose", is_flag=True, help="Fold nothing.")
@click.option("--exit-zero", is_flag=True, help="Exit 0 unless there is trouble.")
@click.option("--stream", is_flag=True, hidden=True, help="Accepted: streaming is always on.")
@document_flags
@analysis_flags
@evidence_options
@shared
def command(left: str, right: str | None, **options: Any) -> int:
    """Compare two models tensor by tensor.

    LEFT is before, RIGHT is after: model files, folders that hold a sharded model, or with -r
    folders of models. Exit code: 0 nothing differs, 1 something differs, 2 trouble.
    """
    if options["check"]:
        from .check import check_all

        code = check_all([left, right] if right else [left], **options)
        return EXIT_SAME if options["exit_zero"] and code == EXIT_DIFFERENT else code
    if right is None:
        raise click.UsageError("RIGHT is missing: a diff takes two models")
    if options["verify_conversion"] and options["shape_only"]:
        raise click.UsageError("--verify-conversion reads values: leave --shape-only out")
    check_output(options)
    if options["recursive"]:
        from ._recursive import compare_folders

        refuse_for_folders(options)
        code = compare_folders(left, right, options)
    else:
        from ._compare import compare

        compared = compare(left, right, options)
        show(compared, options)
        code = exit_code(compared, options)
    return EXIT_SAME if options["exit_zero"] and code == EXIT_DIFFERENT else code


def exit_code(report: Report, options: dict[str, Any]) -> int:
    """Give the worst of the gates that were named, or whether anything differs."""
    if chosen(options):
        code = gate_code(report.analyses, options)
        if code is not None:
            return code
    return EXIT_DIFFERENT if report.verdict.differs else EXIT_SAME
