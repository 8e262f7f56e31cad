"""Keras 3: a callback for `fit` that watches the model it trains, on the backends torch and JAX.

    model.fit(…, callbacks=[difflens.keras_callback("runs/one")])

A Keras callback does not see gradients; the optimizer's `apply` does. So that is wrapped while
`fit` runs: on torch the tensors are read there, on JAX, where `apply` is traced and compiled, their
numbers are made inside the compiled step and handed out of it by a callback of JAX.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

from difflens.core.errors import DifflensError, InvalidConfig

from ..hooks.keras.forward import Forward, Seen
from ..hooks.keras.forward import facts_of as seen_facts
from ..hooks.keras.variables import READERS, Applied, facts_of, layers_of, settle, wrapped
from ..recorder.monitors import PlainMonitor
from ..records.runs import ACTIVATION_FIELDS, LAYER_FIELDS, MISSING_BITS, STEP_SCALARS, RunInfo


def keras_callback(run: str | Path = "runs/run", *, activations: int = 0, **how: Any) -> Any:
    """Return a Keras `Callback` that records a run; `how` is that of `difflens.monitor`.

    `activations` is the number of batches between two looks at what units do, 0 for never. Where
    `stop_on` asks to stop, `model.stop_training` is set.
    """
    import keras

    backend = keras.backend.backend()
    if backend not in READERS:
        raise DifflensError(
            f"Keras runs on {backend}, whose gradients cannot be read",
            hint="KERAS_BACKEND=torch or jax",
        )
    if type(activations) is not int or activations < 0:
        raise InvalidConfig(f"activations is {activations!r}; it is a number of steps, 0 for never")
    kind = type("DifflensCallback", (_Watching, keras.callbacks.Callback), {})
    return kind(run, how, backend, keras.__version__, activations)


class _Watching:
    """What the callback does; its base comes from a library that is imported late."""

    model: Any
    params: Any

    def __init__(
        self, run: str | Path, how: dict[str, Any], backend: str, version: str, activations: int
    ) -> None:
        super().__init__()
        self._run, self._how, self._every = run, how, activations
        self._backend, self._version = backend, version
        self.watch: PlainMonitor | None = None
        self._info = RunInfo()
        self._unwrap: Callable[[], None] = lambda: None
        self._forward: Forward | None = None
        self._applied: deque[Applied] = deque()
        self._passes: deque[Seen] = deque()
        self._losses: deque[Any] = deque()
        self._taken, self._handed = 0, frozenset[int]()
        self._waiting: tuple[Callable[[], Any], dict[str, float]] | None = None
        self._weight, self._sum = 0, 0.0
        self._is_quiet = False

    def on_train_begin(self, _logs: Any = None) -> None:
        """Begin the run and wrap the optimizer."""
        self._close()
        model = self.model
        variables, layers = model.trainable_variables, layers_of(model)
        self._info = RunInfo(
            layers=layers,
            fields=(*LAYER_FIELDS, *(ACTIVATION_FIELDS if self._every else ())),
            scalars=(*STEP_SCALARS, "optimizer_steps"),
            framework=f"keras {self._version} on {self._backend}",
            gradient="before clipping by the optimizer",
            optimizer={"name": type(model.optimizer).__name__},
            facts=facts_of(model, layers),
        )
        self.watch = PlainMonitor(self._run, self._info, **self._how)
        self._taken, self._handed, self._is_quiet = 0, frozenset(), False
        self._applied.clear()
        places = {id(variable): place for place, variable in enumerate(variables)}
        reader = READERS[self._backend](self._applied.append, places)
        self._unwrap = wrapped(model.optimizer, reader, self._fail)
        if self._backend == "jax":
            # A step that an earlier `fit` compiled knows nothing of this reader.
            model.make_train_function(force=True)
        if not (self._backend == "torch" and model.jit_compile):  # torch.compile would take it in
            self._forward = Forward(
                model, self._passes.append, self._losses.append, activations=self._every > 0
            )

    def on_epoch_begin(self, _epoch: int, _logs: Any = None) -> None:
        """Keras begins its running mean of the loss anew."""
        self._weight, self._sum = 0, 0.0

    def on_train_batch_begin(self, _batch: int, logs: Any = None) -> None:  # noqa: ARG002  named so by Keras
        """Hand on the batch before, and forget passes that were none of training."""
        self._hand_on()
        self._passes.clear()
        self._losses.clear()
        if self._forward is not None and self._every:
            self._forward.is_sampled = self._taken % self._every == 0

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """Close the frame of this step."""
        if self.watch is None:
            return
        settle(self._backend)
        applied, passes = list(self._applied), list(self._passes)
        self._applied.clear()
        self._passes.clear()
        self._describe(applied, passes)
        scalars = {name: float(value) for name, value in (logs or {}).items()}
        if "loss" in scalars:
            rows = sum(each.rows for each in passes) or 1
            scalars["loss"] = self._own_loss(scalars["loss"], rows)
        if self._losses:
            scalars["loss"] = float(self._losses[-1])
        if applied:
            scalars["lr"] = float(applied[-1].rate)
        if not self._is_quiet:  # steps that could not be read are not steps that were not taken
            scalars["optimizer_steps"] = len(applied)
        seen = passes[-1] if passes and self._every and self._taken % self._every == 0 else None
        names = [layer.name for layer in self._info.layers]
        self._taken += 1
        self._waiting = (lambda: _assembled(applied, seen, names, self._info), scalars)
        # What is measured on held-back data at the end of an epoch belongs to its last batch.
        count = self.params.get("steps")
        if count is not None and batch + 1 < count:
            self._hand_on()

    def _describe(self, applied: list[Applied], passes: list[Seen]) -> None:
        """Write down what the first batch showed, and which variables the optimizer was given."""
        if self.watch is None:
            return
        if passes and not self._taken:
            self.watch.note("fact", **seen_facts(passes[-1]))
            if self._forward is not None:
                self._forward.is_first = False
        handed = self._handed.union(*(each.places for each in applied))
        if handed != self._handed:
            self._handed = handed
            self.watch.describe(layers_of(self.model, handed))

    def _fail(self, error: Exception) -> None:
        self._is_quiet = True
        if self.watch is not None:
            self.watch.fail(error)

    def _own_loss(self, mean: float, rows: int) -> float:
        """Take the batch's loss out of the mean over the epoch so far, in which rows count."""
        before = self._sum
        self._weight += rows
        self._sum = mean * self._weight
        return (self._sum - before) / rows

    def _hand_on(self, **more: float) -> None:
        waiting, self._waiting = self._waiting, None
        if waiting is not None and self.watch is not None:
            block, scalars = waiting
            if self.watch.end_step(block, scalars | more):
                self.model.stop_training = True

    def on_epoch_end(self, _epoch: int, logs: Any = None) -> None:
        """Put what was measured on held-back data to the last batch."""
        held_back = {name: value for name, value in (logs or {}).items() if name[:4] == "val_"}
        self._hand_on(**{name: float(value) for name, value in held_back.items()})

    def on_test_begin(self, _logs: Any = None) -> None:
        """Look away: held-back data is none to learn from."""
        if self._forward is not None:
            self._forward.is_testing = True

    def on_test_end(self, _logs: Any = None) -> None:
        """Look again."""
        if self._forward is not None:
            self._forward.is_testing = False

    def on_train_end(self, _logs: Any = None) -> None:
        """Restore the model and its optimizer, and end the run."""
        self._close()

    def _close(self) -> None:
        self._hand_on()
        self._unwrap()
        self._unwrap = lambda: None
        forward, self._forward = self._forward, None
        if forward is not None:
            forward.close()
        watch, self.watch = self.watch, None
        if watch is not None:
            if self._backend == "jax":
                self.model.train_function = None  # what was compiled holds our reader
            watch.close()


def _assembled(applied: list[Applied], seen: Seen | None, names: list[str], info: RunInfo) -> Any:
    """Put the numbers of a batch into one block; what was not measured is missing."""
    import numpy as np

    missing = np.array(MISSING_BITS, np.uint32).view(np.float32)[()]
    assembled = np.full((len(info.fields), len(names)), missing, np.float32)
    own = len(LAYER_FIELDS)
    for each in applied:
        block = each.numbers()
        for column, place in enumerate(each.places):
            if place >= 0:
                assembled[:own, place] = block[:, column]
    for place, name in enumerate(names):
        if seen is not None and name in seen.measured:
            assembled[own:, place] = np.asarray(seen.measured[name], np.float32)
    return assembled
