"""The story of blame: compare, calibrate, order by suspicion, ask, prove. Read this first."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from os import PathLike, fspath
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from difflens.core.errors import BlameError
from difflens.diffs import story as diffs
from difflens.models.opening import Model, open_input

from .answer import answered, undecided
from .changes import changed_files, content_of, read_changes
from .command import Command
from .hybrids import Maker, Models
from .inquiry import Inquiry
from .journal import Journal, Reading
from .judge import Check, Judge, Rules, Undecided
from .memory import Arrays
from .mending import write_repair
from .pieces import NOTHING, select_tensors
from .records import Blame
from .scratch import Files
from .units import Unit, make_units

PathText = str | PathLike[str]
Progress = Callable[[int, int], None]


def blame(
    good: Model,
    bad: Model,
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
) -> Blame:
    """Find the smallest set of changes from the good model to the bad one that breaks a check.

    `check` is called with a mapping of names to arrays and returns whether these pass, or a number;
    or it is a command as a list of words, which runs with the path of a model in place of `{}`.
    With a `threshold` the check gives numbers; "auto" is halfway between the two models. A `noisy`
    check is repeated until each decision is wrong in at most `error` of all cases. `resume` names a
    journal of evaluations, `repair` the patch to write that turns the bad model into one that
    passes.
    """
    rules = Rules(threshold, lower_is_better, noisy, error, budget, max(1, jobs))
    rules, check = settled_check(rules, check, timeout, metric)
    place = Place(resume, repair, progress, threads, limits, format)
    return inquire(good, bad, check, rules, place)


class Place(NamedTuple):
    """Where an inquiry reads and writes, and who watches it."""

    resume: PathText | None = None
    repair: PathText | None = None
    progress: Progress | None = None
    threads: int | None = None
    limits: Mapping[str, int] | None = None
    format: str | None = None

    @property
    def journal(self) -> Path | None:
        """The path of the journal."""
        return None if self.resume is None else Path(fspath(self.resume))


def settled_check(
    rules: Rules, check: Check | Sequence[str], timeout: float | None, metric: str | None
) -> tuple[Rules, Check]:
    """Make a command of words, and refuse what cannot be meant."""
    if isinstance(rules.threshold, str) and rules.threshold != "auto":
        reason = f"it is {rules.threshold!r}, expected a number or 'auto'"
        raise BlameError("threshold", reason)
    if metric is not None and rules.threshold is None:
        rules = rules._replace(threshold="auto")
    if callable(check):
        return rules, check
    is_number = rules.threshold is not None
    return rules, Command(check, timeout=timeout, metric=metric, is_number=is_number)


def inquire(
    good: Model,
    bad: Model,
    check: Check,
    rules: Rules,
    place: Place,
    *,
    known: tuple[Sequence[Reading], Sequence[Reading]] = ((), ()),
) -> Blame:
    """Compare, calibrate, order, ask and prove; `known` are readings of the two models."""
    with ExitStack() as opened:
        # Compare.
        models = opened.enter_context(_models(good, bad, place))
        journal = Journal(place.journal, identity_of(check, rules))
        opened.callback(journal.close)
        maker = opened.enter_context(_maker(models, (good, bad), check, place.journal, rules.jobs))
        sides = select_tensors(models.changes), NOTHING
        judge = Judge(
            check, maker, sides, rules, journal=journal, content=content_of(models.changes)
        )
        for side, readings in zip(sides, known, strict=True):
            judge.know(side, readings)
        judge.progress = place.progress
        opened.callback(judge.close)
        if isinstance(check, Command):
            opened.callback(check.stop)
        units: list[Unit] = []
        pieces = NOTHING
        try:
            # Calibrate.
            judge.calibrate()

            # Order by suspicion.
            diff = diffs.diff(
                good, bad, threads=place.threads, limits=place.limits, format=place.format,
                discovery=False,
            )  # fmt: skip
            units = make_units(diff, models.changes)

            # Ask and prove.
            result, pieces = answered(Inquiry(judge, models, diff, units), judge, models)
        except Undecided:
            result = undecided(judge, models, len(units))

        # Mend.
        if place.repair is not None and pieces:
            write_repair(models, pieces, _path(bad), Path(fspath(place.repair)), place.threads)
            result = replace(result, repair_patch=fspath(place.repair))
    return result


@contextmanager
def _models(good: Model, bad: Model, place: Place) -> Iterator[Models]:
    """Open both models and list what differs; raise where nothing does."""
    with ExitStack() as opened:
        sources = []
        for model in (good, bad):
            shown, source = open_input(model, place.format, place.limits)
            opened.callback(source.close)
            sources.append(source)
        changes = read_changes(sources[0], sources[1], shown, place.threads)
        changes |= changed_files(_path(good), _path(bad))
        if not changes:
            raise BlameError(shown, "GOOD and BAD hold the same: there is nothing to blame")
        yield Models(sources[0], sources[1], changes)


@contextmanager
def _maker(
    models: Models, sides: tuple[Model, Model], check: Check, journal: Path | None, jobs: int
) -> Iterator[Maker]:
    """Make hybrids as files for a command, beside the journal if there is one; else in memory."""
    if not isinstance(check, Command):
        yield Arrays(models, *sides)
        return
    paths = _path(sides[0]), _path(sides[1])
    if paths[0] is None or paths[1] is None:
        raise BlameError("blame", "a command needs models that are files or folders")
    with ExitStack() as opened:
        if journal is not None:
            folder = journal.with_name(f"{journal.name}.scratch")
        else:
            name = opened.enter_context(tempfile.TemporaryDirectory(prefix="difflens-blame-"))
            folder = Path(name) / "hybrids"
        files = Files(models, paths[0], paths[1], folder, jobs)
        opened.callback(files.close)
        yield files


def _path(model: Model) -> Path | None:
    return Path(model) if isinstance(model, (str, PathLike)) else None


def identity_of(check: Check, rules: Rules) -> str:
    """Say what a journal belongs to: the readings of another check mean something else."""
    if isinstance(check, Command):
        return check.identity
    name = getattr(check, "__qualname__", type(check).__qualname__)
    return f"{getattr(check, '__module__', '')}.{name} {rules.threshold is not None}"
