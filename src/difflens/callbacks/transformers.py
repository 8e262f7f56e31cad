"""Hugging Face: a callback for `Trainer` that watches the model it trains.

    Trainer(model, …, callbacks=[difflens.transformers_callback("runs/one")])

The trainer tells its loss in a log that comes after the end of a step; so a frame is closed at the
beginning of the next step, when that log has been heard.
"""

from __future__ import annotations

from numbers import Real
from pathlib import Path
from typing import Any

_OWN_NAMES = {"learning_rate": "lr"}  # of Trainer's log, where a frame has another
_NOT_OF_A_STEP = frozenset({"epoch", "total_flos", "step"})


def transformers_callback(
    run: str | Path = "runs/run", *, save_on_stop: bool = False, **how: Any
) -> Any:
    """Give a `TrainerCallback` that records a run; `how` is that of `difflens.monitor`.

    Where `stop_on` asks to stop, training ends after that step, with a checkpoint if wanted.
    """
    from transformers import TrainerCallback

    kind = type("DifflensCallback", (_Watching, TrainerCallback), {})
    return kind(run, save_on_stop, how)


class _Watching:
    """What the callback does; its base comes from a library that is imported late."""

    def __init__(self, run: str | Path, save_on_stop: bool, how: dict[str, Any]) -> None:
        self._run, self._save_on_stop, self._how = run, save_on_stop, how
        self.watch: Any = None
        self._heard: dict[str, float] = {}
        self._open_step: int | None = None

    def on_train_begin(self, _args: Any, _state: Any, _control: Any, **parts: Any) -> None:
        """Put the hooks on."""
        from ..training import monitor

        self.close()
        optimizer = unwrapped(parts.get("optimizer"))
        self.watch = monitor(parts["model"], optimizer, self._run, **self._how).__enter__()

    def on_step_begin(self, _args: Any, _state: Any, control: Any, **_parts: Any) -> None:
        """Close the frame of the step before."""
        self._close_frame(control)

    def on_step_end(self, _args: Any, state: Any, _control: Any, **_parts: Any) -> None:
        """Remember which step is to be closed."""
        self._open_step = int(state.global_step)

    def on_log(self, _args: Any, _state: Any, _control: Any, **parts: Any) -> None:
        """Hear what the trainer says of the step."""
        self._heard |= {
            _OWN_NAMES.get(name, name): float(value)
            for name, value in (parts.get("logs") or {}).items()
            if isinstance(value, Real) and name not in _NOT_OF_A_STEP
        }

    def on_train_end(self, _args: Any, _state: Any, control: Any, **_parts: Any) -> None:
        """Close the last frame, and take the hooks away."""
        self._close_frame(control)
        self.close()

    def _close_frame(self, control: Any) -> None:
        if self.watch is None or self._open_step is None:
            return
        heard, self._heard = self._heard, {}
        loss, step = heard.pop("loss", None), self._open_step
        self._open_step = None
        if self.watch.step(loss=loss, step=step, **heard):
            control.should_training_stop = True
            control.should_save = control.should_save or self._save_on_stop

    def close(self) -> None:
        """Take the hooks away, where training ended without saying so."""
        watch, self.watch = self.watch, None
        if watch is not None:
            watch.close()


def unwrapped(optimizer: Any) -> Any:
    """Give the optimizer inside what Accelerate and others put around it."""
    while hasattr(optimizer, "optimizer"):
        optimizer = optimizer.optimizer
    return optimizer
