"""Keras 3: a callback for `fit` that watches the model it trains, on the backends torch and JAX.

    model.fit(…, callbacks=[difflens.keras_callback("runs/one")])

A Keras callback does not see gradients; the optimizer's `apply` does. So that is wrapped while
`fit` runs: on torch the tensors are read there, on JAX, where `apply` is traced and compiled, their
numbers are made inside the compiled step and handed out of it by a callback of JAX.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ..errors import DifflensError
from ..runs import Layer, RunInfo
from ..watching.plain import PlainMonitor


def keras_callback(run: str | Path = "runs/run", **how: Any) -> Any:
    """Give a Keras `Callback` that records a run; `how` is that of `difflens.monitor`.

    Where `stop_on` asks to stop, `model.stop_training` is set.
    """
    import keras

    backend = keras.backend.backend()
    if backend not in _READERS:
        raise DifflensError(
            f"Keras runs on {backend}, whose gradients cannot be read",
            hint="KERAS_BACKEND=torch or jax",
        )
    kind = type("DifflensCallback", (_Watching, keras.callbacks.Callback), {})
    return kind(run, how, backend, keras.__version__)


class _Watching:
    """What the callback does; its base comes from a library that is imported late."""

    model: Any

    def __init__(self, run: str | Path, how: dict[str, Any], backend: str, version: str) -> None:
        super().__init__()
        self._run, self._how = run, how
        self._backend, self._version = backend, version
        self.watch: PlainMonitor | None = None
        self._unwrap: Callable[[], None] = lambda: None
        self._blocks: deque[Any] = deque()
        self._batches, self._sum = 0, 0.0

    def on_train_begin(self, _logs: Any = None) -> None:
        """Begin the run and wrap the optimizer."""
        optimizer = self.model.optimizer
        info = RunInfo(
            layers=tuple(map(_layer, self.model.trainable_variables)),
            framework=f"keras {self._version} on {self._backend}",
            gradient="before clipping by the optimizer",
            optimizer={"name": type(optimizer).__name__},
        )
        self._close()
        self.watch = PlainMonitor(self._run, info, **self._how)
        self._unwrap = _wrapped(optimizer, _READERS[self._backend](self._blocks.append))

    def on_epoch_begin(self, _epoch: int, _logs: Any = None) -> None:
        """Keras begins its running mean of the loss anew."""
        self._batches, self._sum = 0, 0.0

    def on_train_batch_end(self, _batch: int, logs: Any = None) -> None:
        """Close the frame of this step."""
        if self.watch is None:
            return
        _settle(self._backend)
        scalars = {name: float(value) for name, value in (logs or {}).items()}
        if "loss" in scalars:
            scalars["loss"] = self._own_loss(scalars["loss"])
        scalars["lr"] = float(self.model.optimizer.learning_rate)
        blocks = list(self._blocks)
        self._blocks.clear()
        if blocks and self.watch.take(blocks[-1], scalars):
            self.model.stop_training = True

    def _own_loss(self, mean: float) -> float:
        """Take the batch's loss out of the mean over the epoch so far; batches count alike."""
        before = self._sum
        self._batches += 1
        self._sum = mean * self._batches
        return self._sum - before

    def on_train_end(self, _logs: Any = None) -> None:
        """Give the optimizer back as it was, and end the run."""
        self._close()

    def _close(self) -> None:
        self._unwrap()
        self._unwrap = lambda: None
        watch, self.watch = self.watch, None
        if watch is not None:
            watch.close()


def _layer(variable: Any) -> Layer:
    path = str(variable.path)
    return Layer(
        path,
        tuple(int(size) for size in variable.shape),
        role=path.rpartition("/")[2],
        dtype=str(variable.dtype),
        trainable=bool(variable.trainable),
        optimised=True,
    )


def _wrapped(optimizer: Any, read: Callable[..., Any]) -> Callable[[], None]:
    """Put a reader around `apply`; give what takes it away again."""
    apply = optimizer.apply

    def watched(grads: Any, trainable_variables: Any = None) -> Any:
        variables = trainable_variables
        if variables is None:
            variables = optimizer._trainable_variables  # noqa: SLF001  Keras' own default
        finish = read(grads, variables)
        answer = apply(grads, trainable_variables)
        finish(variables)
        return answer

    optimizer.apply = watched

    def unwrap() -> None:
        if optimizer.__dict__.get("apply") is watched:
            del optimizer.apply

    return unwrap


def _on_torch(keep: Callable[[Callable[[], Any]], None]) -> Callable[..., Any]:
    """Read tensors where they are; the numbers are small and made at once."""

    def read(grads: Sequence[Any], variables: Sequence[Any]) -> Callable[[Any], None]:
        before = [variable.value.detach().clone() for variable in variables]
        gradients = [None if each is None else each.detach().clone() for each in grads]

        def finish(variables: Sequence[Any]) -> None:
            moved = [
                variable.value.detach() - old
                for variable, old in zip(variables, before, strict=True)
            ]
            keep(lambda: _block(gradients, before, moved))

        return finish

    return read


def _block(gradients: Sequence[Any], weights: Sequence[Any], moved: Sequence[Any]) -> Any:
    """Give the fields of a frame out of tensors, on the recorder's thread, in 64 bits."""
    import numpy as np

    columns = []
    for gradient, weight, move in zip(gradients, weights, moved, strict=True):
        values = np.full(0, 0.0) if gradient is None else _array(gradient)
        finite = np.isfinite(values)
        sizes = np.abs(values[finite])
        columns.append(
            (
                float(np.linalg.norm(values)),
                float(sizes.mean()) if sizes.size else 0.0,
                float(sizes.max(initial=0.0)),
                values.size - int(finite.sum()),
                int((values == 0).sum()),
                float(np.linalg.norm(_array(weight))),
                float(np.linalg.norm(_array(move))),
            )
        )
    return np.array(columns, np.float32).T


def _array(tensor: Any) -> Any:
    return tensor.double().cpu().numpy().ravel()


def _on_jax(keep: Callable[[Callable[[], Any]], None]) -> Callable[..., Any]:
    """Make the numbers inside the compiled step; JAX hands them out when it has them."""
    import jax

    from ..hooks.jax import statistics

    def told(block: Any) -> None:
        import numpy as np

        keep(lambda: np.asarray(block, np.float32))

    def read(grads: Sequence[Any], variables: Sequence[Any]) -> Callable[[Any], None]:
        before = [variable.value for variable in variables]

        def finish(variables: Sequence[Any]) -> None:
            moved = [variable.value - old for variable, old in zip(variables, before, strict=True)]
            jax.debug.callback(told, statistics(list(grads), before, moved), ordered=True)

        return finish

    return read


def _settle(backend: str) -> None:
    """Wait for what JAX still has to hand out: `fit` has waited for the loss already."""
    if backend == "jax":
        import jax

        jax.effects_barrier()  # type: ignore[no-untyped-call, unused-ignore]


_READERS = {"torch": _on_torch, "jax": _on_jax}
