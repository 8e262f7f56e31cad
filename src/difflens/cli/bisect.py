"""`difflens bisect`: which checkpoint is the first bad one, and what broke it?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from . import EXIT_DIFFERENT, EXIT_SAME
from ._blame import Separated, check_options, counting, inquiry_of, words_of
from ._options import FilePath
from ._store import emit, result_options, view_of

if TYPE_CHECKING:
    from difflens.repair.blame.records import Bisection


@click.command(name="bisect", cls=Separated)
@click.argument("checkpoints", nargs=-1, required=True, type=FilePath(), metavar="CHECKPOINT...")
@check_options
@result_options("cli", "json", "yaml", "markdown", "html")
def command(checkpoints: tuple[str, ...], **options: Any) -> int:
    """Find the first bad one of a row of checkpoints, then blame what changed just before it.

    The first CHECKPOINT passes, the last one fails. COMMAND is judged as `blame` does.

    Exit code: 0 a set was found and proved, 1 the damage is spread or cannot be told, 2 trouble.
    """
    from difflens.repair.blame.bisect import bisect

    words = words_of()
    with counting() as progress:
        result = bisect(checkpoints, words, progress=progress, **inquiry_of(options))
    emit(_written(result, options), options)
    is_found = result.blame is not None and result.blame.verdict == "found"
    return EXIT_SAME if is_found else EXIT_DIFFERENT


def _written(result: Bisection, options: dict[str, Any]) -> str:
    from difflens.render.document.written import as_text, written
    from difflens.render.repair.blame import bisection_document

    if options["output"] in ("json", "yaml"):
        return as_text(result.to_dict(), options["output"])
    return written(bisection_document(result), options["output"], view_of(options))
