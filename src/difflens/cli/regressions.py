"""`difflens regressions LEFT RIGHT`: did anything get worse? The exit code gates a pipeline."""

from __future__ import annotations

from typing import Any

import click

from . import EXIT_DIFFERENT, EXIT_SAME, EXIT_TROUBLE
from ._store import debugger, policy_option, result_options, show, store_option

_CODES = {True: EXIT_SAME, False: EXIT_DIFFERENT, None: EXIT_TROUBLE}


@click.command(name="regressions")
@click.argument("left", metavar="LEFT")
@click.argument("right", metavar="RIGHT")
@policy_option
@store_option
@result_options("cli", "json", "yaml", "markdown", "html")
def command(left: str, right: str, **options: Any) -> int:
    """Search for regressions: LEFT is the baseline, RIGHT the current version, both NAME[@V].

    Exit code: 0 passed, 1 something got worse than it may, 2 trouble, or nothing could be judged.
    """
    from ..render.versions.regressions import regressions

    with debugger(options) as asked:
        found = asked.detect_regressions(current_model=right, baseline_model=left)
    show(found, regressions, options)
    return _CODES[found.overall_assessment.passed]
