"""What `blame` and `bisect` share: the command after `--`, its options, progress on stderr."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import click

from ._options import MOST_THREADS, FilePath, Threads, limits_of

Command = TypeVar("Command", bound=Callable[..., Any])


class Separated(click.Command):
    """A command whose arguments end at `--`: the words of the user's own command follow."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put what follows `--` aside."""
        at = args.index("--") if "--" in args else len(args)
        ctx.meta["words"] = args[at + 1 :]
        missing = click.UsageError("there is no command to run: put it after --", ctx)
        try:
            left = super().parse_args(ctx, args[:at])
        except click.BadParameter:
            raise
        except click.UsageError as error:  # an option of the command that -- was forgotten before
            raise error if ctx.meta["words"] else missing from None
        if not ctx.meta["words"]:
            raise missing
        return left

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        """Add what follows."""
        return [*super().collect_usage_pieces(ctx), "-- COMMAND..."]


def check_options(command: Command) -> Command:
    """Add what a check is, how it is judged, and where hybrids are read and written."""
    for option in (
        click.option("--limit", "limits", multiple=True, metavar="NAME=VALUE",
                     help="Raise a limit on what files may hold; docs/security.md lists them."),
        click.option("--threads", type=Threads(1), metavar="N",
                     help=f"Read with N threads, at most {MOST_THREADS}."),
        click.option("--format", metavar="NAME", help="Read models as this format."),
        click.option("--repair", type=FilePath(), metavar="PATCH",
                     help="Write the patch that turns BAD into a model that passes."),
        click.option("--resume", type=FilePath(), metavar="FILE",
                     help="Keep a journal of evaluations, and go on where it ends."),
        click.option("--budget", type=click.IntRange(1), metavar="N",
                     help="Stop after N evaluations."),
        click.option("-j", "--jobs", type=click.IntRange(1, 256), default=1, show_default=True,
                     metavar="N", help="Run N commands at the same time."),
        click.option("--timeout", type=click.FloatRange(0, min_open=True), metavar="SECONDS",
                     help="Count a command that takes longer as failed."),
        click.option("--error", type=click.FloatRange(0, 0.5, min_open=True, max_open=True),
                     default=0.05, show_default=True, metavar="P",
                     help="How often a decision on a noisy check may be wrong."),
        click.option("--noisy/--not-noisy", default=None,
                     help="Repeat COMMAND as often as its noise needs. By default, if it prints "
                     "two numbers for GOOD."),
        click.option("--at-most", type=float, metavar="X",
                     help="The same as --threshold X --lower-is-better."),
        click.option("--at-least", type=float, metavar="X",
                     help="The same as --threshold X --higher-is-better."),
        click.option("--lower-is-better/--higher-is-better", "is_lower", default=None,
                     help="Direction of the number; by default that of GOOD."),
        click.option("--threshold", metavar="X",
                     help="COMMAND prints a number (its last), and passes on GOOD's side of X; "
                     "auto is halfway between GOOD and BAD."),
        click.option("--metric", metavar="REGEX",
                     help="Find the number in what COMMAND prints: the first group, or what "
                     "follows."),
    ):  # fmt: skip
        command = option(command)
    return command


def words_of() -> list[str]:
    """Return the words of the user's command."""
    return list(click.get_current_context().meta["words"])


def inquiry_of(options: dict[str, Any]) -> dict[str, Any]:
    """Turn options into the arguments of `difflens.blame`."""
    threshold, lower = options["threshold"], options["is_lower"]
    for name, is_lower in (("at_least", False), ("at_most", True)):
        if options[name] is not None:
            if threshold is not None or lower not in (None, is_lower):
                shown = name.replace("_", "-")
                raise click.UsageError(f"--{shown} names the threshold and the direction already")
            threshold, lower = options[name], is_lower
    if isinstance(threshold, str) and threshold != "auto":
        try:
            threshold = float(threshold)
        except ValueError:
            raise click.UsageError(
                f"--threshold {threshold!r} is no number, and not auto"
            ) from None
    names = ("metric", "noisy", "error", "timeout", "jobs", "budget", "resume", "repair")
    return {
        **{name: options[name] for name in (*names, "threads", "format")},
        "limits": limits_of(options["limits"]),
        "threshold": threshold,
        "lower_is_better": lower,
    }


@contextmanager
def counting() -> Iterator[Callable[[int, int], None] | None]:
    """Yield what shows evaluations on a terminal; a signal to end ends the commands as well."""
    before = signal.signal(signal.SIGTERM, _interrupt)
    shows = sys.stderr is not None and sys.stderr.isatty()
    began = time.monotonic()

    def show(done: int, left: int) -> None:
        minutes = (time.monotonic() - began) / max(1, done) * left / 60
        text = f"{done} evaluations, about {left} left ({minutes:.1f} min)"
        sys.stderr.write(f"\r\x1b[K{text}")
        sys.stderr.flush()

    try:
        yield show if shows else None
    finally:
        signal.signal(signal.SIGTERM, before)
        if shows:
            sys.stderr.write("\r\x1b[K")


def _interrupt(*_: Any) -> None:
    raise KeyboardInterrupt


__all__: Sequence[str] = ("Separated", "check_options", "counting", "inquiry_of", "words_of")
