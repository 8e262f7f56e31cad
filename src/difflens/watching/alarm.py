"""Diagnoses while the run goes on: told once for each cause, never at the loop's cost."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

from ..records import Policy
from ..runs import RunFinding
from .telling import log, warn

if TYPE_CHECKING:
    from ..history.history import History

_SHARE = 0.0025  # of the time that passes, at the most, where the interval is ours to choose
_LEAST_SECONDS = 2.0
SEVERITIES = ("info", "warning", "critical")


class Alarm:
    """Runs the diagnoses at an interval, and says what is new."""

    def __init__(
        self,
        every: int | Literal["auto"] | None,
        on_finding: Callable[[RunFinding], None] | None,
        stop_on: str | None,
        policy: Policy,
        run: str,
    ) -> None:
        """Take steps between two looks, "auto" for a share of the time, None for never."""
        self._every, self._on_finding, self._stop_on = every, on_finding, stop_on
        self._policy, self._run = policy, run
        self.clock = time.monotonic  # of the time that passes for the loop
        self._next_step, self._next_time = 0, self.clock() + _LEAST_SECONDS
        self._told: set[tuple[str, str]] = set()
        self._is_broken = False
        self.findings: tuple[RunFinding, ...] = ()
        self.should_stop = False
        self.wants_checkpoint = False  # until somebody has heard it

    def is_due(self, step: int) -> bool:
        """Is it time to look again?"""
        if not self.is_on:
            return False
        if self._every == "auto":
            return self.clock() >= self._next_time
        return step >= self._next_step

    @property
    def is_on(self) -> bool:
        """Does it look at all?"""
        return self._every is not None and not self._is_broken

    def look(self, history: History, step: int) -> None:
        """Diagnose what was recorded so far; call back for each cause that is new."""
        from ..diagnoses import diagnose

        begun = self.clock()
        try:
            self.findings = diagnose(history, self._policy, run=self._run).findings
        except Exception as error:  # noqa: BLE001  a diagnosis that fails must not end the recording
            self._is_broken = True
            warn(f"the diagnoses stopped: {type(error).__name__}: {error}")
            return
        now = self.clock()
        self._next_time = now + max(_LEAST_SECONDS, (now - begun) / _SHARE)
        if isinstance(self._every, int):
            self._next_step = step + self._every
        for finding in self.findings:
            self._tell(finding)

    def _tell(self, finding: RunFinding) -> None:
        """Tell a cause once, and again only where it has become worse."""
        if finding.severity == "info" or (finding.name, finding.severity) in self._told:
            return
        reached = SEVERITIES.index(finding.severity)
        self._told |= {(finding.name, word) for word in SEVERITIES[: reached + 1]}
        if self._stop_on is not None and reached >= SEVERITIES.index(self._stop_on):
            self.should_stop = True
        self.wants_checkpoint = True
        log(finding, self._run)
        if self._on_finding is None:
            return
        try:
            self._on_finding(finding)
        except Exception as error:  # noqa: BLE001  the user's code, on our thread
            self._on_finding = None
            warn(f"on_finding failed and is not called again: {type(error).__name__}: {error}")
