"""Keras: what an optimizer's `apply` is given and what it does to the variables.

On torch the tensors are read where they are; on JAX, where `apply` is traced and compiled, their
numbers are made inside the compiled step and handed out of it by a callback of JAX.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isfinite, sqrt
from typing import Any, NamedTuple

from ..runs import MISSING_BITS

_OF_GRADIENT = 5  # fields of a frame that come first and tell of the gradient


class Applied(NamedTuple):
    """What one `apply` told."""

    places: tuple[int, ...]  # of its variables among those that are watched
    numbers: Callable[[], Any]
    rate: Any


def wrapped(
    optimizer: Any, read: Callable[..., Any], fail: Callable[[Exception], None]
) -> Callable[[], None]:
    """Put a reader around `apply`; give what takes it away again. `fail` learns of our errors."""
    apply = optimizer.apply

    def watched(grads: Any, trainable_variables: Any = None) -> Any:
        variables, finish = trainable_variables, None
        if variables is None:
            variables = optimizer._trainable_variables  # noqa: SLF001  Keras' own default
        try:
            # Here, and not at the end of the batch: a schedule counts on within `apply`, and on
            # JAX the optimizer knows its own state within the traced step alone.
            finish = read(grads, variables, optimizer.learning_rate)
        except Exception as error:  # noqa: BLE001  nothing of ours reaches the loop
            fail(error)
        answer = apply(grads, trainable_variables)
        try:
            if finish is not None:
                finish(variables)
        except Exception as error:  # noqa: BLE001
            fail(error)
        return answer

    optimizer.apply = watched

    def unwrap() -> None:
        if optimizer.__dict__.get("apply") is watched:
            del optimizer.apply

    return unwrap


def _places(variables: Sequence[Any], known: dict[int, int]) -> tuple[int, ...]:
    """Give the layer of each variable that was handed over; one that is not watched has none."""
    return tuple(known.get(id(variable), -1) for variable in variables)


def _on_torch(keep: Callable[[Applied], None], known: dict[int, int]) -> Callable[..., Any]:
    """Read tensors where they are; the numbers are small and made at once."""

    def read(grads: Sequence[Any], variables: Sequence[Any], rate: Any) -> Callable[[Any], None]:
        now = float(rate)
        before = [variable.value.detach().clone() for variable in variables]
        gradients = [None if each is None else each.detach().clone() for each in grads]

        def finish(variables: Sequence[Any]) -> None:
            moved = [
                variable.value.detach() - old
                for variable, old in zip(variables, before, strict=True)
            ]
            keep(Applied(_places(variables, known), lambda: _block(gradients, before, moved), now))

        return finish

    return read


def _block(gradients: Sequence[Any], weights: Sequence[Any], moved: Sequence[Any]) -> Any:
    """Give the fields of a frame out of tensors, on the recorder's thread, in 64 bits."""
    import numpy as np

    columns = []
    for gradient, weight, move in zip(gradients, weights, moved, strict=True):
        values = np.zeros(0) if gradient is None else _array(gradient)
        norm = _norm(values)
        # A norm that is finite says that all values are, and saves the look at each.
        sizes = np.abs(values if isfinite(norm) else values[np.isfinite(values)])
        columns.append(
            (
                norm,
                float(sizes.mean()) if sizes.size else 0.0,
                float(sizes.max(initial=0.0)),
                values.size - sizes.size,
                values.size - np.count_nonzero(values),
                _norm(_array(weight)),
                _norm(_array(move)),
            )
        )
    block = np.array(columns, np.float32).T
    # No gradient is another thing than one of zero: the graph is cut.
    none = [place for place, each in enumerate(gradients) if each is None]
    block[:_OF_GRADIENT, none] = np.array(MISSING_BITS, np.uint32).view(np.float32)[()]
    return block


def _norm(values: Any) -> float:
    """Give the L2 norm; squares of 32-bit floats do not leave the range of 64 bits."""
    return sqrt(total) if isfinite(total := float(values @ values)) else total


def _array(tensor: Any) -> Any:
    return tensor.double().cpu().numpy().ravel()


def _on_jax(keep: Callable[[Applied], None], known: dict[int, int]) -> Callable[..., Any]:
    """Make the numbers inside the compiled step; JAX hands them out when it has them."""
    import jax
    from keras import ops

    from .jax import statistics

    def tell(places: tuple[int, ...]) -> Callable[[Any, Any], None]:
        import numpy as np

        return lambda block, rate: keep(Applied(places, lambda: np.asarray(block), rate))

    def read(grads: Sequence[Any], variables: Sequence[Any], rate: Any) -> Callable[[Any], None]:
        now = ops.convert_to_tensor(rate)
        before = [variable.value for variable in variables]

        def finish(variables: Sequence[Any]) -> None:
            moved = [variable.value - old for variable, old in zip(variables, before, strict=True)]
            told = tell(_places(variables, known))
            jax.debug.callback(told, statistics(list(grads), before, moved), now, ordered=True)

        return finish

    return read


def settle(backend: str) -> None:
    """Wait for what JAX still has to hand out: `fit` has waited for the loss already."""
    if backend == "jax":
        import jax

        jax.effects_barrier()  # type: ignore[no-untyped-call, unused-ignore]


READERS = {"torch": _on_torch, "jax": _on_jax}
