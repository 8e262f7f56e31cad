"""`difflens regressions LEFT RIGHT`: did anything get worse? The exit code gates a pipeline."""

from __future__ import annotations

from typing import Any

import click

from . import GATE_CODES
from ._options import direction_option
from ._store import debugger, policy_option, result_options, show, store_option


@click.command(name="regressions")
@click.argument("left", metavar="LEFT")
@click.argument("right", metavar="RIGHT")
@policy_option
@direction_option
@store_option
@result_options("cli", "json", "yaml", "markdown", "html")
def command(left: str, right: str, **options: Any) -> int:
    """Search for regressions: LEFT is the baseline, RIGHT the current version, both NAME[@V].

    Exit code: 0 passed, 1 failed or cannot tell, 2 trouble, such as no evidence at all.
    """
    from difflens.render.versions.regressions import regressions

    with debugger(options) as asked:
        found = asked.detect_regressions(current_model=right, baseline_model=left)
    show(found, regressions, options)
    return GATE_CODES[found.overall_assessment.verdict]
