"""Runs the pipeline for a command: two models, the analyses asked for, warnings on stderr."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from ._analyses import answers, chosen
from ._evidence import gathered, refuse_unused
from ._options import limits_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..diffs import Diff
    from ..records import Envelope, Report

# These documents open with a sentence about the change, so they ask for it by themselves.
_TELLING = frozenset({"html", "markdown"})


def compare(left: str, right: str, options: dict[str, Any]) -> Report:
    """Compare two models with what the user asked for."""
    from ..pipeline import diff, report
    from ._progress import progress_bar

    bar = _Forward()
    found = diff(
        left,
        right,
        match=options["match"],
        epsilon=options["epsilon"],
        path=options["path"],
        ignore=options["ignore"],
        threads=options["threads"],
        format=options["format"],
        limits=limits_of(options["limits"]),
        shape_only=options["shape_only"],
        always=options["stats"] and options["output"] == "full-json",
        progress=bar,
    )
    with progress_bar(found.left.size_bytes + found.right.size_bytes) as bar.target:
        said, used = _answers(found, left, right, options)
        compared = report(found, said, used, verify_conversion=options["verify_conversion"])
    for warning in compared.warnings:
        _warn(warning)
    return _ordered(compared) if options["by_magnitude"] else compared


class _Forward:
    """Hands progress on to a bar that exists only once the sizes are known."""

    target: Any = None

    def __call__(self, size: int) -> None:
        if self.target:
            self.target(size)

    def stage(self, name: str, total: int) -> Callable[[int], None]:
        """Begin another stretch of work."""
        return self.target.stage(name, total) if self.target else lambda _size: None


def _answers(
    found: Diff, left: str, right: str, options: dict[str, Any]
) -> tuple[list[Envelope], dict[str, str]]:
    wanted = chosen(options)
    telling = options["output"] in _TELLING or options["generate_report"] or options["review"]
    if telling and not options["shape_only"]:
        wanted = list(dict.fromkeys(["change-summary", *wanted]))
    if not wanted:
        refuse_unused(options)
        return [], {}
    evidence, policy = gathered(left, right, options)
    return answers(found, wanted, evidence, policy), evidence.given


def _ordered(report: Report) -> Report:
    from msgspec.structs import replace

    from ..render.order import by_magnitude

    return replace(report, tensors=by_magnitude(report.tensors))


def _warn(text: str) -> None:
    from ..escape import for_terminal

    sys.stderr.write(f"difflens: warning: {for_terminal(text, 1000)}\n")
