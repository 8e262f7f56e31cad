"""What one rule set said of one run, in a shape in which all of them can be compared."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Alarm:
    """One warning: which classes it may mean, since when it is raised, about which layers."""

    names: frozenset[str]
    step: int
    critical: bool = False
    layers: tuple[str, ...] = ()


@dataclass(frozen=True)
class Verdict:
    """All that was said of a run.

    `alarms` are in the order in which they came; `last` is what was said last, the most
    likely cause first. A rule set that judges only whole runs has the same in both.
    """

    alarms: tuple[Alarm, ...] = ()
    last: tuple[Alarm, ...] = ()
    live: bool = True  # was it asked while the run went on?
    fixes: tuple[dict[str, object], ...] = field(default=())

    @property
    def first(self) -> Alarm | None:
        """The alarm that came first."""
        return self.alarms[0] if self.alarms else None
