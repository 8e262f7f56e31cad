"""`difflens diagnose RUN`: what is wrong with a training run, and what to try."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from . import EXIT_DIFFERENT, EXIT_SAME, EXIT_TROUBLE
from ._options import FilePath, read_policy
from ._store import emit, policy_option, result_options, view_of

if TYPE_CHECKING:
    from difflens.training.history.history import History
    from difflens.training.records.runs import Diagnosed

_FAILING = {"warning": ("warning", "critical"), "critical": ("critical",)}


@click.command(name="diagnose")
@click.argument("run", type=FilePath(), metavar="RUN")
@click.option(
    "--fail-on",
    type=click.Choice(["warning", "critical"]),
    default="critical",
    show_default=True,
    help="Exit with 1 from this severity on.",
)
@policy_option
@result_options("cli", "json", "yaml", "markdown", "html")
def command(run: str, fail_on: str, **options: Any) -> int:
    """Diagnose a training run: a folder that the monitor wrote, or a log (CSV, JSONL, TensorBoard).

    Exit code: 0 no finding at or above --fail-on, 1 such a finding, 2 trouble or too little to
    judge.
    """
    from difflens.training.diagnoses import diagnose
    from difflens.training.history import read_history

    history = read_history(run)
    found = diagnose(history, read_policy(options["policy"]), run=run)
    emit(_written(found, history, options), options)
    if any(each.severity in _FAILING[fail_on] for each in found.findings):
        return EXIT_DIFFERENT
    return EXIT_TROUBLE if found.healthy is None else EXIT_SAME


def _written(found: Diagnosed, history: History, options: dict[str, Any]) -> str:
    from difflens.render.document.written import as_text, written
    from difflens.render.training.diagnosis import diagnosis, diagnosis_page

    if options["output"] in ("json", "yaml"):
        return as_text(found.to_dict(), options["output"])
    if options["output"] == "html":
        from difflens.render.training.pictures import MOST_COLUMNS, MOST_LAYERS
        from difflens.training.flow.run import curves_of

        curves = curves_of(history, columns=MOST_COLUMNS, rows=MOST_LAYERS)
        return written(diagnosis_page(found, curves), "html", view_of(options))
    return written(diagnosis(found), options["output"], view_of(options))
