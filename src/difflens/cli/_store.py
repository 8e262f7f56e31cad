"""What every command on versions shares: where the store is, and how results are shown."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ._options import FilePath

if TYPE_CHECKING:
    from ..debugger import DifferentialDebugger
    from ..kept import Kept
    from ..records import Policy
    from ..render.versions.document import Document
    from ..store.database import Database

Command = TypeVar("Command", bound=Callable[..., Any])

VARIABLE = "DIFFLENS_STORE"


def store_option(command: Command) -> Command:
    """Add `--store`."""
    return click.option(
        "--store",
        metavar="URL",
        help=f"Where snapshots are kept: a file, or postgresql://...; default: {VARIABLE}, "
        "then .difflens/store.db here.",
    )(command)


def result_options(*outputs: str) -> Callable[[Command], Command]:
    """Add how a result is written, and where to."""

    def add(command: Command) -> Command:
        for option in (
            click.option("--debug", is_flag=True, expose_value=False, help="Show tracebacks."),
            click.option("--out", type=FilePath(), metavar="FILE",
                         help="Write the result there instead of stdout."),
            click.option("--no-color", is_flag=True, help="The same as --color never."),
            click.option("--color", type=click.Choice(["auto", "always", "never"]),
                         default="auto", show_default=True,
                         help="When to colour; NO_COLOR and FORCE_COLOR are heard."),
            click.option("-v", "--verbose", is_flag=True, help="Tell what only few need."),
            click.option("-o", "--output", type=click.Choice(outputs), default="cli",
                         show_default=True),
        ):  # fmt: skip
            command = option(command)
        return command

    return add


def url_of(options: dict[str, Any]) -> str:
    """Say which store is meant: the option, the environment, or the one in this folder."""
    from ..store import DEFAULT_STORE

    return options["store"] or os.environ.get(VARIABLE) or DEFAULT_STORE


def opened(options: dict[str, Any], *, create: bool = False) -> Database:
    """Open the store; one that is not there is made only where something is to be kept."""
    from ..store import open_store

    store = open_store(url_of(options), create=create)
    for warning in store.warnings:
        warn(warning)
    return store


@contextmanager
def existing(options: dict[str, Any]) -> Iterator[Database | None]:
    """Open the store that was named, or the one that is there; None where there is none."""
    from ..store.places import place_of

    path = place_of(url_of(options)).path
    if options["store"] is None and path is not None and not path.exists():
        yield None
        return
    with opened(options, create=options["store"] is not None) as store:
        yield store


def warn(text: str) -> None:
    """Tell a warning on stderr."""
    from ..escape import for_terminal

    sys.stderr.write(f"difflens: warning: {for_terminal(text, 1000)}\n")


def show(result: Kept, layout: Callable[[Any], Document], options: dict[str, Any]) -> None:
    """Write a result as asked; its warnings go to stderr, whatever the output."""
    from ..render.versions import rendered

    for warning in getattr(result, "warnings", ()):
        warn(warning)
    emit(rendered(result, layout, options["output"], view_of(options)), options)


def emit(text: str, options: dict[str, Any]) -> None:
    """Write a text where asked."""
    from ._output import emit as write

    write(text, options["out"])


def view_of(options: dict[str, Any]) -> Any:
    """Decide how to show."""
    from ._output import view

    return view(
        color="never" if options["no_color"] else options["color"],
        to_file=options["out"] is not None,
        verbose=options["verbose"],
    )


@contextmanager
def debugger(options: dict[str, Any]) -> Iterator[DifferentialDebugger]:
    """Give a debugger on the store that is meant, judging by the policy that was named."""
    from ..debugger import DifferentialDebugger

    with opened(options) as store:
        yield DifferentialDebugger(store=store, policy=policy_of(options))


def policy_option(command: Command) -> Command:
    """Add `--policy`."""
    return click.option(
        "--policy",
        type=FilePath(),
        metavar="FILE",
        help="TOML: directions, margins and limits of metrics; `difflens policy` prints all.",
    )(command)


def policy_of(options: dict[str, Any]) -> Policy:
    """Read the policy that was named; its defaults where none was."""
    from ..records import Policy

    if not options["policy"]:
        return Policy()
    from ..evidence.policy import policy
    from ._policy import known

    return policy(options["policy"], known())
