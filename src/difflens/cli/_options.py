"""Options that several commands share."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from math import isfinite
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from difflens.core.policy import Policy
    from difflens.diffs.evidence.policy import Known

MOST_THREADS = 256  # more of them only wait for each other; the result is the same

Command = TypeVar("Command", bound=Callable[..., Any])


class FilePath(click.types.StringParamType):
    """A path as the user typed it, which the shell completes; the sources say what is wrong."""

    name = "path"
    has_addresses = False

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Refuse an address such as `s3://bucket/key` where only a path will do."""
        path = super().convert(value, param, ctx)
        is_read = isinstance(param, click.Argument) and not self.has_addresses
        if is_read and "://" in path and not os.path.lexists(path):
            from difflens.core.addresses import address_error

            error = address_error(path)
            if error:
                raise error
        return path

    def shell_complete(
        self,
        ctx: click.Context,  # noqa: ARG002  click's own
        param: click.Parameter,  # noqa: ARG002
        incomplete: str,
    ) -> list[CompletionItem]:
        """Leave it to the shell."""
        from click.shell_completion import CompletionItem

        return [CompletionItem(incomplete, type="file")]


class FileLocation(FilePath):
    """A path, or an address such as `s3://bucket/key`, `https://...` or `hf://owner/name`."""

    has_addresses = True


class Epsilon(click.FloatRange):
    """A distance: not negative, and a number."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Refuse what compares with nothing: NaN, and infinity, within which all would be."""
        number = super().convert(value, param, ctx)
        if not isfinite(number):
            self.fail(f"{value} is not a finite number", param, ctx)
        return number


class Threads(click.IntRange):
    """A number of threads: more than the most are the most."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Refuse none at all."""
        return min(super().convert(value, param, ctx), MOST_THREADS)


class Sectioned(click.Command):
    """A command whose help lists its options in sections, and ends with examples."""

    def __init__(
        self, *, sections: Mapping[str, Collection[str]], examples: Sequence[str], **attributes: Any
    ) -> None:
        """Map the title of each section to the names of its options."""
        super().__init__(**attributes)
        self.sections, self.examples = sections, examples

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write one section after another; options that are in none come last."""
        records: dict[str, list[tuple[str, str]]] = {title: [] for title in self.sections}
        for option in self.get_params(ctx):
            record = option.get_help_record(ctx)
            if isinstance(option, click.Option) and record:
                titles = (title for title, names in self.sections.items() if option.name in names)
                records.setdefault(next(titles, "Other options"), []).append(record)
        for title, lines in records.items():
            if lines:
                with formatter.section(title):
                    formatter.write_dl(lines, col_max=24)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write the examples as they are typed."""
        with formatter.section("Examples"):
            for example in self.examples:
                formatter.write(f"{'':{formatter.current_indent}}{example}\n")


def allow_http(command: Command) -> Command:
    """Add what lets `http://` addresses be read."""
    return click.option(
        "--allow-http",
        is_flag=True,
        expose_value=False,
        callback=_allow_http,
        help="Read http:// addresses too, though nothing protects them on their way.",
    )(command)


def _allow_http(_context: click.Context, _option: click.Parameter, is_allowed: bool) -> None:
    if is_allowed:
        from difflens.core.addresses import ALLOW_HTTP

        os.environ[ALLOW_HTTP] = "1"


def shared(command: Command) -> Command:
    """Add what every command on files takes."""
    command = allow_http(command)
    for option in (
        click.option(
            "--debug", is_flag=True, expose_value=False, help="Show the traceback of an error."
        ),
        click.option(
            "--limit",
            "limits",
            multiple=True,
            metavar="NAME=VALUE",
            help="Raise a limit on what files may hold; docs/security.md lists them.",
        ),
        click.option(
            "--threads",
            type=Threads(1),
            metavar="N",
            help=f"Use N threads, at most {MOST_THREADS}; the default is one for each core.",
        ),
        click.option(
            "--format",
            metavar="NAME",
            help="Read as this format; `difflens list formats` names all.",
        ),
        click.option(
            "--out",
            type=FilePath(),
            metavar="FILE",
            help="Write the result to FILE instead of stdout.",
        ),
        click.option("--no-color", is_flag=True, help="Use no colour, as --color never does."),
        click.option(
            "--color",
            type=click.Choice(["auto", "always", "never"]),
            default="auto",
            show_default=True,
            help="Use colour; auto follows the terminal, NO_COLOR and FORCE_COLOR.",
        ),
    ):
        command = option(command)
    return command


def limits_of(texts: tuple[str, ...]) -> dict[str, int] | None:
    """Read `NAME=VALUE` limits."""
    if not texts:
        return None
    from difflens.core.limits import parse

    return parse(texts)


def direction_option(command: Command) -> Command:
    """Add the direction of metrics whose names do not say it."""
    return click.option(
        "--lower-is-better/--higher-is-better",
        "is_lower",
        default=None,
        help="Direction of `score` and of metrics with other names; a policy overrides it.",
    )(command)


def with_direction(policy: Policy, options: dict[str, Any]) -> Policy:
    """Put the direction that was named on the command line beside the policy."""
    from msgspec.structs import replace

    if options.get("is_lower") is None:
        return policy
    return replace(policy, direction="lower" if options["is_lower"] else "higher")


def read_policy(path: str | None, limits: dict[str, int] | None = None) -> Policy:
    """Read a policy; its defaults if there is no file."""
    from difflens.core.policy import Policy
    from difflens.diffs.evidence.policy import policy

    return policy(path, known(), limits) if path else Policy()


def known() -> Known:
    """Gather what a policy may set: thresholds of analyses, diagnoses and regressions."""
    from difflens.diffs.analyses import analysis
    from difflens.diffs.evidence.policy import Known
    from difflens.training.diagnoses import diagnosis
    from difflens.versions.verdicts import SECTION, THRESHOLDS

    return Known.of((*analysis, *diagnosis)).also(SECTION, THRESHOLDS)
