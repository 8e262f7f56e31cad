"""Models of Git revisions as arguments: `REV:PATH`, and `REV [REV] -- PATH` as git has it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from difflens.core.errors import DifflensError, GitError
from difflens.core.escape import visible

if TYPE_CHECKING:
    from difflens.core.records import Report
    from difflens.storage.git.repository import Blob, Repository

AFTER = "difflens.after_dashes"
_ADDRESS = "://"
# Files that name others, so that all of the folder is needed.
_OF_SEVERAL = (".index.json", ".onnx", ".index")
_PART = "-of-"
_LARGEST_BESIDE = 64_000_000  # bytes: tokenizers and configs, not data


class Words(click.Command):
    """A command that remembers how many of its arguments stood after `--`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Count them; click itself drops the two dashes."""
        ctx.meta[AFTER] = len(args) - 1 - args.index("--") if "--" in args else 0
        return super().parse_args(ctx, args)


class Named(NamedTuple):
    """A model of a revision, as the user named it; a revision of `:` or `:2` is the index."""

    revision: str
    path: str
    from_top: bool

    @property
    def label(self) -> str:
        """What stands before a path in what is shown."""
        return f"{self.revision}:"


class Sides(NamedTuple):
    """Two models as paths, and what to show for the folders that stand for revisions."""

    left: str
    right: str
    shown: Mapping[str, str]


@contextmanager
def as_paths(words: Sequence[str], after: int) -> Iterator[Sides | None]:
    """Yield both models as paths for as long as the block lasts; None if RIGHT is missing."""
    operands = _operands(list(words), after)
    if operands is None:
        yield None
        return
    if not any(isinstance(each, Named) for each in operands):
        yield Sides(str(operands[0]), str(operands[1]), {})
        return
    from difflens.storage.git.repository import Repository
    from difflens.storage.git.spool import spool

    from ._progress import progress_bar

    repository = Repository(Path.cwd())
    files = [_files(repository, each) if isinstance(each, Named) else [] for each in operands]
    size = sum(blob.size for blobs in files for blob in blobs)
    with ExitStack() as stack:
        laid = stack.enter_context(spool(repository))
        paths, shown = [], {}
        for side, each in zip(("left", "right"), operands, strict=True):
            if isinstance(each, Named):
                paths.append(str(laid.root(side) / _path(repository, each)))
                shown[f"{laid.root(side)}/"] = each.label
            else:
                paths.append(str(each))
        stack.enter_context(_renaming_errors(shown))
        with progress_bar(size) as bar:
            laid.lay_out(dict(zip(("left", "right"), files, strict=True)), bar)
        yield Sides(paths[0], paths[1], shown)


def _operands(words: list[str], after: int) -> tuple[str | Named, str | Named] | None:
    """Tell revisions from paths; None if there is one model only."""
    before = words[: len(words) - after]
    if after and before and _are_revisions(before):
        revisions = before[0].split("..") if ".." in before[0] else before
        if after != 1 or len(revisions) > 2 or (len(before) > 1 and ".." in before[0]):
            raise click.UsageError("name one or two revisions, and after -- one path, no option")
        path = words[-1]
        left = Named(revisions[0] or "HEAD", path, from_top=False)
        if len(revisions) == 1:
            return left, path
        return left, Named(revisions[1] or "HEAD", path, from_top=False)
    if len(words) > 2:
        raise click.UsageError(f"unexpected extra argument ({words[2]}): a diff takes two models")
    named = [_named(each) for each in words]
    return (named[0], named[1]) if len(named) == 2 else None


def _are_revisions(words: list[str]) -> bool:
    """Is the first word a revision? Where a file has the same name, git decides too."""
    from difflens.storage.git.repository import Repository

    try:
        repository = Repository(Path.cwd())
        for revision in words[0].split(".."):
            repository.commit(revision or "HEAD")
    except GitError:
        if os.path.lexists(words[0]):
            return False
        raise
    return True


def _named(word: str) -> str | Named:
    """Read `REV:PATH`; what exists as a file, or is an address, is that."""
    if ":" not in word or _ADDRESS in word or os.path.lexists(word):
        return word
    from difflens.storage.git.repository import Repository

    try:
        Repository(Path.cwd())
    except GitError:
        return word  # a path, of which the reader will say what is wrong
    if word[0] == ":":  # the index: `:PATH`, `:2:PATH`
        stage, path = (word[:2], word[3:]) if word[2:3] == ":" else ("", word[1:])
        return Named(stage, path, from_top=True)
    # A revision may hold colons of its own: `HEAD^{/fix: typo}:model.onnx`.
    revision, _, path = word.rpartition(":") if "{" in word else word.partition(":")
    return Named(revision, path, from_top=True)


def _path(repository: Repository, named: Named) -> str:
    path = repository.path_of(named.path, from_top=named.from_top)
    return path.removesuffix(".dvc")


def _files(repository: Repository, named: Named) -> list[Blob]:
    """List the files of a model at a revision, and what lies beside a single one."""
    from difflens.storage.git.pointers import files_of_model

    path = _path(repository, named)
    files = files_of_model(repository, named.revision, path)
    if not files:
        where = visible(f"{named.revision}:{path}")
        raise GitError(where, "that revision holds no such file or folder")
    if len(files) > 1 or files[0].path not in (path, f"{path}.dvc"):
        return files
    beside = repository.beside(named.revision, path.rpartition("/")[0])
    if path.endswith(_OF_SEVERAL) or _PART in path:
        return beside
    return [*files, *_settings(path, beside)]


def _settings(path: str, beside: list[Blob]) -> list[Blob]:
    """Choose from the files beside a model those that tell of it, and no other model."""
    from difflens.models.folders.listing import suffixes

    others = (*suffixes(), ".dvc")
    return [
        blob
        for blob in beside
        if blob.size <= _LARGEST_BESIDE and not blob.path.endswith(others) and blob.path != path
    ]


@contextmanager
def _renaming_errors(shown: Mapping[str, str]) -> Iterator[None]:
    """Let errors speak of revisions, not of the folder that stands for one."""
    try:
        yield
    except DifflensError as error:
        rename_error(error, shown)
        raise


def rename_error(error: DifflensError, shown: Mapping[str, str]) -> DifflensError:
    """Let one error speak of revisions; return it."""
    error.where, error.reason = renamed(error.where, shown), renamed(error.reason, shown)
    error.args = tuple(renamed(str(each), shown) for each in error.args)
    return error


def renamed(text: str, shown: Mapping[str, str]) -> str:
    """Write revisions for the folders that stand for them."""
    for folder, label in shown.items():
        text = text.replace(folder, label)
    return text


def with_revisions(report: Report, options: Mapping[str, Any]) -> Report:
    """Return the report with the names that the user gave to its models."""
    from msgspec.structs import replace

    shown = options.get("shown") or {}
    if not shown:
        return report
    return replace(
        report,
        left=replace(report.left, path=renamed(report.left.path, shown)),
        right=replace(report.right, path=renamed(report.right.path, shown)),
        warnings=tuple(renamed(each, shown) for each in report.warnings),
        evidence={name: renamed(text, shown) for name, text in report.evidence.items()},
    )
