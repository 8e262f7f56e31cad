"""`difflens git`: lets git show and guard models: `git diff`, `git log -p`, `git difftool`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from . import EXIT_SAME

Command = TypeVar("Command", bound=Callable[..., Any])


def _words(count: int = -1) -> Callable[[Command], Command]:
    """Take the words of git, so many of them: of a driver, git knows what they are."""
    return click.argument("words", nargs=count, required=True, type=click.UNPROCESSED)


@click.group(name="git")
def command() -> None:
    """Let git show what changed in models, and refuse to merge them line by line."""


@command.command(name="install")
@click.option("--global", "scope", flag_value="global", help="For every repository of this user.")
@click.option(
    "--local", "scope", flag_value="local", default=True, help="For this repository; the default."
)
@click.option("--uninstall", is_flag=True, help="Take out what was set up, and nothing else.")
@click.option("--debug", is_flag=True, expose_value=False, help="Show the traceback of an error.")
def install(scope: str, uninstall: bool) -> None:
    """Set up git for every model ending that a reader knows.

    Sets up diff, log -p, difftool and merge.

    It writes four sections of git's configuration, and a block at the beginning of the attributes:
    .git/info/attributes, or with --global the file that core.attributesFile names.
    """
    from ._git_setup import set_up, take_out

    for line in take_out(scope) if uninstall else set_up(scope):
        click.echo(line)


def _through(name: str, text: str) -> None:
    """Add a command of git itself, with what shows models best."""

    @command.command(
        name=name,
        help=f"{text}, models of Git LFS read where they lie. All words go to git.",
        short_help=f"{text}.",
        context_settings={"ignore_unknown_options": True},
        add_help_option=False,
    )
    @click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="[WORDS]...")
    def run(words: tuple[str, ...]) -> None:
        import os

        from difflens.core.errors import GitError

        # The pointers are followed by us: git-lfs would copy every byte through git's memory.
        settings = os.environ | {"GIT_LFS_SKIP_SMUDGE": "1"}
        try:
            os.execvpe("git", ["git", name, "--ext-diff", *words], settings)  # noqa: S606, S607
        except FileNotFoundError as error:
            raise GitError("git", "it is not installed") from error


_through("diff", "Run `git diff`")
_through("show", "Run `git show` with summaries instead of lines per tensor")
_through("log", "Run `git log`, with -p with summaries instead of lines per tensor")


@command.command(name="diff-driver", hidden=True)
@_words()
def diff_driver(words: tuple[str, ...]) -> int:
    """Show the change of one path; git calls this, and wants 0 whatever there is to show."""
    from ._git_drivers import show_change

    show_change(words)
    return EXIT_SAME


@command.command(name="textconv", hidden=True)
@_words()
def textconv(words: tuple[str, ...]) -> int:
    """Write a model as text; git calls this, and wants 0 whatever the file is."""
    from ._git_drivers import as_text

    as_text(words[-1])
    return EXIT_SAME


@command.command(name="merge-driver", hidden=True)
@_words(5)
def merge_driver(words: tuple[str, ...]) -> int:
    """Refuse to merge a model; git calls this, and keeps the path in conflict."""
    from ._git_drivers import merge

    base, ours, theirs, size, path = words
    return merge(base, ours, theirs, size, path)


@command.command(name="difftool", hidden=True)
@_words(3)
def difftool(words: tuple[str, ...]) -> int:
    """Compare the two files, or with --dir-diff the two folders, that git difftool made."""
    from pathlib import Path

    left, right, path = words
    if Path(left).is_dir() and Path(right).is_dir():
        from . import group

        return group.main(["diff", "-r", "--exit-zero", "--", left, right], standalone_mode=False)
    from ._git_drivers import show_change

    show_change((path, left, "", "100644", right, "", "100644"))
    return EXIT_SAME
