"""What every recording can be asked while it goes on, whoever feeds it."""

from __future__ import annotations

from typing import Any

from ..runs import RunFinding
from .telling import warn


class Watched:
    """A recorder and an alarm, seen from the loop."""

    _recorder: Any
    _alarm: Any
    _parts: tuple[Any, ...] = ()  # what is closed, in this order

    def flush(self) -> bool:
        """Wait until every step so far is on disk, two seconds at the most; is it?"""
        return bool(self._recorder.flush())

    @property
    def findings(self) -> tuple[RunFinding, ...]:
        """What the diagnoses said when they last looked, the most likely cause first."""
        return tuple(self._alarm.findings)

    @property
    def should_stop(self) -> bool:
        """Was there a finding as grave as `stop_on`? The loop decides what to do about it."""
        return bool(self._alarm.should_stop)

    def checkpoint_is_wanted(self) -> bool:
        """Say once for each new finding that now is the time to save the model."""
        wanted, self._alarm.wants_checkpoint = self._alarm.wants_checkpoint, False
        return bool(wanted)

    @property
    def dropped(self) -> int:
        """How many steps could not be kept."""
        return int(self._recorder.dropped)

    def close(self) -> None:
        """Take hooks away, keep what waits, end the run."""
        for part in self._parts:
            try:
                part.close()
            except Exception as error:  # noqa: BLE001  nothing of ours reaches the loop
                warn(f"leaving the monitor: {type(error).__name__}: {error}")

    def __exit__(self, *_error: object) -> None:
        """Close it; an error of the loop passes through."""
        self.close()
