"""The analyses as options of `diff`: a flag each, named after its file."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from . import GATE_CODES

if TYPE_CHECKING:
    from difflens.core.findings import Envelope

Command = TypeVar("Command", bound=Callable[..., Any])

GATES = "Gates, which decide the exit code"
# Sections of the help and nothing else: an analysis that is named here nowhere heads the list.
FAMILIES = {
    "Analyses of what changed": """
        change-summary lineage align task-vectors spectral-analysis similarity-matrix
        quantization-analysis anomaly-detection""",
    "Analyses of training": """
        learning-progress convergence-analysis gradient-analysis learning-rate-analysis
        hyperparameter-impact""",
    "Analyses of representations": """
        embedding-analysis clustering-change attention-analysis attention-pattern-diff
        head-importance""",
    "Analyses of architecture, cost and risk": """
        architecture-comparison param-efficiency-analysis memory-analysis
        inference-speed-estimate performance-impact-estimate risk-assessment""",
    GATES: """
        regression-test alert-on-degradation deployment-readiness""",
}


class _Flag(click.Option):
    """A flag whose help is the summary of its analysis, fetched when somebody reads it."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        from difflens.diffs.analyses import analysis

        self.help = analysis[self.opts[0].removeprefix("--")].summary
        return super().get_help_record(ctx)


def analysis_flags(command: Command) -> Command:
    """Add a flag for every analysis of ours, and two ways to name more."""
    for name in reversed(names()):
        flag = click.option(f"--{name}", _option(name), is_flag=True, cls=_Flag)
        command = flag(command)
    by_name = "Run the analysis of that name, which may come from a plug-in."
    everything = "Run every analysis that has evidence; list what the others need."
    command = click.option("--analysis", "named", multiple=True, metavar="NAME", help=by_name)(
        command
    )
    return click.option("--all-analyses", is_flag=True, help=everything)(command)


def sections() -> dict[str, set[str]]:
    """Return the options of each family of analyses by the titles of their sections."""
    families = {title: set(map(_option, text.split())) for title, text in FAMILIES.items()}
    others = set(map(_option, names())).difference(*families.values())
    return {"Analyses": {"all_analyses", "named", *others}} | families


def _option(name: str) -> str:
    return f"run_{name.replace('-', '_')}"


def names() -> list[str]:
    """List the flags: the files of the room, none of which is imported for that."""
    folder = os.path.join(os.path.dirname(__file__), "..", "diffs", "analyses")  # noqa: PTH118, PTH120
    files = sorted(os.listdir(folder))  # noqa: PTH208  pathlib costs a tenth of the help
    return [
        each[:-3].replace("_", "-") for each in files if each.endswith(".py") and each[0] != "_"
    ]


def chosen(options: dict[str, Any]) -> list[str]:
    """Return the names of the analyses asked for, in the order of their names."""
    if options["all_analyses"]:
        from difflens.diffs.analyses import analysis

        return analysis.names()
    flags = [name for name in names() if options.get(_option(name))]
    return list(dict.fromkeys([*flags, *options["named"]]))


def gate_code(envelopes: Iterable[Envelope], options: dict[str, Any]) -> int | None:
    """Return the worst exit code of the gates that were named; None if there was none.

    A gate is an analysis registered with `gate=`, the field that holds its word: `passed`,
    `failed`, `cannot_tell`, or null if there is no evidence at all.
    """
    from difflens.diffs.analyses import analysis

    if options["all_analyses"]:
        return None
    gates = [
        (each, analysis[each.name].options.get("gate"))
        for each in envelopes
        if each.name != "verify_conversion"
    ]
    return max((GATE_CODES[each.fields[gate]] for each, gate in gates if gate), default=None)
