"""Hugging Face: a callback for `Trainer` that watches the model it trains.

    Trainer(model, …, callbacks=[difflens.transformers_callback("runs/one")])

The trainer tells what it measured in a log that comes after the end of a step; so a frame is closed
at the beginning of the next step, when that log has been heard. Its loss is there at few steps, and
a mean over those before: the loss of a step is taken from the model's own output instead, and from
the log where the model gives out none.
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
    """Return a `TrainerCallback` that records a run; `how` is that of `difflens.monitor`.

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
        self._losses: _Losses | None = None
        self._loss: Any = None  # of the step to be closed

    def on_train_begin(self, _args: Any, _state: Any, _control: Any, **parts: Any) -> None:
        """Put the hooks on."""
        from ..story import monitor

        self.close()
        optimizer = unwrapped(parts.get("optimizer"))
        self.watch = monitor(parts["model"], optimizer, self._run, **self._how).__enter__()
        self._losses = _Losses(parts["model"])

    def on_step_begin(self, _args: Any, _state: Any, control: Any, **_parts: Any) -> None:
        """Close the frame of the step before."""
        self._close_frame(control)
        if self._losses is not None:
            self._losses.collect()  # what went through the model between two steps is of none

    def on_step_end(self, _args: Any, state: Any, _control: Any, **_parts: Any) -> None:
        """Remember which step is to be closed, and its loss."""
        self._open_step = int(state.global_step)
        self._loss = None if self._losses is None else self._losses.collect()

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
        logged, step = heard.pop("loss", None), self._open_step
        loss = logged if self._loss is None else self._loss
        self._open_step = self._loss = None
        if self.watch.step(loss=loss, step=step, **heard):
            control.should_training_stop = True
            control.should_save = control.should_save or self._save_on_stop

    def close(self) -> None:
        """Take the hooks away, where training ended without saying so."""
        watch, self.watch = self.watch, None
        losses, self._losses = self._losses, None
        if losses is not None:
            losses.close()
        if watch is not None:
            watch.close()


class _Losses:
    """The losses that a model gives out while it trains: those of an update make one."""

    def __init__(self, model: Any) -> None:
        from ..hooks.torch.late import Silent

        # The trainer may still multiply a loss in place, so they are added up when it is done.
        self._parts: list[Any] = []
        self._are_shares = False  # was each divided by the items of the whole update?
        self._handle = model.register_forward_hook(Silent(self._see), with_kwargs=True)

    def _see(self, model: Any, _given: Any, named: dict[str, Any], output: Any) -> None:
        try:
            loss = _loss_in(output) if model.training else None
            if loss is not None:
                self._parts.append(loss)
                self._are_shares = named.get("num_items_in_batch") is not None
        except Exception:  # noqa: BLE001, S110  nothing of ours reaches the loop
            pass

    def collect(self) -> Any:
        """Return the loss over all micro-batches since this was asked last; None if none was."""
        parts, self._parts = self._parts, []
        if not parts:
            return None
        total = sum(parts[1:], start=parts[0])
        return total if self._are_shares else total / len(parts)

    def close(self) -> None:
        """Take the hook away."""
        self._handle.remove()
        self._parts = []


def _loss_in(output: Any) -> Any:
    """Find the loss in what a model gave out, off the graph; None if there is none to train."""
    loss: Any = output[0] if isinstance(output, tuple) and output else None
    if hasattr(output, "get"):
        loss = output.get("loss")
    is_trained = getattr(loss, "requires_grad", False) and loss.numel() == 1
    return loss.detach() if is_trained else None


def unwrapped(optimizer: Any) -> Any:
    """Return the optimizer inside what Accelerate and others put around it."""
    while hasattr(optimizer, "optimizer"):
        optimizer = optimizer.optimizer
    return optimizer
