"""`difflens diagnose RUN`: what is wrong with a training run, and what to try."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from . import EXIT_DIFFERENT, EXIT_SAME, EXIT_TROUBLE
from ._options import FilePath
from ._store import emit, policy_option, result_options, view_of

if TYPE_CHECKING:
    from ..records import Policy
    from ..runs import Diagnosed

_FAILING = {"warning": ("warning", "critical"), "critical": ("critical",)}


@click.command(name="diagnose")
@click.argument("run", type=FilePath(), metavar="RUN")
@click.option("--fail-on", type=click.Choice(["warning", "critical"]), default="critical",
              show_default=True, help="From which severity on the exit code is 1.")  # fmt: skip
@policy_option
@result_options("cli", "json", "yaml", "markdown", "html")
def command(run: str, fail_on: str, **options: Any) -> int:
    """Diagnose a training run: a folder the monitor wrote, or a log (CSV, JSONL, TensorBoard).

    Exit code: 0 healthy, 1 a finding at or above --fail-on, 2 trouble, or too little to judge.
    """
    from ..diagnoses import diagnose
    from ..history import read_history

    found = diagnose(read_history(run), _policy(options), run=run)
    emit(_written(found, options), options)
    if any(each.severity in _FAILING[fail_on] for each in found.findings):
        return EXIT_DIFFERENT
    return EXIT_TROUBLE if found.healthy is None else EXIT_SAME


def _written(found: Diagnosed, options: dict[str, Any]) -> str:
    from ..render.training.diagnosis import diagnosis
    from ..render.versions import plain, written

    if options["output"] in ("json", "yaml"):
        return plain(found.to_dict(), options["output"])
    return written(diagnosis(found), options["output"], view_of(options))


def _policy(options: dict[str, Any]) -> Policy:
    from ..records import Policy

    if not options["policy"]:
        return Policy()
    from ..evidence.policy import policy
    from ._policy import known

    return policy(options["policy"], known())
