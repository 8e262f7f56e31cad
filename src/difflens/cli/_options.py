"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])


def shared(command: Command) -> Command:
    """Add what every command on files takes."""
    for option in (
        click.option("--debug", is_flag=True, expose_value=False, help="Show tracebacks."),
        click.option(
            "--limit",
            "limits",
            multiple=True,
            metavar="NAME=VALUE",
            help="Raise a limit (docs/security).",
        ),
        click.option("--threads", type=click.IntRange(1), help="Threads; default: all cores."),
        click.option(
            "--format", metavar="NAME", help="Force a reader; see `difflens list formats`."
        ),
        click.option("--out", metavar="FILE", help="Write the result there instead of stdout."),
        click.option("--no-color", is_flag=True, help="The same as --color never."),
        click.option(
            "--color",
            type=click.Choice(["auto", "always", "never"]),
            default="auto",
            show_default=True,
            help="When to colour; NO_COLOR and FORCE_COLOR are heard.",
        ),
    ):
        command = option(command)
    return command


def limits_of(texts: tuple[str, ...]) -> dict[str, int] | None:
    """Read `NAME=VALUE` limits."""
    if not texts:
        return None
    from ..sources.limits import parse

    return parse(texts)
