"""Lightning: a callback for `Trainer` that watches the module it fits.

Trainer(callbacks=[difflens.lightning_callback("runs/one")])
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .transformers import unwrapped

_NOT_OF_A_STEP = frozenset({"loss", "step", "epoch"})


def lightning_callback(run: str | Path = "runs/run", **how: Any) -> Any:
    """Give a Lightning `Callback` that records a run; `how` is that of `difflens.monitor`.

    Micro-batches of an accumulated step make one frame. Where `stop_on` asks to stop, the trainer
    is told to.
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
    """What the callback does; its base comes from a library that is imported late."""

    def __init__(self, run: str | Path, how: dict[str, Any]) -> None:
        self._run, self._how = run, how
        self.watch: Any = None
        self._seen = 0

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        """Put the hooks on."""
        from ..training import monitor

        optimizers = [unwrapped(each) for each in trainer.optimizers]
        scaler = getattr(trainer.precision_plugin, "scaler", None)
        one = optimizers[0] if len(optimizers) == 1 else optimizers
        self._seen = trainer.global_step
        how = {"scaler": scaler, **self._how}
        self.watch = monitor(pl_module, one, self._run, **how).__enter__()

    def on_train_batch_end(
        self, trainer: Any, _module: Any, outputs: Any, _batch: Any, _index: int
    ) -> None:
        """Close the frame where this batch ended an update."""
        if self.watch is None or trainer.global_step == self._seen:
            return
        self._seen = trainer.global_step
        loss = outputs.get("loss") if isinstance(outputs, dict) else outputs
        named = {
            name: value
            for name, value in trainer.callback_metrics.items()
            if name not in _NOT_OF_A_STEP
        }
        if self.watch.step(loss=loss, step=self._seen, **named):
            trainer.should_stop = True

    def on_train_end(self, _trainer: Any, _module: Any) -> None:
        """Take the hooks away."""
        self._close()

    def on_exception(self, _trainer: Any, _module: Any, _error: BaseException) -> None:
        """Take the hooks away; what was recorded stays."""
        self._close()

    def _close(self) -> None:
        watch, self.watch = self.watch, None
        if watch is not None:
            watch.close()
