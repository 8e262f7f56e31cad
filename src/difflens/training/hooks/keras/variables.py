"""Keras: the variables of a model with their layers, and what an optimizer's `apply` does to them.

A Keras layer may carry its non-linearity itself, or the layer behind it is one; both are named as
PyTorch names them, since the diagnoses know one set of names. On torch gradients are read where
they are; on JAX, where `apply` is traced and compiled, their numbers are made inside the compiled
step and passed out of it by a callback of JAX.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import isfinite, sqrt
from typing import Any, NamedTuple

from ...records.runs import MISSING_BITS, Layer

# How Keras names a non-linearity, as a function or as a layer, and how the house does.
NAMES = {
    "relu": "ReLU",
    "relu6": "ReLU6",
    "leaky_relu": "LeakyReLU",
    "elu": "ELU",
    "selu": "SELU",
    "celu": "CELU",
    "gelu": "GELU",
    "silu": "SiLU",
    "mish": "Mish",
    "tanh": "Tanh",
    "sigmoid": "Sigmoid",
    "hard_sigmoid": "Hardsigmoid",
    "hard_silu": "Hardswish",
    "hard_tanh": "Hardtanh",
    "softplus": "Softplus",
    "softsign": "Softsign",
    "softmax": "Softmax",
    "log_softmax": "LogSoftmax",
    "log_sigmoid": "LogSigmoid",
    "glu": "GLU",
    "ReLU": "ReLU",
    "LeakyReLU": "LeakyReLU",
    "PReLU": "PReLU",
    "ELU": "ELU",
    "Softmax": "Softmax",
}
DTYPES = {"float64": "F64", "float32": "F32", "float16": "F16", "bfloat16": "BF16"}
# What passes on what it gets: a non-linearity behind it belongs to the layer before it too.
_PASSES = ("Dropout", "Flatten", "Reshape", "InputLayer", "Identity")
_GATED = ("GRU", "LSTM")


def leaves_of(model: Any) -> list[Any]:
    """List the layers that do something themselves, in the order in which they stand in a model.

    Keras' own walk turns the parts of a layer round, so it is not taken.
    """
    leaves: dict[int, Any] = {}

    def walk(layer: Any) -> None:
        # A model lists its layers in the order in which they run.
        parts = list(getattr(layer, "layers", None) or layer._layers)  # noqa: SLF001
        if layer is not model and (not parts or _own(layer)):
            leaves.setdefault(id(layer), layer)
        for part in parts:
            walk(part)

    walk(model)
    return list(leaves.values())


def _own(layer: Any) -> list[Any]:
    """List the variables of a layer that are of none of its parts."""
    return [*layer._trainable_variables, *layer._non_trainable_variables]  # noqa: SLF001


def layers_of(model: Any, handed: frozenset[int] | None = None) -> tuple[Layer, ...]:
    """Describe every variable that trains; `handed` are the places of those the optimizer got."""
    leaves = leaves_of(model)
    owners = {id(variable): place for place, each in enumerate(leaves) for variable in _own(each)}
    return tuple(
        _layer(each, leaves, owners.get(id(each)), None if handed is None else place in handed)
        for place, each in enumerate(model.trainable_variables)
    )


def _layer(variable: Any, leaves: list[Any], place: int | None, optimised: bool | None) -> Layer:
    path = str(variable.path)
    owner = None if place is None else leaves[place]
    return Layer(
        path,
        tuple(int(size) for size in variable.shape),
        "" if owner is None else type(owner).__name__.removesuffix("Cell"),
        path.rpartition("/")[2],
        place,
        DTYPES.get(str(variable.dtype), str(variable.dtype)),
        optimised=optimised,
        activation="" if place is None else behind(leaves, place)[0],
    )


def behind(leaves: list[Any], place: int) -> tuple[str, Any]:
    """Name the non-linearity behind a layer, and give the layer whose output it makes.

    "" and the layer itself, where there is none.
    """
    layer = leaves[place]
    if any(kind in type(layer).__name__ for kind in _GATED):
        return "", layer
    own = activation_of(layer)
    if own:
        return own, layer
    for each in leaves[place + 1 :]:
        name, kind = activation_of(each), type(each).__name__
        if name and not any(True for _ in each.weights):
            return name, each
        if "Normalization" not in kind and not any(word in kind for word in _PASSES):
            break
    return "", layer


def activation_of(layer: Any) -> str:
    """Name the non-linearity that a layer is or carries; "" where it is linear."""
    own = NAMES.get(type(layer).__name__)
    if own is not None:
        return own
    return NAMES.get(getattr(getattr(layer, "activation", None), "__name__", ""), "")


def facts_of(model: Any, layers: Iterable[Layer]) -> dict[str, Any]:
    """Describe a model before it runs."""
    leaves = [
        each
        for each in leaves_of(model)
        if not any(word in type(each).__name__ for word in _PASSES)
    ]
    known = {layer.name for layer in layers}
    last = leaves[-1] if leaves else None
    return {
        "dropout": max(map(_dropped, leaves_of(model)), default=0.0),
        "norm_layers": sum("Normalization" in type(each).__name__ for each in leaves),
        "activations": sorted({activation_of(each) for each in leaves} - {""}),
        "frozen": [
            str(each.path)
            for layer in leaves
            if not layer.trainable
            for each in layer.weights
            if str(each.path) not in known
        ],
        "final_module": None if last is None else activation_of(last) or type(last).__name__,
    }


def _dropped(layer: Any) -> float:
    """Return the share of its input that a layer drops in training."""
    share = getattr(layer, "rate", None) if "Dropout" in type(layer).__name__ else None
    return float(share) if isinstance(share, (int, float)) else 0.0


_OF_GRADIENT = 5  # fields of a frame that come first and tell of the gradient


class Applied(NamedTuple):
    """What was read of one `apply`."""

    places: tuple[int, ...]  # of its variables among those that are watched
    numbers: Callable[[], Any]
    rate: Any


def wrapped(
    optimizer: Any, read: Callable[..., Any], fail: Callable[[Exception], None]
) -> Callable[[], None]:
    """Put a reader around `apply`; return what removes it again. `fail` gets our errors."""
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
    """Return the layer of each variable that was handed over; one that is not watched has none."""
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
    """Return the fields of a frame out of tensors, on the recorder's thread, in 64 bits."""
    import numpy as np

    missing = np.array(MISSING_BITS, np.uint32).view(np.float32)[()]
    columns, finite = [], []
    for gradient, weight, move in zip(gradients, weights, moved, strict=True):
        values = np.zeros(0) if gradient is None else _array(gradient)
        norm = _norm(values)
        # A norm that is finite says that all values are, and saves the look at each.
        sizes = np.abs(values if isfinite(norm) else values[np.isfinite(values)])
        finite.append(sizes.size)
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
    block[:_OF_GRADIENT, none] = missing
    # Of no finite value there is neither a mean nor a largest.
    block[1:3, [place for place, values in enumerate(finite) if not values]] = missing
    return block


def _norm(values: Any) -> float:
    """Return the L2 norm; squares of 32-bit floats do not leave the range of 64 bits."""
    return sqrt(total) if isfinite(total := float(values @ values)) else total


def _array(tensor: Any) -> Any:
    return tensor.double().cpu().numpy().ravel()


def _on_jax(keep: Callable[[Applied], None], known: dict[int, int]) -> Callable[..., Any]:
    """Make the numbers inside the compiled step; JAX hands them out when it has them."""
    import jax
    from keras import ops

    from ..jax import statistics

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
