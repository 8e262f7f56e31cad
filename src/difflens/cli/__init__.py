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

from difflens import __version__
from difflens.core.errors import DifflensError
from difflens.core.escape import for_terminal

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

EXIT_SAME, EXIT_DIFFERENT, EXIT_TROUBLE, EXIT_INTERRUPTED, EXIT_CLOSED_PIPE = 0, 1, 2, 130, 141
# The one rule of every gate (docs/gates.md): 0 only where it was shown, 2 without any evidence.
GATE_CODES = {
    "passed": EXIT_SAME,
    "failed": EXIT_DIFFERENT,
    "cannot_tell": EXIT_DIFFERENT,
    None: EXIT_TROUBLE,
}
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
        return import_module(f"{__name__}.{name.replace('-', '_')}").command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List each command with what the first line of its file says: importing all is slow."""
        names = self.list_commands(ctx)
        width = formatter.width - max(map(len, names)) - 6
        with formatter.section("Commands"):
            formatter.write_dl([(name, _purpose(name, width)) for name in names])

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put `diff` in front if the first word is neither a command nor an option of ours."""
        commands = self.list_commands(ctx)
        if args and args[0] not in {"--help", "-h", "--version", *commands}:
            _refuse_mistyped(args[0], commands, ctx)
            args = ["diff", *args]
        if not args and not ctx.resilient_parsing:
            args = ["--help"]
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, and what the project file sets of its options."""
        name, command, rest = super().resolve_command(ctx, args)
        if name and command and not ctx.resilient_parsing and not {"--help", "-h"} & set(rest):
            from ._project import defaults

            ctx.default_map = {name: defaults(command)}
        return name, command, rest

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


def _refuse_mistyped(word: str, commands: list[str], ctx: click.Context) -> None:
    """Raise if a first word looks like a command and is no file: `difflens diagnos RUN`."""
    if not word.replace("-", "").isalpha() or word[0] == "-" or os.path.lexists(word):
        return
    from difflib import get_close_matches

    close = get_close_matches(word, commands, n=1, cutoff=0.75)
    if close:
        raise click.UsageError(
            f"no such command or file: {word!r}; did you mean `difflens {close[0]}`?", ctx
        )


def _purpose(name: str, width: int) -> str:
    """Read what a command is for off its file, cut to one line."""
    path = os.path.join(os.path.dirname(__file__), f"{name.replace('-', '_')}.py")  # noqa: PTH118, PTH120
    with open(path, encoding="utf-8") as file:  # noqa: PTH123
        told = file.readline().partition("`: ")[2].strip().rstrip('"').rstrip(".")
    told = told[:1].upper() + told[1:]
    return told if len(told) <= width else told[: width - 1] + "…"


def _version(ctx: click.Context, _option: click.Parameter, asked: bool) -> None:
    if asked:
        from difflens.measure.kernel import NAME

        kind = "NumPy kernel: slow, no compiler was there" if NAME == "numpy" else f"{NAME} kernel"
        click.echo(f"difflens {__version__} ({kind})")
        ctx.exit()


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="`difflens LEFT RIGHT` is short for `difflens diff LEFT RIGHT`. "
    "`difflens COMMAND --help` describes a command.",
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_version,
    help="Print the version and which kernel is in use.",
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
    _prepare_interrupt()
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
    from difflens.core.terminal import PLAIN

    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # what a terminal cannot show gets a lookalike or a code
            stream.reconfigure(errors=PLAIN)


def _prepare_interrupt() -> None:
    """Let Ctrl-C end what waits for a server too: threads are waited for otherwise."""
    import signal

    def interrupt(_signal: int, _frame: object) -> None:
        if "difflens.storage.interruption" in sys.modules:
            sys.modules["difflens.storage.places"].end_transfers()
        raise KeyboardInterrupt

    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, interrupt)


def _tell_warnings() -> None:
    """Write what Python would warn of (a plug-in left out) as every other warning is written."""
    import warnings

    def show(message: Warning | str, *_where: Any) -> None:
        sys.stderr.write(f"difflens: warning: {for_terminal(str(message), _LONGEST_LINE)}\n")

    warnings.showwarning = show  # type: ignore[assignment]


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
    """Word what click says in one line; its own layout, of choices and of help, takes several."""
    if isinstance(error, click.exceptions.NoArgsIsHelpError) and error.ctx is not None:
        names = ", ".join(error.ctx.command.list_commands(error.ctx))  # type: ignore[attr-defined]
        return f"missing command: choose from {names}"
    text = error.format_message().rstrip(".").replace("Invalid value", "Wrong value")
    if isinstance(error, click.MissingParameter):  # of what was typed it holds nothing
        text = " ".join(text.split()).replace(". Choose from:", ": choose from")
    return text if text[1:2].isupper() else text[:1].lower() + text[1:]


def _usage(error: click.ClickException) -> str:
    context: Any = getattr(error, "ctx", None)
    return f"{context.command_path} --help lists arguments and options" if context else ""


def _closed_pipe() -> int:
    """Leave quietly: the reader has seen enough. Python must not try to flush again at its end."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    return EXIT_CLOSED_PIPE
