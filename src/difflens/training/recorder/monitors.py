"""What all monitors share: their settings, what the loop may ask, and one fed with numbers.

`PlainMonitor` is for frameworks without hooks to hang on: somebody else computes the numbers.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, Self

import msgspec

from difflens.core.errors import InvalidConfig
from difflens.core.policy import Policy

from ..hooks import Reading
from ..records.runs import Layer, RunFinding, RunInfo


def check_settings(  # noqa: PLR0917  one for each setting, in the order of the monitor's own
    every: Any,
    budget: Any,
    ranks: Any,
    activations: Any,
    updates: Any,
    diagnose_every: Any,
    stop_on: Any,
) -> None:
    """Raise `InvalidConfig` for the first setting without a meaning."""
    if every != "auto" and not _is_count(every, 1):
        raise InvalidConfig(f"every is {every!r}; it is a number of steps or 'auto'")
    if isinstance(budget, bool) or not isinstance(budget, (int, float)) or not 0 < budget <= 1:
        raise InvalidConfig(f"budget is {budget!r}; it is a share of the step's time, up to 1")
    if ranks not in {"merged", "each"}:
        raise InvalidConfig(f"ranks is {ranks!r}; it is 'merged' or 'each'")
    if not _is_count(activations, 0):
        raise InvalidConfig(f"activations is {activations!r}; it is a number of steps, 0 for never")
    if updates != "auto" and not _is_count(updates, 1):
        raise InvalidConfig(f"updates is {updates!r}; it is a number of readings or 'auto'")
    if diagnose_every not in {None, "auto"} and not _is_count(diagnose_every, 1):
        raise InvalidConfig(f"diagnose_every is {diagnose_every!r}; steps, 'auto' or None")
    if stop_on not in {None, "warning", "critical"}:
        raise InvalidConfig(f"stop_on is {stop_on!r}; it is 'warning', 'critical' or None")


def _is_count(value: Any, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


class RunMonitor:
    """What the loop can ask of a recording while it goes on."""

    _recorder: Any
    _alarm: Any
    _guard: Any

    def flush(self) -> bool:
        """Wait until every step so far is on disk, at most two seconds; return whether it is."""
        return bool(self._recorder.flush())

    @property
    def findings(self) -> tuple[RunFinding, ...]:
        """The findings of the last look, the most likely cause first."""
        return tuple(self._alarm.findings)

    @property
    def should_stop(self) -> bool:
        """Was there a finding as severe as `stop_on`? The loop decides what to do about it."""
        return bool(self._alarm.should_stop)

    def checkpoint_is_wanted(self) -> bool:
        """Return True once per new finding: now is the time to save the model."""
        wanted, self._alarm.wants_checkpoint = self._alarm.wants_checkpoint, False
        return bool(wanted)

    @property
    def dropped(self) -> int:
        """How many steps could not be recorded."""
        return int(self._recorder.dropped)

    @property
    def read_steps(self) -> int:
        """How many of the recorded steps have their layers; every one has its loss and scalars."""
        return int(self._recorder.read_steps)

    def close(self) -> None:
        """Remove the hooks, write what waits, end the run."""
        if self._guard is not None:
            self._guard.close()

    def __exit__(self, *_error: object) -> None:
        """Close it; an error of the loop passes through."""
        self.close()


class PlainReading(Reading, frozen=True, gc=False):
    """A step whose numbers somebody else computes, perhaps on a device still."""

    scalars: dict[str, Any]
    block: Callable[[], Any]  # waits for the numbers of the layers


class PlainFrames:
    """Finishes plain readings, one by one."""

    def make(self, reading: PlainReading) -> tuple[dict[str, float], Any]:
        """Wait for the numbers of one step."""
        scalars = {name: float(value) for name, value in reading.scalars.items()}
        return scalars, reading.block()

    def make_all(self, _readings: list[Any]) -> None:
        """Return None: nothing is gained by waiting for several together."""


class PlainMonitor(RunMonitor):
    """What `difflens.monitor` is for PyTorch, for whoever brings blocks of numbers."""

    def __init__(
        self,
        run: str | Path,
        info: RunInfo,
        *,
        resume: bool = False,
        overwrite: bool = False,
        sinks: Iterable[str] = (),
        diagnose_every: int | Literal["auto"] | None = "auto",
        on_finding: Callable[[RunFinding], None] | None = None,
        stop_on: Literal["warning", "critical"] | None = None,
        policy: Policy | None = None,
    ) -> None:
        """Make the run and begin to record; a run that cannot be made is raised here."""
        from .alarm import Alarm
        from .exit_guard import ExitGuard
        from .recorder import start_recording

        self.folder = Path(run)
        info = msgspec.structs.replace(info, name=info.name or self.folder.name)
        self._alarm = Alarm(
            diagnose_every, on_finding, stop_on, policy or Policy(), str(self.folder)
        )
        self._recorder = start_recording(
            self.folder, info, PlainFrames(), self._alarm, sinks, resume=resume, overwrite=overwrite
        )
        self._guard = ExitGuard(self._recorder)
        self._info, self._next_step = self._recorder.info, self._recorder.first_step

    def end_step(
        self, block: Callable[[], Any], scalars: Mapping[str, Any], step: int | None = None
    ) -> bool:
        """Close a frame, and say whether `stop_on` asks to stop; never raises."""
        number = self._next_step if step is None else step
        self._next_step = number + 1
        try:
            times = time.time(), time.monotonic()
            self._recorder.record(PlainReading(number, *times, dict(scalars), block))
        except Exception as error:  # noqa: BLE001  nothing of ours reaches the loop
            self._recorder.fail(error)
        return self.should_stop

    def note(self, what: str, text: str = "", **data: Any) -> None:
        """Write down something that happened, or a fact about the model."""
        self._recorder.note(what, text, **data)

    def describe(self, layers: tuple[Layer, ...]) -> None:
        """Say anew what is known of the layers; there are as many, in the same order."""
        self._info = msgspec.structs.replace(self._info, layers=layers)
        self._recorder.describe(self._info)

    def fail(self, error: Exception) -> None:
        """Warn once that what feeds this monitor stopped, and why."""
        self._recorder.fail(error)

    def __enter__(self) -> Self:
        """Use it in a `with`."""
        return self
