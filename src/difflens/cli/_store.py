"""What the commands on versions share: the store, the policy, and how results are shown."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ._options import FilePath, read_policy, with_direction
from ._output import warn

if TYPE_CHECKING:
    from difflens.core.kept import Kept
    from difflens.core.policy import Policy
    from difflens.render.document.document import Document
    from difflens.versions.store.database import Database
    from difflens.versions.story import DifferentialDebugger

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
    """Add the options for how and where a result is written."""

    def add(command: Command) -> Command:
        for option in (
            click.option(
                "--debug", is_flag=True, expose_value=False, help="Show the traceback of an error."
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
            click.option(
                "-v", "--verbose", is_flag=True, help="Show details that most readers do not need."
            ),
            click.option(
                "-o",
                "--output",
                type=click.Choice(outputs),
                default="cli",
                show_default=True,
                help="Write text, a document or data.",
            ),
        ):
            command = option(command)
        return command

    return add


def url_of(options: dict[str, Any]) -> str:
    """Return the store to use: of the option, the environment, the project, or this folder."""
    from difflens.versions.store import DEFAULT_STORE

    named = options["store"] or os.environ.get(VARIABLE)
    if named:
        return named
    from ._project import find_project

    project = find_project()
    return (project.settings.get("store") if project else None) or DEFAULT_STORE


def opened(options: dict[str, Any], *, create: bool = False) -> Database:
    """Open the store; a missing one is created only if `create`."""
    from difflens.versions.store import open_store

    store = open_store(url_of(options), create=create)
    for warning in store.warnings:
        warn(warning)
    return store


@contextmanager
def existing(options: dict[str, Any]) -> Iterator[Database | None]:
    """Open the store that was named, or the one that is there; None if there is none."""
    from difflens.versions.store.connections import place_of

    path = place_of(url_of(options)).path
    if options["store"] is None and path is not None and not path.exists():
        yield None
        return
    with opened(options, create=options["store"] is not None) as store:
        yield store


def show(result: Kept, layout: Callable[[Any], Document], options: dict[str, Any]) -> None:
    """Write a result in the wanted form; its warnings go to stderr."""
    from difflens.render.document.written import rendered

    for warning in getattr(result, "warnings", ()):
        warn(warning)
    emit(rendered(result, layout, options["output"], view_of(options)), options)


def emit(text: str, options: dict[str, Any]) -> None:
    """Write a text to --out, or to stdout."""
    from ._output import emit as write

    write(text, options["out"])


def view_of(options: dict[str, Any]) -> Any:
    """Decide on colour, width and detail."""
    from ._output import view

    return view(
        color="never" if options["no_color"] else options["color"],
        to_file=options["out"] is not None,
        verbose=options["verbose"],
    )


@contextmanager
def debugger(options: dict[str, Any]) -> Iterator[DifferentialDebugger]:
    """Yield a debugger on the chosen store, with the chosen policy."""
    from difflens.versions.story import DifferentialDebugger

    with opened(options) as store:
        yield DifferentialDebugger(store=store, policy=policy_of(options))


def policy_option(command: Command) -> Command:
    """Add `--policy`."""
    return click.option(
        "--policy",
        type=FilePath(),
        metavar="FILE",
        help="Thresholds, directions and margins, TOML; `difflens policy` prints all.",
    )(command)


def policy_of(options: dict[str, Any]) -> Policy:
    """Read the policy that was named; its defaults if none was."""
    return with_direction(read_policy(options["policy"]), options)
