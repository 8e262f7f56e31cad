"""The analyses as options of `diff`: a flag each, named after its file."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from . import EXIT_DIFFERENT, EXIT_SAME, EXIT_TROUBLE

if TYPE_CHECKING:
    from ..diffs import Diff
    from ..evidences import Evidence
    from ..records import Envelope, Policy

Command = TypeVar("Command", bound=Callable[..., Any])


class _Flag(click.Option):
    """A flag whose help is the summary of its analysis, fetched when somebody reads it."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        from ..analyses import analysis

        self.help = analysis[self.opts[0].removeprefix("--")].summary
        return super().get_help_record(ctx)


def analysis_flags(command: Command) -> Command:
    """Add a flag for every analysis of ours, and two ways to name more."""
    for name in reversed(names()):
        flag = click.option(f"--{name}", f"run_{name.replace('-', '_')}", is_flag=True, cls=_Flag)
        command = flag(command)
    by_name = "Run an analysis by name, one of a plug-in too."
    everything = "Run all that have evidence; list those that do not."
    command = click.option("--analysis", "named", multiple=True, metavar="NAME", help=by_name)(
        command
    )
    return click.option("--all-analyses", is_flag=True, help=everything)(command)


def names() -> list[str]:
    """List the flags: the files of the room, none of which is imported for that."""
    folder = os.path.join(os.path.dirname(os.path.dirname(__file__)), "analyses")  # noqa: PTH118, PTH120
    files = sorted(os.listdir(folder))  # noqa: PTH208  pathlib costs a tenth of the help
    return [
        each[:-3].replace("_", "-") for each in files if each.endswith(".py") and each[0] != "_"
    ]


def chosen(options: dict[str, Any]) -> list[str]:
    """Give the names of the analyses asked for, in the order of their names."""
    if options["all_analyses"]:
        from ..analyses import analysis

        return analysis.names()
    flags = [name for name in names() if options.get(f"run_{name.replace('-', '_')}")]
    return list(dict.fromkeys([*flags, *options["named"]]))


def answers(
    found: Diff, wanted: Iterable[str], evidence: Evidence, policy: Policy
) -> list[Envelope]:
    """Ask each; what one of a stranger's raises is its answer, not the end of the others."""
    from ..analyses import analyse

    return [analyse(name, found, evidence, policy) for name in wanted]


def gate_code(envelopes: Iterable[Envelope], options: dict[str, Any]) -> int | None:
    """Give the worst exit code of the gates that were named; None where there was none.

    A gate is an analysis registered with `gate=`, a function from its fields to True, False or
    None: passed, failed, or not enough evidence to say.
    """
    from ..analyses import analysis

    if options["all_analyses"]:
        return None
    codes = {True: EXIT_SAME, False: EXIT_DIFFERENT, None: EXIT_TROUBLE}
    gates = [(each, analysis[each.name].options.get("gate")) for each in envelopes
             if each.name != "verify_conversion"]  # fmt: skip
    return max((codes[gate(each.fields)] for each, gate in gates if gate), default=None)
