"""`difflens blame`: which change between two models broke the check?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from . import EXIT_DIFFERENT, EXIT_SAME
from ._blame import Separated, check_options, counting, inquiry_of, words_of
from ._options import FilePath
from ._store import emit, result_options, view_of

if TYPE_CHECKING:
    from difflens.repair.blame.records import Blame


@click.command(name="blame", cls=Separated)
@click.argument("good", type=FilePath())
@click.argument("bad", type=FilePath())
@check_options
@result_options("cli", "json", "yaml", "markdown", "html")
def command(good: str, bad: str, **options: Any) -> int:
    """Find the smallest set of changes from GOOD to BAD that makes COMMAND fail.

    COMMAND runs on hybrids of the two models: their path takes the place of {}, or is its last
    word. It fails with an exit code that is not 0, or with a number on the wrong side of
    --threshold. Exit code 125 says that it cannot judge. GOOD and BAD are never changed.

    Exit code: 0 a set was found and proved, 1 the damage is spread or cannot be told, 2 trouble.
    """
    from difflens.repair.blame.story import blame

    with counting() as progress:
        result = blame(good, bad, words_of(), progress=progress, **inquiry_of(options))
    emit(_written(result, options), options)
    return EXIT_SAME if result.verdict == "found" else EXIT_DIFFERENT


def _written(result: Blame, options: dict[str, Any]) -> str:
    from difflens.render.document.written import as_text, written
    from difflens.render.repair.blame import blame_document

    if options["output"] in ("json", "yaml"):
        return as_text(result.to_dict(), options["output"])
    return written(blame_document(result), options["output"], view_of(options))
