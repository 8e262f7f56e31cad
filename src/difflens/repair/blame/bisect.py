"""Finds the first bad one of a row of checkpoints, and blames what changed just before it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from os import PathLike, fspath
from pathlib import Path

from difflens.core.errors import BlameError
from difflens.models.opening import Model, open_input

from .command import Command
from .hybrids import Hybrid
from .journal import Journal
from .judge import Check, Judge, Rules, Undecided
from .memory import arrays_of
from .pieces import Piece, Selection
from .records import Bisection
from .story import PathText, Place, Progress, identity_of, inquire, settled_check


def bisect(
    checkpoints: Sequence[Model],
    check: Check | Sequence[str],
    *,
    threshold: float | str | None = None,
    lower_is_better: bool | None = None,
    metric: str | None = None,
    noisy: bool | None = None,
    error: float = 0.05,
    jobs: int = 1,
    timeout: float | None = None,
    budget: int | None = None,
    resume: PathText | None = None,
    repair: PathText | None = None,
    progress: Progress | None = None,
    threads: int | None = None,
    limits: Mapping[str, int] | None = None,
    format: str | None = None,  # noqa: A002  the word of the command line
) -> Bisection:
    """Find the first checkpoint that fails, by binary search, and blame what changed before it.

    The first checkpoint passes, the last one fails. The options are those of `blame`.
    """
    if len(checkpoints) < 2:
        raise BlameError("bisect", "there is one checkpoint: two are needed at least")
    rules = Rules(threshold, lower_is_better, noisy, error, budget, max(1, jobs))
    rules, check = settled_check(rules, check, timeout, metric)
    place = Place(resume, repair, progress, threads, limits, format)
    with ExitStack() as opened:
        if isinstance(check, Command):
            opened.callback(check.stop)
        journal = Journal(place.journal, identity_of(check, rules))
        opened.callback(journal.close)
        judge = _judge(checkpoints, check, rules, journal)
        judge.progress = progress
        opened.callback(judge.close)
        names = [_shown(each, at) for at, each in enumerate(checkpoints)]
        try:
            first = _first_bad(judge, len(checkpoints))
        except Undecided:
            return Bisection(len(names), "", "", judge.taken, _UNDECIDED)
        evaluated = judge.taken
        before, after = judge.readings(_at(first - 1)), judge.readings(_at(first))
        rules = judge.settled()
    blamed = inquire(
        checkpoints[first - 1],
        checkpoints[first],
        _again(check),
        rules,
        place,
        known=(before, after),
    )
    sentence = f"{names[first]} is the first bad one of {len(names)} checkpoints"
    return Bisection(len(names), names[first - 1], names[first], evaluated, sentence, blamed)


def _judge(checkpoints: Sequence[Model], check: Check, rules: Rules, journal: Journal) -> Judge:
    sides = _at(0), _at(len(checkpoints) - 1)
    shelf = _Shelf(checkpoints, as_paths=isinstance(check, Command))
    content = " ".join(_stamp(each) for each in checkpoints)
    return Judge(check, shelf, sides, rules, journal=journal, content=content)


def _first_bad(judge: Judge, number: int) -> int:
    """Search between a checkpoint that passes and one that fails until they are neighbours."""
    judge.left = 2 + (number - 1).bit_length()
    judge.calibrate()
    good, bad = 0, number - 1
    while bad - good > 1:
        judge.left = (bad - good - 1).bit_length()
        middle = (good + bad) // 2
        verdict = judge.verdict(_at(middle))
        if verdict is None:
            raise Undecided
        if verdict:
            good = middle
        else:
            bad = middle
    return bad


class _Shelf:
    """Hands out checkpoints as they are."""

    def __init__(self, checkpoints: Sequence[Model], *, as_paths: bool) -> None:
        self._checkpoints, self._as_paths = checkpoints, as_paths

    @contextmanager
    def hybrid(self, selection: Selection, *, fresh: bool) -> Iterator[Hybrid]:  # noqa: ARG002
        """Yield the checkpoint of that number."""
        ((_, _, ((number, _),)),) = selection
        model = self._checkpoints[number]
        if self._as_paths:
            if not isinstance(model, (str, PathLike)):
                raise BlameError("bisect", "a command needs models that are files or folders")
            _, source = open_input(model)  # it says what is wrong with a file that is none
            source.close()
            yield Hybrid(fspath(model), is_fresh=True)
            return
        _, source = open_input(model)
        try:
            yield Hybrid(arrays_of(source, model), is_fresh=True)
        finally:
            source.close()

    def close(self) -> None:
        """Do nothing."""


def _at(number: int) -> Selection:
    return frozenset([Piece("checkpoint", 0, ((number, number + 1),))])


def _again(check: Check) -> Check:
    """Return a command that was stopped as one that can run."""
    return check.copy() if isinstance(check, Command) else check


def _shown(model: Model, number: int) -> str:
    return fspath(model) if isinstance(model, (str, PathLike)) else f"checkpoint {number}"


def _stamp(model: Model) -> str:
    """Identify a checkpoint for a journal: by its path, size and time."""
    if not isinstance(model, (str, PathLike)):
        return "memory"
    path = Path(model)
    files = sorted(path.rglob("*")) if path.is_dir() else [path]
    stamps = ((each.stat(), each) for each in files if each.is_file())
    return ";".join(f"{each} {found.st_size} {found.st_mtime_ns}" for found, each in stamps)


_UNDECIDED = "cannot tell: the first and the last checkpoint do not differ beyond the noise"
