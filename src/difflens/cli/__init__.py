"""The commands: one file each, found by name, imported when called.

Only click is imported here: `difflens --help` must stay instant.
"""

from __future__ import annotations

import gc
import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any, NoReturn

import click

from .. import __version__
from ..errors import DifflensError
from ..escape import for_terminal

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

EXIT_SAME, EXIT_DIFFERENT, EXIT_TROUBLE, EXIT_INTERRUPTED, EXIT_CLOSED_PIPE = 0, 1, 2, 130, 141
_LONGEST_LINE = 2000


class ClosedPipe(Exception):
    """The reader of our output has seen enough."""


class Commands(click.Group):
    """The files of this folder as commands; `difflens A B` is `difflens diff A B`."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  click's own
        """Name every command."""
        # Not pathlib: its import would be a tenth of the time that help takes.
        names = os.listdir(os.path.dirname(__file__))  # noqa: PTH120, PTH208
        files = (name[:-3] for name in names if name.endswith(".py") and name[0] != "_")
        return sorted(stem.replace("_", "-") for stem in files)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """Import one command."""
        if name not in self.list_commands(ctx):
            return None
        return import_module(f"{__name__}.{name.replace('-', '_')}").command  # type: ignore[no-any-return]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List each command with what the first line of its file says: importing all is slow."""
        names = self.list_commands(ctx)
        width = formatter.width - max(map(len, names)) - 6
        with formatter.section("Commands"):
            formatter.write_dl([(name, _purpose(name, width)) for name in names])

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put `diff` in front where the first word is no command and no option of ours."""
        ours = {"--help", "-h", "--version", *self.list_commands(ctx)}
        if args and args[0] not in ours:
            args = ["diff", *args]
        if not args and not ctx.resilient_parsing:
            args = ["--help"]
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; click would make exit code 1 of a closed pipe: "something differs"."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            raise ClosedPipe from error

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Offer the commands, and files: `difflens A B` needs no command."""
        from click.shell_completion import CompletionItem

        # Files first: what follows a file in the script for bash is added, what precedes is lost.
        return [CompletionItem(incomplete, type="file"), *super().shell_complete(ctx, incomplete)]


def _purpose(name: str, width: int) -> str:
    """Read what a command is for off its file, cut to one line."""
    path = os.path.join(os.path.dirname(__file__), f"{name.replace('-', '_')}.py")  # noqa: PTH118, PTH120
    with open(path, encoding="utf-8") as file:  # noqa: PTH123
        told = file.readline().partition("`: ")[2].strip().rstrip('"').rstrip(".")
    told = told[:1].upper() + told[1:]
    return told if len(told) <= width else told[: width - 1] + "…"


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
    code = _run(sys.argv[1:] if arguments is None else arguments)
    if code == EXIT_INTERRUPTED:
        os._exit(code)  # Python's own end would wait for threads that are still reading
    sys.exit(code)


def _run(arguments: list[str]) -> int:
    if sys.platform == "win32":
        _say(DifflensError("difflens runs on Linux and macOS", hint="on Windows, use WSL"))
        return EXIT_TROUBLE
    _prepare_streams()
    _tell_warnings()
    try:
        code = group.main(arguments, prog_name="difflens", standalone_mode=False)
        if sys.stdout:
            sys.stdout.flush()
    except (KeyboardInterrupt, click.Abort):
        return EXIT_INTERRUPTED
    except (BrokenPipeError, ClosedPipe):
        return _closed_pipe()
    except click.ClickException as error:
        _say(DifflensError(_reason(error), hint=_usage(error)))
        return EXIT_TROUBLE
    except Exception as error:  # noqa: BLE001  nothing may end in a traceback nobody asked for
        if "--debug" in arguments:
            _show_traceback()
        _say(error)
        return EXIT_TROUBLE
    return code if isinstance(code, int) else EXIT_SAME


def _prepare_streams() -> None:
    if sys.stderr is None:  # closed by who called us
        sys.stderr = open(os.devnull, "w")  # noqa: PTH123, SIM115  for good
    gc.disable()  # a command is short and makes no cycles; a million tensors would be walked again
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a terminal that cannot show a letter gets its code
            stream.reconfigure(errors="backslashreplace")


def _tell_warnings() -> None:
    """Write what Python would warn of (a plug-in left out) as every other warning is written."""
    import warnings

    def told(message: Warning | str, *_where: Any) -> None:
        sys.stderr.write(f"difflens: warning: {for_terminal(str(message), _LONGEST_LINE)}\n")

    warnings.showwarning = told  # type: ignore[assignment]


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


def _show_traceback() -> None:
    import traceback

    traceback.print_exc()


def _reason(error: click.ClickException) -> str:
    text = error.format_message().rstrip(".").replace("Invalid value", "Wrong value")
    return text if text[1:2].isupper() else text[:1].lower() + text[1:]


def _usage(error: click.ClickException) -> str:
    context: Any = getattr(error, "ctx", None)
    return f"{context.command_path} --help shows what it takes" if context else ""


def _closed_pipe() -> int:
    """Leave quietly: the reader has seen enough. Python must not try to flush again at its end."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    return EXIT_CLOSED_PIPE
