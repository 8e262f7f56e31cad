"""A run recorded from numbers that somebody else computed: frameworks without hooks to hang on."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, Self

import msgspec

from ..hooks import Reading
from ..kept import now
from ..records import Policy
from ..runs import Layer, RunFinding, RunInfo
from .watched import Watched


class PlainMonitor(Watched):
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
        from ..sinks import sink
        from .alarm import Alarm
        from .leaving import Leaving
        from .paper import Paper
        from .recorder import Recorder

        self.folder = Path(run)
        info = msgspec.structs.replace(info, name=info.name or self.folder.name, created=now())
        self._alarm = Alarm(
            diagnose_every, on_finding, stop_on, policy or Policy(), str(self.folder)
        )
        paper = Paper(self.folder, info, resume=resume, overwrite=overwrite)
        others = [sink[name].plugin(self.folder, info) for name in sinks]
        self._recorder = Recorder(paper, info, self._alarm, others)
        self._parts = (self._recorder, Leaving(self._recorder.flush, self._recorder.park))
        self._info, self._next_step = info, paper.first_step

    def take(
        self, block: Callable[[], Any], scalars: Mapping[str, Any], step: int | None = None
    ) -> bool:
        """Close a frame, and say whether `stop_on` asks to stop; never raises."""
        number = self._next_step if step is None else step
        self._next_step = number + 1
        try:
            given = dict(scalars)
            self._recorder.take(
                Reading(
                    number,
                    time.time(),
                    time.monotonic(),
                    lambda: ({name: float(value) for name, value in given.items()}, block()),
                )
            )
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
        """Say once that what feeds this went quiet, and why."""
        self._recorder.fail(error)

    def __enter__(self) -> Self:
        """Use it in a `with`."""
        return self
