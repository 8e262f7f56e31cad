"""Keras: what goes into a model and comes out of it, its loss, what its units do, while it trains.

Methods are wrapped by an attribute of the object, which is taken away again. On JAX the pass
is traced: what it makes belongs to the trace in which it was made, so the numbers of all layers
are handed out together, at the end of the pass, and those made within an inner trace (a scan, a
recomputation) are left out.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

from .variables import behind, leaves_of

_ROWS = 256  # of inputs and outputs that are looked at
_NEVER_NEGATIVE = frozenset({"ReLU", "ReLU6"})
# Values within 3 % of the range's end: there the slope is under a tenth of its largest.
_ENDS = {
    "Tanh": (-0.97, 0.97),
    "Sigmoid": (0.03, 0.97),
    "Hardtanh": (-0.97, 0.97),
    "Hardsigmoid": (0.03, 0.97),
}
_INPUT = ("mean", "std", "min", "max", "features_std_min", "features_std_max")


class Seen(NamedTuple):
    """One pass: how large its batch was, what went in and out, and the figures of layers."""

    rows: int
    shapes: dict[str, Any]
    measured: dict[str, Any]  # name -> numbers, where they are not yet fetched


class Forward:
    """Watches passes of a model in training; `close` leaves nothing on it."""

    def __init__(
        self,
        model: Any,
        keep: Callable[[Seen], None],
        keep_loss: Callable[[Any], None],
        *,
        activations: bool,
    ) -> None:
        """Wrap the model, and where activations are wanted the layers whose output counts."""
        import keras

        self._keep, self._keep_loss = keep, keep_loss
        self._on_jax = keras.backend.backend() == "jax"
        self._wrapped: list[tuple[Any, str, Callable[..., Any]]] = []
        self._trace: Any = None
        self._figures: dict[str, Any] = {}
        self.is_testing = False  # a pass of `evaluate` is none of training
        # On JAX what these two are at the first batch is compiled in.
        self.is_sampled = True  # are the units looked at?
        self.is_first = True  # are input and output looked at?
        if activations:
            leaves = leaves_of(model)
            for place, leaf in enumerate(leaves):
                names = [str(each.path) for each in leaf.trainable_weights if len(each.shape) > 1]
                kind, chosen = behind(leaves, place)
                if names and "Embedding" not in type(leaf).__name__:
                    self._wrap(chosen, "call", self._reads(names, kind))
        self._wrap(model, "call", self._reads_ends, before=self._begins)
        # The logs have a mean over the epoch so far; what is made here is of this batch.
        self._wrap(model, "compute_loss", self._reads_loss)

    def _wrap(
        self,
        owner: Any,
        name: str,
        after: Callable[..., None],
        before: Callable[[], None] | None = None,
    ) -> None:
        method = getattr(owner, name)

        def watched(*args: Any, **options: Any) -> Any:
            if before is not None:
                with suppress(Exception):  # nothing of ours reaches the loop
                    before()
            answer = method(*args, **options)
            with suppress(Exception):
                after(args, options, answer)
            return answer

        setattr(owner, name, watched)
        self._wrapped.append((owner, name, watched))

    def _begins(self) -> None:
        self._trace = _trace(self._on_jax)
        self._figures = {}

    def _reads(self, names: list[str], kind: str) -> Callable[..., None]:
        def read(_args: Any, _options: Any, output: Any) -> None:
            if self.is_sampled and not self.is_testing and self._trace == _trace(self._on_jax):
                figures = _figures(_still(output), kind)
                self._figures |= dict.fromkeys(names, figures)

        return read

    def _reads_ends(self, args: Any, options: Any, output: Any) -> None:
        figures, self._figures, self._trace = self._figures, {}, None
        if self.is_testing or options.get("training", True) is False:
            return
        given, shapes, measured = _first(args), dict[str, Any](), dict(figures)
        if self.is_first:
            made = _first((output,))
            shapes["output"] = [int(size) for size in made.shape]
            shapes["dtype"] = str(given.dtype).removeprefix("torch.")
            if "float" in shapes["dtype"]:
                measured["input"] = _of_input(_still(given)[:_ROWS])
            measured["output"] = _of_output(_still(made)[:_ROWS])
        rows = int(given.shape[0])
        self._hand_out(measured, lambda numbers: self._keep(Seen(rows, shapes, numbers)))

    def _reads_loss(self, _args: Any, options: Any, loss: Any) -> None:
        if not self.is_testing and options.get("training", True) is not False:
            self._hand_out(_still(loss), self._keep_loss)

    def _hand_out(self, numbers: Any, keep: Callable[[Any], None]) -> None:
        if self._on_jax:
            import jax

            jax.debug.callback(keep, numbers)
        else:
            keep(numbers)

    def close(self) -> None:
        """Take every wrapper away that is still there."""
        for owner, name, watched in self._wrapped:
            if owner.__dict__.get(name) is watched:
                delattr(owner, name)
        self._wrapped.clear()


def facts_of(seen: Seen) -> dict[str, Any]:
    """Describe input and output of a pass; fetches the numbers."""
    low, high, off = (float(each) for each in seen.measured["output"])
    facts: dict[str, Any] = {
        "output": {
            "shape": seen.shapes["output"],
            # Sums of probabilities in 16 bits are one to about a hundredth.
            "rows_sum_to_one": seen.shapes["output"][-1] > 1 and low >= 0 and off < 1e-2,
            "min": low,
            "max": high,
        },
        "input": {"dtype": seen.shapes["dtype"]},
    }
    if "input" in seen.measured:
        numbers = (float(each) for each in seen.measured["input"])
        facts["input"] |= dict(zip(_INPUT, numbers, strict=True))
    return facts


def _trace(on_jax: bool) -> Any:
    """Return what tells one trace of JAX from another."""
    if not on_jax:
        return True
    from jax.extend.core import get_opaque_trace_state

    state: Any = get_opaque_trace_state  # untyped in JAX
    return state(convention="difflens")


def _first(values: Any) -> Any:
    """Return the first tensor of what a model was called with, or gave."""
    from keras import tree

    return next(each for each in tree.flatten(values) if hasattr(each, "shape"))


def _still(tensor: Any) -> Any:
    """Look at a tensor without a gradient through the look."""
    from keras import ops

    return ops.stop_gradient(ops.cast(tensor, "float32"))


def _figures(output: Any, kind: str) -> Any:
    """Return the four fields; NaN if the non-linearity cannot die or saturate."""
    from keras import ops

    units = ops.reshape(output, (-1, output.shape[-1]))
    unknown = ops.convert_to_tensor(float("nan"), "float32")
    dead = saturated = unknown
    if kind in _NEVER_NEGATIVE:
        dead = ops.mean(ops.cast(ops.all(units <= 0, axis=0), "float32"))
    if kind in _ENDS:
        low, high = _ENDS[kind]
        saturated = ops.mean(ops.cast(ops.logical_or(units < low, units > high), "float32"))
    return ops.stack([ops.mean(units), ops.std(units), dead, saturated])


def _of_input(values: Any) -> Any:
    from keras import ops

    flat = ops.reshape(values, (values.shape[0], -1))
    spread = ops.std(flat, axis=0)
    return ops.stack(
        [
            ops.mean(flat),
            ops.std(flat),
            ops.min(flat),
            ops.max(flat),
            ops.min(spread),
            ops.max(spread),
        ]
    )


def _of_output(values: Any) -> Any:
    from keras import ops

    rows = ops.reshape(values, (-1, values.shape[-1]))
    off = ops.max(ops.abs(ops.sum(rows, axis=-1) - 1))
    return ops.stack([ops.min(rows), ops.max(rows), off])
