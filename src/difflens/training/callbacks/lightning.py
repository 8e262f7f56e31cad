"""Lightning: a callback for `Trainer` that watches the module it fits.

Trainer(callbacks=[difflens.lightning_callback("runs/one")])
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .transformers import unwrapped

_NOT_OF_A_STEP = frozenset({"loss", "step", "epoch"})


def lightning_callback(run: str | Path = "runs/run", **how: Any) -> Any:
    """Return a Lightning `Callback` that records a run; `how` is that of `difflens.monitor`.

    Micro-batches of an accumulated step make one frame. Where `stop_on` asks to stop, the trainer
    stops.
    """
    return type("DifflensCallback", (_Watching, _callback()), {})(run, how)


def _callback() -> Any:
    try:
        from lightning.pytorch import Callback
    except ImportError:  # the package had another name before 2.0, and still may
        from pytorch_lightning import Callback as OlderCallback

        return OlderCallback
    return Callback


class _Watching:
    """What the callback does; its base comes from a library that is imported late.

    What is measured on held-back data after a step is known when the next begins; so a frame is
    closed then, or when training ends.
    """

    def __init__(self, run: str | Path, how: dict[str, Any]) -> None:
        self._run, self._how = run, how
        self.watch: Any = None
        self._seen = 0
        self._metrics: dict[str, Any] = {}
        self._loss: Any = None  # of the micro-batches since the last update, each by its share
        self._open_step: int | None = None

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        """Put the hooks on."""
        from ..story import monitor

        optimizers = [unwrapped(each) for each in trainer.optimizers]
        scaler = getattr(trainer.precision_plugin, "scaler", None)
        one = optimizers[0] if len(optimizers) == 1 else optimizers
        self._seen, self._loss, self._open_step = trainer.global_step, None, None
        self._new_metrics(trainer)  # those of a look before training are of no step
        how = {"scaler": scaler, **self._how}
        self.watch = monitor(pl_module, one, self._run, **how).__enter__()

    def on_train_batch_start(self, trainer: Any, _module: Any, _batch: Any, _index: int) -> None:
        """Close the frame of the update before."""
        self._close_frame(trainer)

    def on_train_batch_end(
        self, trainer: Any, _module: Any, outputs: Any, _batch: Any, _index: int
    ) -> None:
        """Remember the loss, and which step is to be closed where this batch ended an update."""
        if self.watch is None:
            return
        loss = outputs.get("loss") if isinstance(outputs, dict) else outputs
        if loss is not None:  # Lightning has divided it by the number of micro-batches
            self._loss = loss if self._loss is None else self._loss + loss
        if trainer.global_step != self._seen:
            self._seen = self._open_step = trainer.global_step

    def _close_frame(self, trainer: Any) -> None:
        if self.watch is None or self._open_step is None:
            return
        step, loss = self._open_step, self._loss
        self._open_step = self._loss = None
        if self.watch.step(loss=loss, step=step, **self._new_metrics(trainer)):
            trainer.should_stop = True

    def _new_metrics(self, trainer: Any) -> dict[str, Any]:
        """Return the metrics that were logged since this was asked last.

        Lightning keeps the last value of each for good. One that was not logged again lies where it
        lay, for it is held here and its place cannot have been given to another.
        """
        now = {
            name: value
            for name, value in trainer.callback_metrics.items()
            if name not in _NOT_OF_A_STEP
        }
        before, self._metrics = self._metrics, now
        return {name: each for name, each in now.items() if not _is_same(before.get(name), each)}

    def on_train_end(self, trainer: Any, _module: Any) -> None:
        """Close the last frame, and take the hooks away."""
        self._close_frame(trainer)
        self._close()

    def on_exception(self, trainer: Any, _module: Any, _error: BaseException) -> None:
        """Take the hooks away; what was recorded stays."""
        self._close_frame(trainer)
        self._close()

    def _close(self) -> None:
        watch, self.watch = self.watch, None
        if watch is not None:
            watch.close()


def _is_same(before: Any, now: Any) -> bool:
    """Are both one number in one place, and not two numbers that are alike?"""
    return before is now or (
        hasattr(before, "data_ptr")
        and hasattr(now, "data_ptr")
        and before.data_ptr() == now.data_ptr()
    )
