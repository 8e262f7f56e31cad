"""The story of a training run: hook → frame → history → diagnose.

`monitor` hangs hooks on a model; each step they hand a reading to the recorder, which makes a
frame of it on a thread of its own, appends it to the run's file, gathers it into a history, and
asks the diagnoses what they see. Leaving the monitor leaves the model as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

from .errors import InvalidConfig
from .kept import now
from .records import Policy
from .runs import Diagnosed, RunFinding
from .watching.watched import Watched

if TYPE_CHECKING:
    from .history.history import History


def monitor(
    model: Any,
    optimizer: Any = None,
    run: str | Path = "runs/run",
    *,
    every: int | Literal["auto"] = "auto",
    budget: float = 0.01,
    ranks: Literal["merged", "each"] = "merged",
    resume: bool = False,
    overwrite: bool = False,
    activations: int = 0,
    updates: int | Literal["auto"] = "auto",
    scaler: Any = None,
    sinks: Iterable[str] = (),
    diagnose_every: int | Literal["auto"] | None = "auto",
    on_finding: Callable[[RunFinding], None] | None = None,
    stop_on: Literal["warning", "critical"] | None = None,
    policy: Policy | None = None,
    fused: bool = True,
    directions: bool = False,
) -> Monitor:
    """Watch a PyTorch model train, in a `with`; `step` on what it gives closes each frame.

    `every="auto"` reads every step while that costs less than `budget` of the step's time, and
    samples beyond; `activations` is the number of steps between two looks at activations, and
    `updates` that of readings between two looks at weights, which are then read whole; "auto" is
    every reading, of large weights on a GPU by a sample.
    """
    from .hooks.torch import Options, TorchHook
    from .watching.alarm import Alarm
    from .watching.settings import check

    check(every, budget, ranks, activations, updates, diagnose_every, stop_on)
    folder = Path(run)
    options = Options(
        folder.name, every, budget, activations, ranks, scaler, updates, fused, directions
    )
    alarm = Alarm(diagnose_every, on_finding, stop_on, policy or Policy(), str(folder))
    hook = TorchHook(model, optimizer, options)
    return Monitor(hook, alarm, folder, tuple(sinks), resume=resume, overwrite=overwrite)


class Monitor(Watched):
    """A model that is watched. Use it in a `with`, and call `step` once an update."""

    def __init__(
        self,
        hook: Any,
        alarm: Any,
        folder: Path,
        sinks: tuple[str, ...],
        *,
        resume: bool,
        overwrite: bool,
    ) -> None:
        """Take the parts; recording begins on entering."""
        self.folder = folder
        self._hook, self._alarm, self._sinks = hook, alarm, sinks
        self._how = {"resume": resume, "overwrite": overwrite}
        self._recorder: Any = None

    def __enter__(self) -> Self:
        """Make the run, and put the hooks on."""
        import msgspec

        from .sinks import sink
        from .watching.leaving import Leaving
        from .watching.paper import Paper
        from .watching.recorder import Recorder

        info = msgspec.structs.replace(self._hook.info, created=now())
        paper = Paper(self.folder, info, **self._how) if self._hook.writes else None
        others = [sink[name].plugin(self.folder, info) for name in self._sinks] if paper else []
        self._recorder = Recorder(paper, info, self._alarm, others)
        leaving = Leaving(self._recorder.flush, self._at_exit)
        self._parts = (self._hook, self._recorder, leaving)
        self._hook.attach(self._recorder, paper.first_step if paper else 0)
        return self

    def step(self, loss: Any = None, *, step: int | None = None, **scalars: Any) -> bool:
        """Close the frame of this step, and say whether `stop_on` asks to stop; never raises."""
        try:
            self._hook.step(loss, scalars, step)
        except Exception as error:  # noqa: BLE001  nothing of ours reaches the loop
            self._hook.fail(error)
        stop: bool = self._alarm.should_stop  # what the property says, without a call more
        return stop

    @property
    def is_quiet(self) -> bool:
        """Did something of ours go wrong, so that nothing is read any more?"""
        return bool(self._hook.is_quiet)

    def close(self) -> None:
        """Take hooks away, keep what waits, end the run, and leave the other ranks."""
        super().close()
        self._leave_ranks()

    def _at_exit(self) -> None:
        """Be done before the interpreter is, unless it was closed."""
        self._recorder.park()
        self._leave_ranks()

    def _leave_ranks(self) -> None:
        if self._recorder is not None and self._recorder.has_ended:
            self._hook.leave_ranks()


def diagnose(
    history: str | PathLike[str] | History, policy: Policy | None = None, *, run: str = ""
) -> Diagnosed:
    """Say what is wrong with a run, the most likely cause first; `run` is its name in the answer.

    It is given as `difflens diagnose` takes it, as the path of a folder that the monitor wrote or
    of a log, or as a history that was read already.
    """
    from .diagnoses import diagnose as asked
    from .history import read_history
    from .history.history import History

    if isinstance(history, (str, PathLike)):
        path: str = fspath(history)
        history, run = read_history(path), run or path
    if not isinstance(history, History):
        raise InvalidConfig(f"history is a {type(history).__name__}, neither a path nor a History")
    return asked(history, policy or Policy(), run=run)
