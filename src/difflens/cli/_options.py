"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

_MOST_THREADS = 256  # more of them only wait for each other; the result is the same

Command = TypeVar("Command", bound=Callable[..., Any])


class FilePath(click.types.StringParamType):
    """A path as the user typed it, which the shell completes; the sources say what is wrong."""

    name = "path"

    def shell_complete(
        self,
        ctx: click.Context,  # noqa: ARG002  click's own
        param: click.Parameter,  # noqa: ARG002
        incomplete: str,
    ) -> list[CompletionItem]:
        """Leave it to the shell."""
        from click.shell_completion import CompletionItem

        return [CompletionItem(incomplete, type="file")]


class Epsilon(click.FloatRange):
    """A distance: not negative, and a number."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Refuse what compares with nothing: NaN, and infinity, within which all would be."""
        number = super().convert(value, param, ctx)
        if not isfinite(number):
            self.fail(f"{value} is not a finite number", param, ctx)
        return number


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
        click.option(
            "--threads",
            type=click.IntRange(1, _MOST_THREADS, clamp=True),
            help="Threads; default: all cores.",
        ),
        click.option(
            "--format", metavar="NAME", help="Force a reader; see `difflens list formats`."
        ),
        click.option(
            "--out",
            type=FilePath(),
            metavar="FILE",
            help="Write the result there instead of stdout.",
        ),
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
