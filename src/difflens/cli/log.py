"""`difflens log PATH`: which commits changed a model, and how: one line for each."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from difflens.core.errors import DifflensError
from difflens.core.escape import for_terminal

from . import EXIT_SAME, EXIT_TROUBLE
from ._options import FilePath, Threads, limits_of

if TYPE_CHECKING:
    from difflens.storage.git.history import Change
    from difflens.storage.git.repository import Blob, Repository
    from difflens.storage.git.spool import Spool

_LONGEST = 1000
_SHORT = 9  # characters of a commit's name
_KINDS = {"added": "+", "removed": "-", "renamed": ">", "changed": "~", "same": "=", "unread": "!"}


@click.command(name="log")
@click.argument("path", type=FilePath())
@click.option("-n", "most", type=click.IntRange(1), metavar="N", help="Show the last N changes.")
@click.option(
    "--revision", default="HEAD", metavar="REV", help="Begin at this revision instead of HEAD."
)
@click.option("-v", "--verbose", is_flag=True, help="Show author and subject of each commit too.")
@click.option("--json", "as_json", is_flag=True, help="Write a JSON object per commit, in a list.")
@click.option("--threads", type=Threads(1), metavar="N", help="Use N threads; default: all cores.")
@click.option(
    "--limit", "limits", multiple=True, metavar="NAME=VALUE", help="Raise a limit (docs/security)."
)
@click.option("--out", type=FilePath(), metavar="FILE", help="Write to FILE instead of stdout.")
@click.option("--debug", is_flag=True, expose_value=False, help="Show the traceback of an error.")
def command(path: str, **options: Any) -> int:
    """List the commits that changed a model, the last one first, each with what it did.

    PATH is a model file or a folder in a Git repository, there now or in an earlier commit. A
    renamed model is followed. Exit code: 0; 2 if no change could be read.
    """
    import json

    from ._output import emit

    lines, entries = [], []
    for entry in _entries(path, options):
        entries.append(entry)
        lines.append(_line(entry, verbose=options["verbose"]))
        if not options["as_json"] and options["out"] is None:
            emit(lines[-1], None)  # the next one may take a while
    if options["as_json"]:
        emit(json.dumps(entries, indent=1).replace("\x7f", "\\u007f"), options["out"])
    elif options["out"] is not None:
        emit("\n".join(lines), options["out"])
    return EXIT_SAME if any(each["kind"] != "unread" for each in entries) else EXIT_TROUBLE


def _entries(path: str, options: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield what is shown of each commit."""
    from itertools import islice

    from difflens.storage.git.history import changes
    from difflens.storage.git.spool import spool

    repository, inside = _locate(path)
    with spool(repository) as laid:
        shelf = _Shelf(laid)
        for change in islice(changes(repository, inside, options["revision"]), options["most"]):
            about = {
                "commit": change.commit,
                "date": change.date,
                "author": change.author,
                "subject": change.subject,
                "path": change.right_path,
            }
            if change.left_path != change.right_path:
                about["renamed_from"] = change.left_path
            yield about | _describe_change(change, shelf, options)


def _locate(path: str) -> tuple[Repository, str]:
    """Find the repository of a path, which need not be there now, and the path within it."""
    from difflens.storage.git.repository import Repository

    folder = Path(path).parent
    while not folder.is_dir():
        folder = folder.parent
    repository = Repository(folder)
    named = path if repository.top is None else os.path.abspath(path)  # noqa: PTH100  keeps links
    return repository, repository.path_of(named).removesuffix(".dvc")


def _describe_change(change: Change, shelf: _Shelf, options: dict[str, Any]) -> dict[str, Any]:
    """Return the kind of a change and what it did, or why that cannot be read."""
    try:
        sides = shelf.paths(change)
        if len(sides) == 2:
            return _compared(change, sides[0], sides[1], options)
        kind = "added" if change.right else "removed"
        return {"kind": kind, "sentence": f"{kind}: {_outline(sides[0], options)}"}
    except DifflensError as error:
        reason = f"{error.reason}; {error.hint}" if error.hint else error.reason
        return {"kind": "unread", "sentence": f"cannot be read: {shelf.renamed(reason)}"}


def _compared(change: Change, left: Path, right: Path, options: dict[str, Any]) -> dict[str, Any]:
    from difflens.diffs.analyses import analyse
    from difflens.diffs.story import diff

    from ._progress import progress_bar

    limits = limits_of(options["limits"])
    opened = diff(str(left), str(right), threads=options["threads"], limits=limits)
    size = opened.left.size_bytes + opened.right.size_bytes
    with progress_bar(size) as opened.session.progress:
        answer = analyse("change_summary", opened)
    is_same = not opened.changed
    kind = "renamed" if change.left_path != change.right_path else "same" if is_same else "changed"
    fields = {name: answer.fields.get(name) for name in ("magnitude", "patterns")}
    sentence = answer.fields.get("sentence") or "what changed cannot be told"
    return {"kind": kind, "sentence": sentence, **fields}


def _outline(path: Path, options: dict[str, Any]) -> str:
    from difflens.models.describe import describe
    from difflens.models.formats import open_model
    from difflens.render.report.inventory import outline

    source = open_model(path, limits=limits_of(options["limits"]))
    try:
        return outline(describe("", source))
    finally:
        source.close()


class _Shelf:
    """The two sides of a change as files; what the next change needs again stays."""

    def __init__(self, laid: Spool) -> None:
        self._laid = laid
        self._sides: dict[tuple[Blob, ...], str] = {}
        self._count = 0

    def paths(self, change: Change) -> list[Path]:
        """Return the paths of the sides that are there, left before right."""
        from ._progress import progress_bar

        sides = [(change.left, change.left_path), (change.right, change.right_path)]
        wanted = [(blobs, path) for blobs, path in sides if blobs]
        for blobs in set(self._sides) - {blobs for blobs, _ in wanted}:
            self._laid.drop(self._sides.pop(blobs))
        new = {}
        for blobs in {blobs for blobs, _ in wanted} - set(self._sides):
            self._count += 1
            new[str(self._count)] = blobs
        with progress_bar(sum(blob.size for blobs in new.values() for blob in blobs)) as bar:
            try:
                self._laid.lay_out(new, bar)
            except DifflensError:
                for name in new:
                    self._laid.drop(name)
                raise
        self._sides |= {blobs: name for name, blobs in new.items()}
        return [self._laid.root(self._sides[blobs]) / path for blobs, path in wanted]

    def renamed(self, text: str) -> str:
        """Write paths of the repository for those of the folder."""
        for name in self._sides.values():
            text = text.replace(f"{self._laid.root(name)}/", "")
        return text


def _line(entry: dict[str, Any], *, verbose: bool) -> str:
    """Write one commit on one line; author and subject on another."""
    sign = _KINDS[entry["kind"]]
    text = for_terminal(entry["sentence"], _LONGEST)
    if "renamed_from" in entry:
        text = f"renamed from {for_terminal(entry['renamed_from'])}; {text}"
    line = f"{entry['commit'][:_SHORT]} {entry['date'][:10]} {sign} {text}"
    if not verbose:
        return line
    return f"{line}\n    {for_terminal(entry['author'])}: {for_terminal(entry['subject'])}"
