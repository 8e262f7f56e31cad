"""`difflens flow RUN`: how gradients flow through the layers, as a picture."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, TextIO

import click

from . import EXIT_SAME
from ._options import Epsilon, FilePath

if TYPE_CHECKING:
    from difflens.training.flow.animator import GradientFlowAnimator
    from difflens.training.flow.text import Paint
    from difflens.training.history.history import History
    from difflens.training.records.flow import FlowPicture, GradientFlowConfig

_MOST_CELLS = 250_000  # lines of JSON or CSV that are written without being asked for more
_PAGE_COLUMNS, _PLAYED_COLUMNS = 1000, 300


@click.command(name="flow")
@click.argument("run", type=FilePath(), metavar="RUN")
@click.option(
    "-o",
    "--output",
    type=click.Choice(["ascii", "json", "csv", "html"]),
    default="ascii",
    show_default=True,
    help="Draw text, or write data or a page.",
)
@click.option("--animate", is_flag=True, help="Play it step by step in the terminal.")
@click.option(
    "--fps",
    type=click.FloatRange(0.1, 60),
    default=10,
    show_default=True,
    metavar="N",
    help="Play N columns per second with --animate.",
)
@click.option(
    "--field",
    default="auto",
    show_default=True,
    metavar="NAME",
    help="Draw this field: grad_rms, grad_l2, grad_mean_abs, update_ratio, weight_l2, ...",
)
@click.option(
    "--scale",
    type=click.Choice(["global", "layer", "frame"]),
    default="global",
    show_default=True,
    help="Give a shade one meaning everywhere, per layer or per frame.",
)
@click.option(
    "--order",
    type=click.Choice(["network", "natural"]),
    default="network",
    show_default=True,
    help="Order layers as the network runs, or by name.",
)
@click.option(
    "--layers",
    metavar="PATTERN",
    default="",
    help="Draw only layers whose name contains or matches PATTERN (* and ?).",
)
@click.option(
    "--rows",
    type=click.IntRange(0),
    default=40,
    show_default=True,
    metavar="N",
    help="Draw at most N layers, the most alarming among them; 0 is all.",
)
@click.option(
    "--columns",
    type=click.IntRange(0),
    metavar="N",
    help="Draw at most N columns; neighbours are merged, extremes stay.",
)
@click.option(
    "--vanishing",
    type=Epsilon(0),
    default=1e-7,
    show_default=True,
    metavar="X",
    help="Mark layers whose mean |g| is below X as vanishing.",
)
@click.option(
    "--exploding",
    type=Epsilon(0),
    default=1e3,
    show_default=True,
    metavar="X",
    help="Mark layers whose largest |g| is above X as exploding.",
)
@click.option("--rank", type=click.IntRange(0), metavar="N", help="Draw this rank of the run.")
@click.option(
    "--color",
    type=click.Choice(["auto", "always", "never"]),
    default="auto",
    show_default=True,
    help="Use colour; auto follows the terminal, NO_COLOR and FORCE_COLOR.",
)
@click.option("--no-color", is_flag=True, help="Use no colour, as --color never does.")
@click.option(
    "--out", type=FilePath(), metavar="FILE", help="Write the result to FILE instead of stdout."
)
@click.option("--debug", is_flag=True, expose_value=False, help="Show the traceback of an error.")
def command(run: str, **options: Any) -> int:
    """Show the gradients of RUN: layers down, steps to the right.

    RUN is a run folder, a log that can be read as one, or what a GradientFlowAnimator exported as
    JSON.
    """
    from difflens.training.records.flow import GradientFlowConfig

    if options["animate"] and options["output"] not in {"ascii", "html"}:
        raise click.UsageError(f"--animate and -o {options['output']}: name one")
    config = GradientFlowConfig(
        vanishing_threshold=options["vanishing"], exploding_threshold=options["exploding"]
    )
    shown = _Recorded(run, options) if _is_recorded(run) else _Run(run, options, config)
    _OUTPUTS[options["output"]](shown, options)
    return EXIT_SAME


def _is_recorded(run: str) -> bool:
    """Was it written by an animator?"""
    if not run.endswith(".json"):
        return False
    try:
        with open(run, "rb") as stream:  # noqa: PTH123  pathlib is not needed yet
            return b'"difflens.flow"' in stream.read(200)
    except OSError:
        return False


class _Run:
    """A recorded run."""

    def __init__(self, run: str, options: dict[str, Any], config: GradientFlowConfig) -> None:
        from difflens.training.history import read_history

        from ._output import warn

        self.history: History = read_history(run, options["rank"])
        self._options, self._config = options, config
        for damage in self.history.damage:
            warn(f"{run}: {damage}")
        self.name, self._run = self.history.info.name or run, run
        self.points = len(self.history.course)
        self.layer_count = len(self.history.info.layers)

    def picture(self, **how: Any) -> FlowPicture:
        """Return the numbers of the picture."""
        from difflens.core.errors import RunError
        from difflens.training.flow.run import picture_of

        wanted = {key: self._options[key] for key in ("field", "layers", "scale", "order")}
        try:
            return picture_of(self.history, config=self._config, title=self.name, **wanted, **how)
        except RunError as error:  # it knows the name of the run, the user knows its path
            raise RunError(self._run, error.reason, hint=error.hint) from error

    def animator(self, columns: int) -> GradientFlowAnimator:
        """Return the frames."""
        from difflens.training.flow.run import animator_of_run, has_rising_steps

        from ._output import warn

        if not has_rising_steps(self.history):
            warn(f"{self._run}: its steps do not rise from 0 on, so frames are numbered instead")
        found = animator_of_run(self.history, columns=columns, config=self._config)
        return found.only(self._options["layers"]) if self._options["layers"] else found


class _Recorded:
    """What an animator exported; it was judged when it was recorded."""

    def __init__(self, run: str, options: dict[str, Any]) -> None:
        from difflens.training.flow.animator import GradientFlowAnimator

        found = GradientFlowAnimator.from_json(run)
        self._animator = found.only(options["layers"]) if options["layers"] else found
        self._options = options
        self.name = run
        self.points = len(found)
        self.layer_count = len(found.layers)

    def picture(self, **how: Any) -> FlowPicture:
        """Return the numbers of the picture."""
        wanted = {key: self._options[key] for key in ("field", "scale", "order")}
        return self._animator.picture(title=self.name, **wanted, **how)

    def animator(self, columns: int) -> GradientFlowAnimator:  # noqa: ARG002  all are there
        """Return the frames."""
        return self._animator


_Source = _Run | _Recorded


def _ascii(shown: _Source, options: dict[str, Any]) -> None:
    from difflens.render.document.text import painter
    from difflens.training.flow.text import heat_map, room_for

    from ._output import emit, view

    how = view(
        color="never" if options["no_color"] else options["color"],
        to_file=options["out"] is not None,
    )
    if options["animate"] and _plays(options):
        return _play(shown, options, how.width, painter(how.color))
    layers = shown.picture(columns=1, rows=options["rows"]).layers
    columns = min(room_for(layers, how.width), options["columns"] or how.width)
    picture = shown.picture(columns=columns, rows=options["rows"])
    return emit(heat_map(picture, width=how.width, paint=painter(how.color)), options["out"])


def _plays(options: dict[str, Any]) -> bool:
    from ._output import warn

    if options["out"] is None and sys.stdout is not None and sys.stdout.isatty():
        return True
    warn("there is no terminal to play in: this is the still picture")
    return False


def _play(shown: _Source, options: dict[str, Any], width: int, paint: Paint) -> None:
    from shutil import get_terminal_size

    from difflens.training.flow.text import moving

    terminal = get_terminal_size()
    width = min(width, terminal.columns) - 1  # a line that wraps would be two
    columns = options["columns"] or _PLAYED_COLUMNS
    around = next(moving(shown.picture(columns=columns, rows=1), width)).count("\n")
    fit = max(1, terminal.lines - around)
    picture = shown.picture(columns=columns, rows=min(options["rows"] or fit, fit))
    play(moving(picture, width, paint=paint), sys.stdout, options["fps"])


def _lines(shown: _Source, options: dict[str, Any]) -> GradientFlowAnimator:
    from ._output import warn

    asked = options["columns"]
    columns = max(50, _MOST_CELLS // max(shown.layer_count, 1)) if asked is None else asked
    if asked is None and shown.points > columns:
        warn(f"{shown.points} points were merged into {columns}; --columns 0 writes all")
    return shown.animator(columns)


def _json(shown: _Source, options: dict[str, Any]) -> None:
    from ._output import emit

    found = _lines(shown, options)
    pieces = found.json_pieces(run=shown.name, summary=found.summary_report())
    emit(b"".join(pieces).decode(), options["out"])


def _csv(shown: _Source, options: dict[str, Any]) -> None:
    from ._output import emit

    emit(b"".join(_lines(shown, options).csv_pieces()).decode(), options["out"])


def _html(shown: _Source, options: dict[str, Any]) -> None:
    from difflens.render.training.flow_page import page

    from ._output import emit

    picture = shown.picture(columns=options["columns"] or _PAGE_COLUMNS)
    summary = shown.animator(options["columns"] or 0).summary_report()
    emit(page(picture, summary), options["out"])


_OUTPUTS = {"ascii": _ascii, "json": _json, "csv": _csv, "html": _html}


_HIDE, _SHOW = "\x1b[?25l", "\x1b[?25h"


def play(texts: Iterable[str], stream: TextIO, per_second: float) -> None:
    """Write each text over the one before; whatever happens, the cursor is there again.

    The last one stays on the screen: nothing that was above it is touched.
    """
    pause, lines = 1 / per_second, 0
    stream.write(_HIDE)
    try:
        due = time.monotonic()
        for text in texts:
            up = f"\x1b[{lines}A" if lines else ""
            # Each line is cleared behind its end only: clearing the whole first would flicker.
            stream.write(f"{up}\r" + text.replace("\n", "\x1b[K\n"))
            stream.flush()
            lines = text.count("\n")
            due = max(due + pause, time.monotonic())
            time.sleep(max(0.0, due - time.monotonic()))
    finally:
        stream.write(_SHOW)
        stream.flush()
