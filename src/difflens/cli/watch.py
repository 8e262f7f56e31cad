"""`difflens watch RUN`: a run while it is recorded: loss, layers, findings."""

from __future__ import annotations

import sys
import time
from collections import deque
from typing import TYPE_CHECKING, Any, Self

import click

from . import EXIT_SAME
from ._options import FilePath

if TYPE_CHECKING:
    from ..core.records import View
    from ..render.training.screen import Seen
    from ..training.history.history import History
    from ..training.records.flow import FlowPicture
    from ..training.records.runs import Diagnosed


@click.command(name="watch")
@click.argument("run", type=FilePath(), metavar="RUN")
@click.option(
    "--interval",
    type=click.FloatRange(0.1, 3600),
    default=1.0,
    show_default=True,
    metavar="SECONDS",
    help="Read the run again every so many SECONDS.",
)
@click.option("--once", is_flag=True, help="Print once and leave.")
@click.option(
    "--field",
    default="auto",
    show_default=True,
    metavar="NAME",
    help="Draw this field: grad_rms, update_ratio, weight_l2, ...",
)
@click.option(
    "--layers",
    default="",
    metavar="PATTERN",
    help="Draw only layers whose name contains or matches PATTERN (* and ?).",
)
@click.option("--whole", is_flag=True, help="Draw the entire run, not only its latest steps.")
@click.option("--rank", type=click.IntRange(0), metavar="N", help="Draw this rank of the run.")
@click.option(
    "--color",
    type=click.Choice(["auto", "always", "never"]),
    default="auto",
    show_default=True,
    help="Use colour; auto follows the terminal and NO_COLOR.",
)
@click.option("--debug", is_flag=True, expose_value=False, help="Show the traceback of an error.")
def command(run: str, **options: Any) -> int:
    """Watch RUN while another process records it; Ctrl-C leaves, and the run goes on.

    It ends when the run ends. Without a terminal it prints once.
    """
    with Watching(run, options) as watching:
        if options["once"] or sys.stdout is None or not sys.stdout.isatty():
            watching.look()
            click.echo(watching.text(), nl=False)
        else:
            watching.stay()
    return EXIT_SAME


_QUIET = 10.0  # seconds without a frame, and at least as long as several frames took
_SHARE = 0.2  # of the time that diagnosing may take
_HIDDEN = frozenset({"loss", "optimizer_steps", "grad_kept"})
_HEIGHT = 40  # lines where there is no terminal


class Watching:
    """One run on one screen."""

    def __init__(self, run: str, options: dict[str, Any]) -> None:
        """Open the run."""
        from difflens.training.history.listing import Follower

        self._run, self._options = run, options
        self._follower = Follower(run, options["rank"])
        self._arrivals: deque[tuple[float, int]] = deque(maxlen=20)
        self._found: Diagnosed | None = None
        self._next_diagnosis = 0.0
        self._judged_frames = -1

    def look(self) -> None:
        """Take what is new, and diagnose where it is time to."""
        from difflens.training.diagnoses import diagnose

        new = self._follower.update()
        self._arrivals.append((time.monotonic(), new))
        self._history: History = self._follower.history()
        if self._history.frames != self._judged_frames and time.monotonic() >= self._next_diagnosis:
            begun = time.monotonic()
            self._found = diagnose(self._history, run=self._run)
            self._judged_frames = self._history.frames
            now = time.monotonic()
            self._next_diagnosis = now + (now - begun) / _SHARE

    def stay(self) -> None:
        """Look again and again, on a screen of its own, until the run ends or the user leaves."""
        from rich.console import Console
        from rich.live import Live
        from rich.text import Text

        console = Console(highlight=False, soft_wrap=True)
        try:
            with Live(console=console, screen=True, auto_refresh=False) as live:
                while True:
                    self.look()
                    live.update(Text.from_ansi(self.text()), refresh=True)
                    if self._follower.has_ended or self._follower.is_gone():
                        break
                    time.sleep(self._options["interval"])
        except KeyboardInterrupt:
            pass  # leaving is how this command ends
        sys.stdout.write(self.text())

    def text(self) -> str:
        """Write the screen as it is now."""
        from shutil import get_terminal_size

        from difflens.render.training.screen import screen

        from ._output import view

        is_terminal = sys.stdout is not None and sys.stdout.isatty()
        height = get_terminal_size().lines - 1 if is_terminal else _HEIGHT
        how = view(color=self._options["color"], to_file=False)
        drawn = self._drawn(how, height)
        return screen(self._seen(), drawn, self._found, how, height, filled=is_terminal)

    def _drawn(self, how: View, height: int) -> str:
        from difflens.render.document.text import painter
        from difflens.training.flow.text import heat_map

        picture = self._picture(how.width, height)
        if picture is None:
            return ""
        return heat_map(picture, width=how.width, paint=painter(how.color) if how.color else None)

    def _picture(self, width: int, height: int) -> FlowPicture | None:
        from difflens.core.errors import RunError
        from difflens.render.training.screen import rows_for
        from difflens.training.flow.run import picture_of
        from difflens.training.flow.text import room_for

        history = self._history
        if not self._options["whole"]:
            names = [layer.name for layer in history.info.layers]
            history = history._replace(course=history.recent.last(room_for(names, width)))
        if not len(history.course) or not history.info.layers:
            return None
        wanted = {"title": "", **{key: self._options[key] for key in ("field", "layers")}}
        try:
            few = picture_of(history, columns=1, rows=rows_for(height), **wanted)
            columns = room_for(few.layers, width)
            return picture_of(history, columns=columns, rows=rows_for(height), **wanted)
        except RunError:
            if self._options["field"] != "auto":
                raise
            return None  # a log without gradients still has a loss

    def _seen(self) -> Seen:
        import numpy as np

        from difflens.render.training.screen import Seen
        from difflens.training.history.frame import is_missing

        history, latest = self._history, self._follower.latest
        losses, lows = history.scalars.scalar("loss"), history.scalars.scalar_low("loss")
        norms = history.recent.last(1).global_norm()
        scalars = {}
        if latest is not None:
            there = ~is_missing(latest.scalars)
            names = self._follower.scalars
            scalars = {name: float(latest.scalars[i]) for i, name in enumerate(names) if there[i]}
        known = np.array([]) if losses is None else losses[~is_missing(losses)]
        finite = np.array([]) if lows is None else lows[np.isfinite(lows)]
        return Seen(
            history.info.name or self._run,
            self._state(),
            history.frames,
            history.last_step,
            self._rate(),
            None if latest is None else max(0.0, time.time() - latest.wall_time),
            _last_of(history.recent_scalars.scalar("loss"), losses),
            float(finite.min()) if finite.size else None,
            known.tolist(),
            {name: value for name, value in scalars.items() if name not in _HIDDEN},
            None if norms is None or not norms.size else float(norms[-1]),
        )

    def _state(self) -> str:
        if self._follower.has_ended:
            return "ended"
        if not self._follower.is_run:
            return "a log"
        if not self._follower.is_written():
            return "stopped without end"
        latest = self._follower.latest
        if latest is not None and time.time() - latest.wall_time > _QUIET:
            return "quiet"
        return "running"

    def _rate(self) -> float | None:
        """Say how many frames come in a second, from the second look on."""
        if len(self._arrivals) < 2:
            return None
        began, ended = self._arrivals[0][0], self._arrivals[-1][0]
        new = sum(count for _, count in list(self._arrivals)[1:])
        return new / (ended - began) if ended > began else None

    def __enter__(self) -> Self:
        """Use it in a `with`."""
        return self

    def __exit__(self, *_error: object) -> None:
        """Close the run."""
        self._follower.close()


def _last_of(*losses: Any) -> float | None:
    """Return the latest loss: of the latest frames, not the mean of a point of a long run."""
    from difflens.training.history.frame import is_missing

    for each in losses:
        known = [] if each is None else each[~is_missing(each)]
        if len(known):
            return float(known[-1])
    return None
