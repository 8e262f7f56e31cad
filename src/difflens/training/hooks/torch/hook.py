"""PyTorch: hooks on the optimizer's step that read every gradient and weight once.

Gradients are read in the optimizer's pre-step hook: there they are accumulated, unscaled and once
an update. Hooks on each tensor during backward, as most trackers have them, see every micro-batch
and still the loss scale. Without an optimizer to hook, they are all there is.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from math import prod
from typing import Any

from difflens.core.errors import InvalidConfig

from ...records.runs import MISSING_BITS
from .. import Sink
from .clipping import Between, Clipping, Scaling, unknown
from .extra_fields import Activations, Directions, behind_layers
from .frames import Frames, TorchReading
from .info import AS_USED, Description, Options, identities
from .late import promised, promised_scalars
from .layers import Modes, bare, local, parameters_of
from .optimizers import Stepper, rate_of, steppers
from .pace import Pace, Sampling, Suspicion
from .probe import Probe
from .ranks import Ranks, at_home, shares_of
from .readers import Readers
from .succession import Succession
from .tracing import Tracing

_WORTH_SLEEPING = 4  # steps to pass over from which on the hooks are numbers off meanwhile


class TorchHook:
    """A model that is watched; `step` closes a frame, `close` takes every hook away."""

    def __init__(self, model: Any, optimizer: Any, options: Options) -> None:
        """Look at the model; hooks come with `attach`."""
        import numpy as np
        import torch

        if not hasattr(model, "named_modules") or not hasattr(model, "parameters"):
            raise InvalidConfig(f"model is a {type(model).__name__}, not a torch Module")
        self._model, self._options = model, options
        self._watched = parameters_of(model)
        self._ranks = Ranks(options.ranks)
        self._optimizers = steppers(optimizer)
        self._optimised = identities(self._optimizers) if self._optimizers else None
        # Where each rank writes what it has, means are over that.
        counts = [
            prod(each.shape) if self._ranks.merges else local(each.parameter).numel()
            for each in self._watched
        ]
        self._usual = (torch.Tensor, torch.float32)
        self.is_quiet, self._is_closed = False, False
        # Is this a fork of the process that is watched? Asking the system costs a call each time.
        self.is_elsewhere = False
        at_home(self)
        self._sampling = Sampling(options.every, options.budget)
        # Ranks that are merged must read the same steps: one alone may not choose others.
        is_free = not self._sampling.fixed and not self._ranks.merges
        self._suspicion = Suspicion() if is_free else None
        self._clipping = Clipping(self._say_as_used)
        self.frames = Frames(
            np.array(counts, np.float64),
            self._clipping,
            blank=np.array(MISSING_BITS, np.uint32).view(np.float32)[()],
            ranks=self._ranks,
            shares=shares_of(self._watched, self._ranks.rank),
            is_sharded=np.array([each.is_sharded for each in self._watched], bool),
            has_activations=bool(options.activations),
            suspicion=self._suspicion,
        )
        self._all = list(range(len(self._watched)))
        self._description = Description(self._watched, options, self._ranks)
        self.info = self._description.info(model, self._watched, self._optimizers)

    def attach(self, sink: Sink, first_step: int = 0) -> None:
        """Put the hooks on; from now on the sink gets readings."""
        self._sink, self._step_number = sink, first_step
        self._pace = Pace(self._sampling, self._ranks, sink, self._suspicion)
        self._tracing: Tracing | None = Tracing(self._model)
        self._activations: Activations | None = None
        self._modes = Modes(bare(self._model))
        self._wanted, self._stale, self._steps, self._spent = True, True, 0, 0.0
        self._lr: Any = None
        self._scale: Any = None
        self._factor: Callable[[], Between | None] = unknown
        self._unread_scalars: dict[str, Any] | None = None  # of the last step, if it was not read
        self._is_asleep, self._is_away, self._dozed = False, False, 0
        self._reads = False  # weights, at the optimizer's step that is under way
        self._last = time.perf_counter()
        follows = Succession(self._model, self._succeed, self.fail) if self._optimizers else None
        self._succession = follows
        self._follow()
        self._prepare()

    def _follow(self) -> None:
        """Put the hooks on the tensors and the optimizers that are in use."""
        self._scaling = Scaling(self._options.scaler)
        self._parameters = [each.parameter for each in self._watched]
        self._directions = Directions(self._parameters) if self._options.directions else None
        self._readers = Readers(
            self._parameters, fused=self._options.fused, updates=self._options.updates
        )
        if self._readers.sampled:
            self._sink.note("fact", estimated_weights=self._readers.sampled)
        optimised = self._optimised
        chosen = [
            each for each in self._watched if optimised is None or id(each.parameter) in optimised
        ]
        self._probe = Probe(chosen, self._clipping, waits=self._ranks.count > 1)
        self._stepper = Stepper(self, self._optimizers, self._parameters)
        if self._succession is not None:
            self._succession.follow(self._watched, self._optimizers)

    def _succeed(self, stranger: Any = None) -> None:
        """Go on with the tensors and the optimizers that are in use by now."""
        assert self._succession is not None  # noqa: S101  asked for by its callers
        watched = self._succession.watched_now(self._watched)
        if watched is None or self.is_quiet or self.is_elsewhere:
            return
        optimizers = self._optimizers
        if stranger is not None:
            optimizers = self._succession.optimizers_now(optimizers, stranger, watched)
            if optimizers is self._optimizers:
                return
        self._release()
        self._watched, self._optimizers = watched, optimizers
        self._optimised = identities(optimizers)
        self._follow()
        self._stale = True
        if self._is_asleep:
            self._stepper.rest()
            self._probe.detach()
        self._describe()
        self._sink.note("fact", "the optimizer or the tensors were replaced")

    def fail(self, error: Exception) -> None:
        """Go quiet for good; hooks are numbers off at the next step, not while they are called."""
        if not self.is_quiet:
            self.is_quiet = True
            self._sink.fail(error)

    def _say_as_used(self) -> None:
        """Say in the run that gradients cannot be shown as they were; on the recorder's thread."""
        self._sink.note("fact", "gradients are as the optimizer got them", gradient=AS_USED)

    @property
    def writes(self) -> bool:
        """Does this process write a run?"""
        return self._ranks.writes

    def before_step(self, optimizer: Any, places: list[int]) -> None:
        """Read the gradients that an optimizer is about to use."""
        self._is_away, self._reads = self.is_elsewhere, False
        if not self._wanted or self._is_away:
            self._lr = rate_of(optimizer, self._usual, is_read=False)
            return
        begun = time.perf_counter()
        self._read_gradients(optimizer, places)
        self._reads = self._reads_weights
        if self._reads:
            self._readers.before(places, all_stale=self._stale)
        if self._modes.are_there:
            self._modes.look()
        self._spent += time.perf_counter() - begun

    def _read_gradients(self, optimizer: Any, places: list[int]) -> None:
        if not self._scaling.is_sought:
            self._scaling.look(optimizer)
        self._readers.gradients(places)
        if self._directions is not None:
            self._directions.read(places)
        self._factor = self._probe.factor()
        if self._scaling.scaler is not None or getattr(optimizer, "grad_scale", None) is not None:
            scale = self._scaling.of(optimizer)
        else:
            scale = None
        if scale is not None:
            self._scale = (promised(scale[0]), scale[1] and not self._probe.is_changed)
        self._lr = rate_of(optimizer, self._usual)

    @property
    def _reads_weights(self) -> bool:
        """Are weights and updates part of this step's reading?"""
        return self._wanted and self._pace.readings % self._readers.between == 0

    def after_step(self, places: list[int]) -> None:
        """Read the weights that an optimizer has just moved."""
        if self._is_away:
            return
        begun = time.perf_counter()
        self._steps += 1
        self._probe.stepped()
        if self._reads:
            self._readers.weights(places)
        self._stale = not self._reads
        self._spent += time.perf_counter() - begun

    def pass_over(self, optimizer: Any) -> None:
        """Keep what costs nothing of an optimizer's step that is passed over."""
        self._steps += 1
        self._lr = rate_of(optimizer, self._usual, is_read=False)

    def before_clearing(self, optimizer: Any) -> None:
        """Read gradients that are thrown away unused, as a scaler does when they are not finite."""
        if not self._steps and self._wanted and self._probe.backwards and not self.is_elsewhere:
            self._read_gradients(optimizer, self._stepper.places(optimizer))
            self._probe.backwards = 0

    def one_gradient(self, place: int) -> None:
        """Read the gradient of one parameter, where no optimizer can be hooked."""
        if self._wanted and not self.is_elsewhere:
            begun = time.perf_counter()
            self._readers.gradients([place])
            self._spent += time.perf_counter() - begun

    def step(self, loss: Any, scalars: dict[str, Any], number: int | None) -> None:
        """Close the frame of a step."""
        if self.is_elsewhere or self.is_quiet:
            if not self.is_elsewhere:
                self.close()
            return
        if number is not None:
            self._step_number = int(number)
        if self._is_asleep:
            self._doze(loss, scalars)
            return
        begun = time.perf_counter()
        given = promised_scalars(loss, scalars, self._usual, self._sink.refuse)
        if self._tracing is not None:
            self._first_pass_over()
        if self._wanted:
            self._close_frame(given)
        else:
            self._send_scalars(given)
        now = time.perf_counter()
        self._spent += now - begun
        if not self._pace.sampling.fixed:
            own = self._spent if self._wanted else 0.0
            beside = self._readers.device_seconds() + self._sink.cost() if self._wanted else 0.0
            step_seconds = (now - self._last) / (1 + self._dozed)
            self._pace.count_cost(self._step_number, own, step_seconds, beside)
        self._spent = 0.0
        self._last, self._steps, self._dozed = now, 0, 0
        self._step_number += 1
        self._pace.pass_step(self._step_number, given.get("loss"))
        left = self._pace.sampling.left
        self._wanted = self._probe.wanted = not left
        if left >= _WORTH_SLEEPING:
            self._is_asleep = self._stale = True
            self._stepper.rest()
            self._probe.detach()
        if self._wanted and (self._activations is not None or not self._optimizers):
            self._prepare()
        self._spent += time.perf_counter() - now

    def _doze(self, loss: Any, scalars: dict[str, Any]) -> None:
        """Pass over a step all but unhooked; wake up one step before the next that is read.

        That one more step is for the probe, which compares a backward with the step before it.
        """
        given = promised_scalars(loss, scalars, self._usual, self._sink.refuse)
        self._send_scalars(given)
        self._dozed, self._steps = self._dozed + 1, 0
        self._step_number += 1
        self._pace.pass_step(self._step_number, given.get("loss"))
        if self._pace.sampling.left <= 1:
            begun = time.perf_counter()
            self._is_asleep = False
            self._stepper.attach()
            self._probe.attach()
            self._spent += time.perf_counter() - begun

    def _send_scalars(self, given: dict[str, Any]) -> None:
        """Forward the scalars of a step that is not recorded."""
        self._unread_scalars = self._with_steps(given)
        if self._ranks.writes:
            times = time.time(), time.monotonic()
            reading = TorchReading(
                self._step_number, *times, given, [], unknown, None, {}, False, None, False
            )
            self._sink.record(reading)

    def _prepare(self) -> None:
        """Get ready for the step that begins now."""
        if not self._optimizers and self._stale and self._reads_weights:
            self._readers.before(self._all, all_stale=True)
        if self._activations is not None:
            self._activations.begin(self._step_number)

    def _close_frame(self, scalars: dict[str, Any]) -> None:
        self._unread_scalars = None
        if not self._optimizers:
            if self._reads_weights:
                self._readers.weights(self._all)
            self._stale = not self._reads_weights
        elif not self._steps:  # never stepped: what there is to see is shown all the same
            for optimizer in self._optimizers if self._probe.backwards else ():
                self._read_gradients(optimizer, self._stepper.places(optimizer))
            self._readers.weights(self._all)
        self._send_reading(
            self._with_steps(scalars), moved=bool(self._steps) or not self._optimizers
        )
        self._pace.readings += 1
        if self._succession is not None and self._succession.are_replaced():
            self._succeed()

    def _send_reading(self, scalars: dict[str, Any], *, moved: bool) -> None:
        """Pass what was read of a step to the sink."""
        if self._modes.has_news:
            self._sink.note("fact", eval_modules=self._modes.news())
        if self._probe.kept is not None:
            scalars["grad_kept"] = self._probe.kept
        active = {} if self._activations is None else self._activations.end()
        begun, directions = self._readers.collect(), self._directions
        reading = TorchReading(
            self._step_number,
            time.time(),
            time.monotonic(),
            scalars,
            begun,
            self._factor,
            self._scale,
            active,
            moved,
            None if directions is None else directions.collect(),
        )
        self._factor, self._scale = unknown, None
        self._sink.record(reading)

    def _with_steps(self, given: dict[str, Any]) -> dict[str, Any]:
        given["optimizer_steps"] = float(self._steps)
        if self._lr is not None:
            given["lr"] = self._lr
        return given

    def finish(self) -> None:
        """Read all layers once more where the last step was not read: a run ends with them.

        Its scalars are repeated: of a step that is recorded twice the last counts. Gradients are
        as the loop left them, and how far weights moved is not known.
        """
        if self._unread_scalars is None or self.is_quiet or self.is_elsewhere or self._is_closed:
            return
        given, self._unread_scalars = self._unread_scalars, None
        self._step_number -= 1
        self._readers.collect()  # what was begun for a step that never ended
        self._readers.gradients(self._all)
        self._readers.weights(self._all)
        self._send_reading(given, moved=False)

    def _first_pass_over(self) -> None:
        """Order the layers as they ran, say so, and take the hooks of the first pass away."""
        tracing, self._tracing = self._tracing, None
        assert tracing is not None  # noqa: S101  asked for by the one caller
        tracing.close()
        self._description.add_first_pass(self._watched, tracing, self._modes.news())
        self.frames.arrange(self._description.order)
        self._describe()
        self._sink.later(lambda: self._sink.note("fact", **tracing.seen()))
        if self._options.activations and tracing.has_run:
            behind = behind_layers(self._watched, bare(self._model), self._description.modules)
            self._activations = Activations(self._options.activations, behind)

    def _describe(self) -> None:
        self.info = self._description.info(self._model, self._watched, self._optimizers)
        self._sink.describe(self.info)

    def _release(self) -> None:
        """Take the hooks off tensors and optimizers."""
        self._stepper.close()
        self._probe.close()
        self._readers.close()
        if self._directions is not None:
            self._directions.close()

    def close(self) -> None:
        """Remove every hook, and release model and optimizer."""
        if self._is_closed:
            return
        self._is_closed = True
        self._release()
        for part in (self._tracing, self._activations, self._succession):
            if part is not None:
                part.close()
        self._scaling.close()
        self._modes.close()
        self._model, self._watched, self._parameters, self._optimizers = None, [], [], []

    def leave_ranks(self) -> None:
        """End the groups that merged the ranks, once the sink has finished every reading."""
        self._ranks.close()
