"""The story of a training run: hook → frame → history → diagnose. Read this second.

1. `monitor` puts a hook on a model. The hook reads gradients and weights at each optimizer step.
2. `Monitor.step` closes the step: the hook gives the recorder one reading of it.
3. The recorder's thread makes a frame of each reading, appends it to the run's file, adds it to a
   history, and lets the alarm diagnose that history now and then.
4. `diagnose` asks every diagnosis about a history, live or read from a file.

`docs/walks/training.md` lists the functions on this way. Leaving the monitor leaves the model as it
was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

from difflens.core.errors import InvalidConfig
from difflens.core.policy import Policy

from .recorder.monitors import RunMonitor, check_settings
from .records.runs import Diagnosed, RunFinding

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
    """Watch a PyTorch model train, in a `with`; call `step` on the result once per update.

    `every="auto"` reads the layers of every step while that costs less than `budget` of the step's
    time, and of fewer steps otherwise. `activations` is the number of steps between two readings of
    activations. `updates` is the number of readings between two readings of the weights, which are
    then read completely; "auto" reads them each time, large ones on a GPU by a sample.
    """
    from .hooks.torch.hook import TorchHook
    from .hooks.torch.info import Options
    from .recorder.alarm import Alarm

    check_settings(every, budget, ranks, activations, updates, diagnose_every, stop_on)
    folder = Path(run)
    options = Options(
        folder.name, every, budget, activations, ranks, scaler, updates, fused, directions
    )
    alarm = Alarm(diagnose_every, on_finding, stop_on, policy or Policy(), str(folder))
    hook = TorchHook(model, optimizer, options)
    return Monitor(hook, alarm, folder, tuple(sinks), resume=resume, overwrite=overwrite)


class Monitor(RunMonitor):
    """A model that is watched. Use it in a `with`, and call `step` once per update."""

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
        """Store the parts; recording begins on entering."""
        self.folder = folder
        self._hook, self._alarm, self._sinks = hook, alarm, sinks
        self._how = {"resume": resume, "overwrite": overwrite}
        self._recorder = self._guard = None

    def __enter__(self) -> Self:
        """Make the run, and put the hooks on."""
        from .recorder.exit_guard import ExitGuard
        from .recorder.recorder import start_recording

        hook = self._hook
        self._recorder = start_recording(
            self.folder,
            hook.info,
            hook.frames,
            self._alarm,
            self._sinks,
            writes=hook.writes,
            **self._how,
        )
        self._guard = ExitGuard(self._recorder, hook)
        hook.attach(self._recorder, self._recorder.first_step)
        return self

    def step(self, loss: Any = None, *, step: int | None = None, **scalars: Any) -> bool:
        """Close the frame of this step; return whether `stop_on` asks to stop. Never raises."""
        try:
            self._hook.step(loss, scalars, step)
        except Exception as error:  # noqa: BLE001  nothing of ours reaches the loop
            self._hook.fail(error)
        stop: bool = self._alarm.should_stop  # what the property says, without a call more
        return stop

    @property
    def is_quiet(self) -> bool:
        """Did the hook fail, so that nothing is read any more?"""
        return bool(self._hook.is_quiet)


def diagnose(
    history: str | PathLike[str] | History, policy: Policy | None = None, *, run: str = ""
) -> Diagnosed:
    """Report what is wrong with a run, the most likely cause first; `run` names it in the result.

    `history` is the path of a run's folder or of a log, as for `difflens diagnose`, or a history
    that was read already.
    """
    from .diagnoses import diagnose as ask_diagnoses
    from .history import read_history
    from .history.history import History

    if isinstance(history, (str, PathLike)):
        path: str = fspath(history)
        history, run = read_history(path), run or path
    if not isinstance(history, History):
        raise InvalidConfig(f"history is a {type(history).__name__}, neither a path nor a History")
    return ask_diagnoses(history, policy or Policy(), run=run)
