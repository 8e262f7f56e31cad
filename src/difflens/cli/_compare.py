"""Compares two models as a command asks, and shows the report as text, as data or as a page."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from ._analyses import chosen
from ._evidence import gathered, refuse_unused
from ._options import limits_of
from ._project import left_out
from ._revisions import with_revisions

if TYPE_CHECKING:
    from difflens.core.records import Pair, Report, View

Command = TypeVar("Command", bound=Callable[..., Any])

PAGE = "difflens-report.html"
# These documents open with a sentence about the change, so they ask for it by themselves.
_TELLING = frozenset({"html", "markdown"})
# What looks at all rows again, once they are measured.
_LOOKING_BACK = ("by_magnitude", "review", "generate_report", "verify_conversion")


class Compared(NamedTuple):
    """A report, and the follower that was given its rows, if the renderer has one."""

    report: Report
    follower: Any = None


def compare(left: str, right: str, options: dict[str, Any]) -> Compared:
    """Compare two models with what the user asked for."""
    from difflens.diffs.fingerprints.story import diff
    from difflens.diffs.story import report

    from ._output import warn
    from ._progress import progress_bar

    opened = diff(
        left,
        right,
        match=options["match"],
        epsilon=options["epsilon"],
        path=options["path"],
        ignore=options["ignore"],
        threads=options["threads"],
        engine=options.get("engine"),
        format=options["format"],
        limits=limits_of(options["limits"]),
        shape_only=options["shape_only"],
        always=options["stats"],
        discovery=not options["no_discovery"],
        configs=(options["config_left"], options["config_right"]),
        exact=options["exact"],
    )
    if opened.is_estimated and options["verify_conversion"]:
        raise click.UsageError("--verify-conversion reads values: name the models, or add --exact")
    names = _analyses(options)
    if not names:
        refuse_unused(options)
    sides = opened.left, opened.right
    with progress_bar(sum(each.size_bytes + each.state_bytes for each in sides)) as (
        opened.session.progress
    ):
        evidence, policy = gathered(left, right, options) if names else (None, None)
        follower = _follower(opened.pairs, options)
        compared = report(
            opened,
            names,
            evidence,
            policy,
            verify_conversion=options["verify_conversion"],
            follow=follower and follower.add,
        )
    compared = _noted(with_revisions(compared, options))
    for warning in compared.warnings:
        warn(warning)
    return Compared(_ordered(compared) if options["by_magnitude"] else compared, follower)


def _follower(pairs: tuple[Pair, ...], options: dict[str, Any]) -> Any:
    """Make what writes the text while rows are measured; None if they are looked at later."""
    from difflens.render.diffs import renderer

    follower = renderer[options["output"]].options.get("follower")
    if follower is None or any(options[each] for each in _LOOKING_BACK):
        return None
    return follower(_view(options), pairs)


def _noted(compared: Report) -> Report:
    """Add to the warnings what a project file leaves out: it may be a stranger's."""
    from msgspec.structs import replace

    note = left_out()
    return replace(compared, warnings=(*compared.warnings, note)) if note else compared


def _analyses(options: dict[str, Any]) -> list[str]:
    """Name the analyses that were asked for, and the one that a document begins with."""
    is_document = options["output"] in _TELLING or options["generate_report"] or options["review"]
    first = ["change-summary"] if is_document and not options["shape_only"] else []
    return list(dict.fromkeys([*first, *chosen(options)]))


def _ordered(report: Report) -> Report:
    from msgspec.structs import replace

    from difflens.render.report.order import by_magnitude

    return replace(report, tensors=by_magnitude(report.tensors))


def document_flags(command: Command) -> Command:
    """Add the options that choose how a report is written."""
    for option in (
        click.option(
            "--review-friendly",
            "review",
            is_flag=True,
            help="Show at most ten findings, the most important first.",
        ),
        click.option(
            "--include-charts",
            "charts",
            is_flag=True,
            help="Add charts to the page: every tensor as a dot.",
        ),
        click.option(
            "--generate-report",
            is_flag=True,
            help=f"Also write one self-contained page, to --out or {PAGE}.",
        ),
        click.option(
            "--markdown-output",
            "markdown",
            is_flag=True,
            help="Write Markdown, as -o markdown does.",
        ),
    ):
        command = option(command)
    return command


def settle_output(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options with the renderer that was asked for; raise if there is none."""
    from difflens.render.diffs import renderer

    output, page = options["output"], options["generate_report"]
    if options["markdown"]:
        if output not in {"cli", "markdown"}:
            raise click.UsageError(f"--markdown-output and -o {output}: name one")
        output = "markdown"
    if options["charts"]:
        page = page or output != "html"
    _ = renderer[output]
    return options | {"output": output, "generate_report": page}


def show(compared: Compared, options: dict[str, Any]) -> None:
    """Render a report as asked, and write it where asked."""
    from ._output import emit_pieces

    if options["generate_report"] and options["output"] != "html":
        _page(compared, options)
        options = options | {"out": None}
    if not options["quiet"]:
        emit_pieces(_pieces(compared, options), options["out"])


def _page(compared: Compared, options: dict[str, Any]) -> None:
    from ._output import emit

    where = options["out"] or PAGE
    emit(rendered(compared, options | {"output": "html", "brief": False}), where)
    if not options["quiet"]:
        sys.stderr.write(f"difflens: the report is in {where}\n")


def rendered(compared: Compared, options: dict[str, Any]) -> str:
    """Render a report as asked."""
    return "".join(_pieces(compared, options))


def _pieces(compared: Compared, options: dict[str, Any]) -> Iterable[str]:
    """Render a report as asked, in pieces if the renderer can."""
    from difflens.core.escape import for_terminal
    from difflens.render.diffs import renderer

    report = compared.report
    if options["brief"]:
        names = f"{for_terminal(report.left.path)} and {for_terminal(report.right.path)}"
        if report.verdict.word == "nothing_to_compare":
            return [f"Files {names} hold no tensors: nothing to compare\n"]
        return [f"Files {names} differ\n" if report.verdict.differs else ""]
    if compared.follower:
        return [compared.follower.text(report)]
    chosen_one = renderer[options["output"]]
    if "pieces" in chosen_one.options:
        pieces: Iterable[str] = chosen_one.options["pieces"](report, _view(options))
        return pieces
    return [chosen_one.plugin(report, _view(options))]


def _view(options: dict[str, Any]) -> View:
    from ._output import view

    return view(
        color="never" if options["no_color"] else options["color"],
        stats=options["stats"],
        verbose=options["verbose"],
        to_file=options["out"] is not None,
        review=options["review"],
        charts=options["charts"],
    )
