"""PyTorch: hooks on the optimizer's step that read every gradient and weight once.

Gradients are read in the optimizer's pre-step hook: there they are accumulated, unscaled and once
an update. Hooks on each tensor during backward, as most trackers have them, see every micro-batch
and still the loss scale. Without an optimizer to hook, they are all there is.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from math import prod
from typing import Any, NamedTuple

from ..errors import InvalidConfig
from ..runs import MISSING_BITS
from . import Reading, Sink
from .sampling import Sampling
from .torch_activations import Activations, behind_layers
from .torch_alike import alike_units
from .torch_clipping import Between, Clipping, unknown
from .torch_directions import Directions
from .torch_forks import at_home
from .torch_frames import Frames, Raw
from .torch_info import AS_USED, identities, info_of
from .torch_late import promised
from .torch_layers import bare, local, parameters_of
from .torch_modes import Modes
from .torch_optimizers import Stepper, steppers
from .torch_probe import Probe
from .torch_ranks import Ranks, shares_of
from .torch_readers import Readers
from .torch_scaling import Scaling
from .torch_tracing import Tracing

_WORTH_SLEEPING = 4  # steps to pass over from which on the hooks are taken off meanwhile
_DECISIONS = 16  # recorded steps between two looks at the price, at first


class Options(NamedTuple):
    """How a model is watched."""

    name: str = ""
    every: Any = "auto"
    budget: float = 0.01
    activations: int = 0  # steps between two looks at activations; 0 is never
    ranks: str = "merged"
    scaler: Any = None
    updates: Any = "auto"  # readings between two looks at weights and their updates
    fused: bool = True
    directions: bool = False  # means of gradients, and their cosines to the last reading's


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
        self._counts = np.array(counts, np.float64)
        self._blank = np.array(MISSING_BITS, np.uint32).view(np.float32)[()]
        self._usual = (torch.Tensor, torch.float32)
        self.is_quiet, self._is_closed = False, False
        # Is this a fork of the process that is watched? Asking the system costs a call each time.
        self.is_elsewhere = False
        at_home(self)
        # Asked before any step: it tears apart what is only nearly alike.
        self._alike = {"alike_units": alike_units(self._watched)}
        self.info = info_of(
            model,
            self._watched,
            self._optimizers,
            options=options,
            ranks=self._ranks,
            seen={"facts": self._alike},
        )

    def attach(self, sink: Sink, first_step: int = 0) -> None:
        """Put the hooks on; from now on the sink gets readings."""
        import numpy as np

        self._sink, self._step_number = sink, first_step
        self._sampling = Sampling(self._options.every, self._options.budget)
        self._scaling = Scaling(self._options.scaler)
        self._tracing: Tracing | None = Tracing(self._model)
        self._activations: Activations | None = None
        self._modes = Modes(bare(self._model))
        self._parameters = [each.parameter for each in self._watched]
        self._all = list(range(len(self._parameters)))
        clipping = Clipping(self._say_as_used)
        self._frames = Frames(
            self._counts,
            clipping,
            blank=self._blank,
            ranks=self._ranks,
            shares=shares_of(self._watched, self._ranks.rank),
            is_sharded=np.array([each.is_sharded for each in self._watched], bool),
            has_activations=bool(self._options.activations),
        )
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
        self._probe = Probe(chosen, clipping, waits=self._ranks.count > 1)
        self._wanted, self._stale, self._steps, self._spent = True, True, 0, 0.0
        self._lr: Any = None
        self._scale: Any = None
        self._factor: Callable[[], Between | None] = unknown
        self._carried: dict[str, Any] = {}
        self._is_asleep, self._is_away, self._dozed = False, False, 0
        self._reads = False  # weights, at the optimizer's step that is under way
        self._recorded, self._next_decision = 0, _DECISIONS
        self._last = time.perf_counter()
        self._stepper = Stepper(self, self._optimizers, self._parameters)
        self._prepare()

    def fail(self, error: Exception) -> None:
        """Go quiet for good; hooks are taken off at the next step, not while they are called."""
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
        self._lr = optimizer.param_groups[0].get("lr")

    @property
    def _reads_weights(self) -> bool:
        """Are weights and updates part of this step's reading?"""
        return self._wanted and self._recorded % self._readers.between == 0

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
        if self._is_asleep or self.is_elsewhere or self.is_quiet:
            self._step_aside(scalars, number)
            return
        begun = time.perf_counter()
        if number is not None:
            self._step_number = int(number)
        if scalars:
            self._carried.update(scalars)
        if loss is not None:
            self._carried["loss"] = loss
        if self._tracing is not None:
            self._first_pass_over()
        if self._wanted:
            self._close_frame()
        now = time.perf_counter()
        self._spent += now - begun
        if not self._sampling.fixed:
            self._count_cost(self._spent, (now - self._last) / (1 + self._dozed))
        # What steps that are not read cost us is a part of the next reading's price.
        self._spent = 0.0 if self._wanted else self._spent
        self._last, self._steps, self._dozed = now, 0, 0
        self._step_number += 1
        self._sampling.passed()
        left = self._sampling.left
        self._wanted = self._probe.wanted = not left
        if left >= _WORTH_SLEEPING:
            self._is_asleep = self._stale = True
            self._stepper.detach()
            self._probe.detach()
        if self._wanted and (self._activations is not None or not self._optimizers):
            self._prepare()
        self._spent += time.perf_counter() - now

    def _step_aside(self, scalars: dict[str, Any], number: int | None) -> None:
        """Do what there is to do at a step that is no step to be read."""
        if self._is_asleep:
            self._doze(scalars, number)
        elif not self.is_elsewhere:
            self.close()

    def _doze(self, scalars: dict[str, Any], number: int | None) -> None:
        """Pass over a step without a hook; wake up one step before the next that is read.

        That one more step is for the probe, which compares a backward with the step before it.
        """
        if number is not None:
            self._step_number = int(number)
        if scalars:
            self._carried.update(scalars)
        self._step_number += 1
        self._dozed += 1
        self._sampling.passed()
        if self._sampling.left <= 1:
            begun = time.perf_counter()
            self._is_asleep = False
            self._stepper.attach()
            self._probe.attach()
            self._spent += time.perf_counter() - begun

    def _prepare(self) -> None:
        """Get ready for the step that begins now."""
        if not self._optimizers and self._stale and self._reads_weights:
            self._readers.before(self._all, all_stale=True)
        if self._activations is not None:
            self._activations.begin(self._step_number)

    def _close_frame(self) -> None:
        if not self._optimizers:
            if self._reads_weights:
                self._readers.weights(self._all)
            self._stale = not self._reads_weights
        elif not self._steps:  # never stepped: what there is to see is shown all the same
            for optimizer in self._optimizers if self._probe.backwards else ():
                self._read_gradients(optimizer, self._stepper.places(optimizer))
            self._readers.weights(self._all)
        if self._modes.has_news:
            self._sink.note("fact", eval_modules=self._modes.news())
        scalars = self._own_scalars()
        scalars["optimizer_steps"] = float(self._steps)
        if self._lr is not None:
            scalars["lr"] = self._lr if type(self._lr) is float else promised(self._lr)
        if self._probe.kept is not None:
            scalars["grad_kept"] = self._probe.kept
        active = {} if self._activations is None else self._activations.end()
        moved = bool(self._steps) or not self._optimizers
        raw = Raw(
            self._step_number, scalars, self._readers.take(), self._factor, self._scale, active,
            moved, None if self._directions is None else self._directions.take(),
        )  # fmt: skip
        self._factor, self._scale = unknown, None
        make, times = self._frames, (time.time(), time.monotonic())
        self._sink.take(Reading(raw.number, *times, None, raw, make))
        self._recorded += 1

    def _own_scalars(self) -> dict[str, Any]:
        """Take what the loop handed in; what is no number is counted, and passed over."""
        taken: dict[str, Any] = {}
        for name, value in self._carried.items():
            try:
                taken[name] = promised(value, self._usual)
            except Exception:  # noqa: BLE001  a stranger's `__float__` may do anything
                self._sink.refuse(1)
        self._carried = {}
        return taken

    def _first_pass_over(self) -> None:
        """Order the layers as they ran, say so, and take the hooks of the first pass away."""
        tracing, self._tracing = self._tracing, None
        assert tracing is not None  # noqa: S101  asked for by the one caller
        tracing.close()
        depths = tracing.depths()
        if not depths:
            modules = dict.fromkeys(id(each.module) for each in self._watched)
            depths = {module: place for place, module in enumerate(modules)}
        last = len(depths)
        watched = self._watched
        order = sorted(self._all, key=lambda place: depths.get(id(watched[place].module), last))
        self._frames.arrange(order)
        self.info = info_of(
            self._model,
            [watched[place] for place in order],
            self._optimizers,
            options=self._options,
            ranks=self._ranks,
            seen={
                "depths": depths,
                "activations": tracing.activations(),
                "facts": {**self._alike, **tracing.facts(), "eval_modules": self._modes.news()},
            },
        )
        self._sink.describe(self.info)
        self._sink.later(lambda: self._sink.note("fact", **tracing.seen()))
        if self._options.activations and tracing.has_run:
            behind = behind_layers(watched, bare(self._model), list(depths))
            self._activations = Activations(self._options.activations, behind)

    def _count_cost(self, own: float, whole: float) -> None:
        if self._wanted:
            own += self._readers.device_seconds() + self._sink.cost()
        self._sampling.measured(own if self._wanted else 0.0, whole)
        if self._recorded < self._next_decision or not self._wanted:
            return
        # Alone it costs nothing to look again soon; several ranks have to agree each time.
        self._next_decision = self._recorded + (
            _DECISIONS if self._ranks.count == 1 else max(64, self._recorded)
        )
        before = self._sampling.share
        if self._sampling.decide(self._ranks.decide(self._sampling.price())):
            every = self._sampling.every
            self._sink.note(
                "sampling",
                f"every step is read now, from step {self._step_number} on"
                if every == 1
                else f"one step in {every} is read, from step {self._step_number} on",
                every=every,
                share=before,
                budget=self._sampling.budget,
            )

    def close(self) -> None:
        """Take every hook away, and let go of model and optimizer."""
        if self._is_closed:
            return
        self._is_closed = True
        self._stepper.close()
        self._probe.close()
        if self._tracing is not None:
            self._tracing.close()
        if self._activations is not None:
            self._activations.close()
        self._readers.close()
        if self._directions is not None:
            self._directions.close()
        self._scaling.close()
        self._modes.close()
        self._model, self._watched, self._parameters, self._optimizers = None, [], [], []

    def leave_ranks(self) -> None:
        """Give back what the ranks merged with, once the sink has finished every reading."""
        self._ranks.close()
