"""`difflens check FILE...`: is it complete, safe and finite?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from . import EXIT_DIFFERENT, EXIT_SAME, EXIT_TROUBLE
from ._options import FileLocation, limits_of, shared

if TYPE_CHECKING:
    from difflens.core.records import Inspected


@click.command(name="check")
@click.argument("files", type=FileLocation(), nargs=-1, required=True, metavar="FILE...")
@click.option("-q", "--quiet", is_flag=True, help="Print nothing; the exit code is the answer.")
@click.option(
    "-o", "--output", type=click.Choice(["cli", "json"]), default="cli", help="Write text or JSON."
)
@shared
def command(files: tuple[str, ...], **options: Any) -> int:
    """Read every byte of models: are they complete, safe to open, and finite?

    FILE is a path, or an address such as s3://bucket/model or hf://owner/name.
    Exit code: 0 yes, 1 NaN, infinities or unsafe objects were found, 2 unreadable or damaged.
    """
    return check_all(list(files), **options)


def check_all(files: list[str], **options: Any) -> int:
    """Check one file after another; the worst of them decides the exit code."""
    from difflens.core.errors import DifflensError

    from . import _say
    from ._output import emit

    checked: list[Inspected] = []
    code = EXIT_SAME
    for path in files:
        try:
            result = _check(path, options)
        except DifflensError as error:
            if len(files) == 1:
                raise
            _say(error)
            code = EXIT_TROUBLE
        else:
            checked.append(result)
            code = max(code, EXIT_DIFFERENT if result.nonfinite or result.refused else EXIT_SAME)
    if not options["quiet"] and checked:
        emit(_summary(checked, options), options["out"])
    return code


def _check(path: str, options: dict[str, Any]) -> Inspected:
    from difflens.diffs.inspection import inspect

    from ._output import warn
    from ._progress import progress_bar

    with progress_bar() as advance:
        result = inspect(
            path,
            statistics=True,
            format=options["format"],
            limits=limits_of(options["limits"]),
            threads=options["threads"],
            progress=advance,
        )
    for warning in result.warnings:
        warn(warning)
    return result


def _summary(checked: list[Inspected], options: dict[str, Any]) -> str:
    from difflens.render.report.inventory import checked_json, checked_text

    return checked_json(checked) if options["output"] == "json" else checked_text(checked)
