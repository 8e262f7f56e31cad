"""The commands: one file each, found by name, imported when called.

Only click is imported here: `difflens --help` must stay instant.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

import click

from .. import __version__
from ..errors import DifflensError
from ..escape import for_terminal

EXIT_SAME, EXIT_DIFFERENT, EXIT_TROUBLE, EXIT_INTERRUPTED, EXIT_CLOSED_PIPE = 0, 1, 2, 130, 141
_LONGEST_LINE = 2000


class Commands(click.Group):
    """The files of this folder as commands; `difflens A B` is `difflens diff A B`."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  click's own
        """Name every command."""
        folder = Path(__file__).parent
        return sorted(path.stem for path in folder.glob("*.py") if path.stem[0] != "_")

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """Import one command."""
        if name not in self.list_commands(ctx):
            return None
        return import_module(f"{__name__}.{name}").command  # type: ignore[no-any-return]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put `diff` in front where the first word is no command and no option of ours."""
        first = next((word for word in args if not word.startswith("-")), None)
        ours = {"--help", "-h", "--version"}
        if args and first not in self.list_commands(ctx) and not ours & set(args[:1]):
            args = ["diff", *args]
        return super().parse_args(ctx, args)


def _version(ctx: click.Context, _option: click.Parameter, asked: bool) -> None:
    if asked:
        from ..kernel import NAME

        kind = "NumPy kernel: slow, no compiler was there" if NAME == "numpy" else f"{NAME} kernel"
        click.echo(f"difflens {__version__} ({kind})")
        ctx.exit()


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="`difflens LEFT RIGHT` is short for `difflens diff LEFT RIGHT`.",
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_version,
    help="Say the version and which kernel is at work.",
)
def group() -> None:
    """The differential debugger for neural networks: what changed, and does it matter?"""


def main(arguments: list[str] | None = None) -> NoReturn:
    """Run the command line; whatever happens ends in one of five exit codes."""
    sys.exit(_run(sys.argv[1:] if arguments is None else arguments))


def _run(arguments: list[str]) -> int:
    if sys.platform == "win32":
        _say(DifflensError("difflens runs on Linux and macOS", hint="on Windows, use WSL"))
        return EXIT_TROUBLE
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a terminal that cannot show a letter gets its code
            stream.reconfigure(errors="backslashreplace")
    try:
        code = group.main(arguments, prog_name="difflens", standalone_mode=False)
        sys.stdout.flush()
    except (KeyboardInterrupt, click.Abort):
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        return _closed_pipe()
    except click.ClickException as error:
        _say(DifflensError(error.format_message().rstrip("."), hint=_usage(error)))
        return EXIT_TROUBLE
    except Exception as error:
        if "--debug" in arguments:
            raise
        _say(error)
        return EXIT_TROUBLE
    return code if isinstance(code, int) else EXIT_SAME


def _say(error: BaseException) -> None:
    """Tell an error in one line, its hint in another."""
    reason = str(error)
    if isinstance(error, OSError):
        where = f"{os.fsdecode(error.filename)}: " if error.filename else "output: "
        reason = f"{where}{(error.strerror or str(error)).lower()}"
    elif isinstance(error, MemoryError):
        reason = "there is not enough memory"
    elif not isinstance(error, DifflensError):
        reason = (
            f"a fault of difflens itself: {type(error).__name__}: {error} (--debug shows where)"
        )
    lines = [f"difflens: error: {for_terminal(reason, _LONGEST_LINE)}"]
    hint = getattr(error, "hint", "")
    if hint:
        lines.append(f"hint: {for_terminal(hint, _LONGEST_LINE)}")
    try:
        sys.stderr.write("\n".join(lines) + "\n")
        sys.stderr.flush()
    except OSError:
        pass  # nobody listens; the exit code still tells


def _usage(error: click.ClickException) -> str:
    context: Any = getattr(error, "ctx", None)
    return f"{context.command_path} --help shows what it takes" if context else ""


def _closed_pipe() -> int:
    """Leave quietly: the reader has seen enough. Python must not try to flush again at its end."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    return EXIT_CLOSED_PIPE
