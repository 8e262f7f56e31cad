"""Holds one switch of the diagnoses after the other, and tells what becomes of a run's verdict."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .labels import Label
from .replay import Film, Show, alarm_of, serious
from .scores import Judged, is_ahead, is_located, is_right
from .switches import BOARD, FALSE, TRUE
from .verdicts import Verdict

if TYPE_CHECKING:
    from difflens.training.history.history import History
    from difflens.training.records.runs import RunFinding

Held = tuple[int, bool]  # a switch, and what it is held at
Look = tuple[int, tuple["RunFinding", ...]]  # a step, and what stands there
# What is measured once for all diagnoses: a switch in there concerns each of them.
_SHARED = (".sight", ".layers", ".losses")
_LIKE = 1.3  # times as much or as little: a remedy of about the same size


@dataclass(frozen=True)
class Outcome:
    """What a verdict comes to: the figures of the scores, for one run."""

    recall: bool
    false_alarm: bool
    critical: bool
    right_first: bool
    right_last: bool
    layer: bool
    ahead: bool
    fix: tuple[str, Mapping[str, Any]] | None

    def worse(self, other: Outcome) -> list[str]:
        """Name the figures that are worse in the other."""
        rising = ("false_alarm", "critical")
        falling = ("recall", "right_first", "right_last", "layer", "ahead")
        names = [name for name in rising if getattr(other, name) > getattr(self, name)]
        names += [name for name in falling if getattr(other, name) < getattr(self, name)]
        if self.fix is not None and not are_alike(self.fix, other.fix):
            names.append("fix")
        return names


NOTHING = Outcome(
    recall=False,
    false_alarm=False,
    critical=False,
    right_first=False,
    right_last=False,
    layer=False,
    ahead=False,
    fix=None,
)


@dataclass
class Trial:
    """What the switches did in one run: what each saw, and whom holding one makes worse."""

    run: str
    outcome: Outcome = NOTHING
    seen: dict[int, int] = field(default_factory=dict)
    worse: dict[Held, list[str]] = field(default_factory=dict)
    moved: dict[Held, dict[int, tuple[RunFinding, ...]]] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON takes it."""
        return {"run": self.run, "outcome": asdict(self.outcome)}


def are_alike(
    fix: tuple[str, Mapping[str, Any]], other: tuple[str, Mapping[str, Any]] | None
) -> bool:
    """Do two remedies turn the same knob, by about as much?

    >>> are_alike(("scale_lr", {"factor": 0.1}), ("scale_lr", {"factor": 0.12}))
    True
    """
    if other is None or fix[0] != other[0] or fix[1].keys() != other[1].keys():
        return False
    return all(_is_alike(each, other[1][name]) for name, each in fix[1].items() if name != "layers")


def _is_alike(one: Any, other: Any) -> bool:
    sizes = [each for each in (one, other) if isinstance(each, int | float)]
    if one == other or len(sizes) < 2 or isinstance(one, bool):
        return bool(one == other)
    return one * other > 0 and 1 / _LIKE < one / other < _LIKE


def outcome_of(label: Label, looks: Iterable[Look]) -> Outcome:
    """Sum up what was said at each look."""
    known, alarms = set[str](), []
    last: tuple[RunFinding, ...] = ()
    step = 0
    for step, found in looks:
        last = found or last
        alarms += [alarm_of(each, step) for each in found if each.name not in known]
        known |= {each.name for each in found}
    verdict = Verdict(tuple(alarms), tuple(alarm_of(each, step) for each in last))
    one = Judged(label, verdict)
    fixes = [(each.fix.code, each.fix.parameters) for each in last if each.fix is not None]
    return Outcome(
        recall=bool(alarms),
        false_alarm=label.healthy and bool(alarms),
        critical=label.healthy and any(each.critical for each in alarms),
        right_first=is_right(one, verdict.alarms[:1]),
        right_last=is_right(one, verdict.last[:1]),
        layer=bool(label.layers) and is_located(one, 3),
        ahead=is_ahead(one),
        fix=fixes[0] if fixes and not label.healthy else None,
    )


class Stage:
    """The diagnoses, asked one by one about a growing run, with switches held."""

    def __init__(self, held: Mapping[int, bool]) -> None:
        """Take what is held all the time."""
        from difflens.core.policy import Policy
        from difflens.training.diagnoses import diagnosis

        self.held, self.policy = dict(held), Policy()
        self.plugins = [each.plugin for each in diagnosis]
        number = enumerate(BOARD.switches)
        self.shared = {at for at, each in number if each.module.endswith(_SHARED)}
        BOARD.held = self.held

    def ask(self, place: int, history: History) -> list[RunFinding]:
        """Ask one diagnosis."""
        return list(self.plugins[place](history, self.policy))

    def judge(self, found: Iterable[list[RunFinding]], history: History) -> tuple[Any, ...]:
        """Put what all of them found into one verdict."""
        from difflens.training.verdicts.verdict import judged

        return serious(judged([each for some in found for each in some], history, "").findings)

    def with_held(self, one: Held, places: Iterable[int], history: History) -> dict[int, Any]:
        """Ask some diagnoses with one switch held; nothing of it stays behind."""
        number, value = one
        if number in self.shared:
            vars(history.course).pop("sight", None)
        BOARD.held = {**self.held, number: value}
        try:
            return {place: self.ask(place, history) for place in places}
        finally:
            BOARD.held = self.held
            if number in self.shared:
                vars(history.course).pop("sight", None)


def tried(
    label: Label,
    folder: Path,
    *,
    every: int,
    held: Mapping[int, bool],
    wanted: Mapping[int, frozenset[bool]],
) -> Trial:
    """Replay a run, and at each look hold each wanted switch for once."""
    film, stage = Film(folder / "runs" / label.id), Stage(held)
    show, trial = Show(film), Trial(label.id)
    looks: list[Look] = []
    for stop in [*range(every, len(film), every), len(film)]:
        history = show.until(stop)
        found, saw = _asked(stage, history)
        for one in saw:
            for number, each in one.items():
                trial.seen[number] = trial.seen.get(number, 0) | each
        holds = _to_hold(stage, saw, wanted)
        _hold_each(trial, len(looks), stage, history, found=found, holds=holds)
        looks.append((film.frames[stop - 1][0].step, stage.judge(found, history)))
    trial.outcome = outcome_of(label, looks)
    for switch, by_look in trial.moved.items():
        other = [(step, by_look.get(at, each)) for at, (step, each) in enumerate(looks)]
        worse = trial.outcome.worse(outcome_of(label, other))
        if worse:
            trial.worse.setdefault(switch, worse)
    trial.moved.clear()
    return trial


def _hold_each(
    trial: Trial,
    at: int,
    stage: Stage,
    history: History,
    *,
    found: list[list[RunFinding]],
    holds: Mapping[Held, list[int]],
) -> None:
    """Hold each switch at one look; note what is found otherwise, and what cannot be left out."""
    for one, places in holds.items():
        if one in trial.worse:
            continue
        try:
            other = stage.with_held(one, places, history)
            if any(each != found[place] for place, each in other.items()):
                parts = [other.get(place, each) for place, each in enumerate(found)]
                trial.moved.setdefault(one, {})[at] = stage.judge(parts, history)
        except Exception:  # noqa: BLE001 - what cannot be left out is needed
            trial.worse[one] = ["error"]
    BOARD.clear()


def _asked(stage: Stage, history: History) -> tuple[list[Any], list[dict[int, int]]]:
    """Ask every diagnosis; return what each found, and what the switches saw meanwhile."""
    found, saw = [], []
    BOARD.clear()
    for place in range(len(stage.plugins)):
        found.append(stage.ask(place, history))
        saw.append(BOARD.clear())
    return found, saw


def _to_hold(
    stage: Stage, saw: list[dict[int, int]], wanted: Mapping[int, frozenset[bool]]
) -> dict[Held, list[int]]:
    """Return what would be something else if it were held, and whom to ask then."""
    holds: dict[Held, list[int]] = {}
    for place, one in enumerate(saw):
        for number, bits in one.items():
            for value in wanted.get(number, ()):
                if bits & (FALSE if value else TRUE) and number not in stage.held:
                    holds.setdefault((number, value), []).append(place)
    everyone = list(range(len(stage.plugins)))
    return {one: everyone if one[0] in stage.shared else at for one, at in holds.items()}
