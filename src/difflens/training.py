"""The story of a training run: hook → frame → history → diagnose.

`monitor` hangs hooks on a model; each step they hand a reading to the recorder, which makes a
frame of it on a thread of its own, appends it to the run's file, gathers it into a history, and
asks the diagnoses what they see. Leaving the monitor leaves the model as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

from .errors import InvalidConfig
from .kept import now
from .records import Policy
from .runs import RunFinding
from .watching.telling import warn


def monitor(  # noqa: PLR0913  the names of cli.md 8, all but three by keyword
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
    scaler: Any = None,
    sinks: Iterable[str] = (),
    diagnose_every: int | Literal["auto"] | None = "auto",
    on_finding: Callable[[RunFinding], None] | None = None,
    stop_on: Literal["warning", "critical"] | None = None,
    policy: Policy | None = None,
    fused: bool = True,
) -> Monitor:
    """Watch a PyTorch model train: `with monitor(model, optimizer, run="runs/one") as watch:`.

    `every="auto"` reads every step while that costs less than `budget` of the step's time, and
    samples beyond; `activations` is the number of steps between two looks at activations.
    """
    _check(every, budget, ranks, activations, diagnose_every, stop_on)
    from .hooks.torch import Options, TorchHook

    folder = Path(run)
    options = Options(folder.name, every, budget, activations, ranks, scaler, fused)
    from .watching.alarm import Alarm

    alarm = Alarm(diagnose_every, on_finding, stop_on, policy or Policy(), str(folder))
    hook = TorchHook(model, optimizer, options)
    return Monitor(hook, alarm, folder, tuple(sinks), resume=resume, overwrite=overwrite)


class Monitor:
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
        self._leaving: Any = None

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
        self._leaving = Leaving(self._recorder.flush)
        self._hook.attach(self._recorder, paper.first_step if paper else 0)
        return self

    def step(self, loss: Any = None, *, step: int | None = None, **scalars: Any) -> bool:
        """Close the frame of this step, and say whether `stop_on` asks to stop; never raises."""
        try:
            self._hook.step(loss, scalars, step)
        except Exception as error:  # noqa: BLE001  nothing of ours reaches the loop
            self._hook.fail(error)
        return self.should_stop

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

    @property
    def is_quiet(self) -> bool:
        """Did something of ours go wrong, so that nothing is read any more?"""
        return bool(self._hook.is_quiet)

    @property
    def dropped(self) -> int:
        """How many steps could not be kept."""
        return int(self._recorder.dropped)

    def close(self) -> None:
        """Take the hooks away, keep what waits, end the run."""
        for part in (self._hook, self._recorder, self._leaving):
            try:
                part.close()
            except Exception as error:  # noqa: BLE001
                warn(f"leaving the monitor: {type(error).__name__}: {error}")

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        """Close it; an error of the loop passes through."""
        self.close()


def _check(  # noqa: PLR0917
    every: Any, budget: Any, ranks: Any, activations: Any, diagnose_every: Any, stop_on: Any
) -> None:
    """Refuse settings that have no meaning, before anything is made."""
    if every != "auto" and not (isinstance(every, int) and every >= 1):
        raise InvalidConfig(f"every is {every!r}; it is a number of steps or 'auto'")
    if not 0 < budget <= 1:
        raise InvalidConfig(f"budget is {budget!r}; it is a share of the step's time, up to 1")
    if ranks not in ("merged", "each"):
        raise InvalidConfig(f"ranks is {ranks!r}; it is 'merged' or 'each'")
    if not isinstance(activations, int) or activations < 0:
        raise InvalidConfig(f"activations is {activations!r}; it is a number of steps, 0 for never")
    if diagnose_every not in (None, "auto") and not (
        isinstance(diagnose_every, int) and diagnose_every >= 1
    ):
        raise InvalidConfig(f"diagnose_every is {diagnose_every!r}; steps, 'auto' or None")
    if stop_on not in (None, "warning", "critical"):
        raise InvalidConfig(f"stop_on is {stop_on!r}; it is 'warning', 'critical' or None")
