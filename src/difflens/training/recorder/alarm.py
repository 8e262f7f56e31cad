"""Diagnoses while the run goes on, and how a finding reaches the person at the terminal.

Each cause is announced once, and the diagnoses never cost the loop more than their share of time.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Literal

from difflens.core.escape import for_terminal
from difflens.core.policy import Policy

from ..records.runs import RunFinding

if TYPE_CHECKING:
    from ..history.history import History


def warn(text: str) -> None:
    """Warn; where warnings are errors, write it down instead of raising it into a loop."""
    try:
        warnings.warn(f"difflens: {text}", RuntimeWarning, stacklevel=2)
    except RuntimeWarning:
        with suppress(OSError, ValueError, AttributeError):  # nobody may be there to read it
            sys.stderr.write(f"difflens: {text}\n")


def log(finding: RunFinding, run: str) -> None:
    """Write a finding to the log called `difflens`; Python shows it by default."""
    import logging

    since = "" if finding.since_step is None else f" since step {finding.since_step}"
    text = f"{finding.severity}: {finding.name}{since}: {finding.text} (difflens diagnose {run})"
    level = logging.ERROR if finding.severity == "critical" else logging.WARNING
    with suppress(Exception):  # a handler of the user's may fail in any way
        logging.getLogger("difflens").log(level, "%s", for_terminal(text, 1000))


_SHARE = 0.0025  # of the time that passes, at the most, where the interval is ours to choose
_CREDIT = 0.5  # seconds of looks that a run may have as it begins, and when something looks wrong
_AGAIN = 100.0  # seconds before something that looks wrong earns that once more: half a percent
SEVERITIES = ("info", "warning", "critical")


class Alarm:
    """Runs the diagnoses at an interval, and reports what is new."""

    def __init__(
        self,
        every: int | Literal["auto"] | None,
        on_finding: Callable[[RunFinding], None] | None,
        stop_on: str | None,
        policy: Policy,
        run: str,
    ) -> None:
        """Look every so many steps, for a share of the time ("auto"), or never (None)."""
        self._every, self._on_finding, self._stop_on = every, on_finding, stop_on
        self._policy, self._run = policy, run
        self.clock = time.monotonic  # of the time that passes for the loop
        self._next_step, self._next_time = 0, 0.0
        self._credit = _CREDIT
        self._next_credit = 0.0
        if every is not None:
            from ..diagnoses import diagnosis

            list(diagnosis)  # read in now: no step is to wait for it
        self._reported: set[tuple[str, str]] = set()
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
    def is_by_time(self) -> bool:
        """Does it choose when to look, so that the latest step is the one to look at?"""
        return self._every == "auto" and self.is_on

    @property
    def seconds_left(self) -> float:
        """Seconds to the next look that is due by time."""
        return self._next_time - self.clock()

    def hurry(self) -> None:
        """Look at the next step and often from then on, because something looks wrong."""
        now = self.clock()
        if now >= self._next_credit:
            self._credit, self._next_credit = _CREDIT, now + _AGAIN
        if self._credit > 0:
            self._next_time = now

    @property
    def is_on(self) -> bool:
        """Are there looks at all?"""
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
        took = now - begun
        self._credit -= took
        # While there is credit it looks half of the time.
        self._next_time = now + (took if self._credit > 0 else took / _SHARE)
        if isinstance(self._every, int):
            self._next_step = step + self._every
        for finding in self.findings:
            self._report(finding)

    def _report(self, finding: RunFinding) -> None:
        """Report a cause once, and again only when it has become worse."""
        if finding.severity == "info" or (finding.name, finding.severity) in self._reported:
            return
        reached = SEVERITIES.index(finding.severity)
        self._reported |= {(finding.name, word) for word in SEVERITIES[: reached + 1]}
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
