"""Keras: what there is to watch in a model: its variables, with the layers that they belong to.

A Keras layer may carry its non-linearity itself, or the layer behind it is one; both are named as
PyTorch names them, since the diagnoses know one set of names.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..runs import Layer

# How Keras names a non-linearity, as a function or as a layer, and how the house does.
NAMES = {
    "relu": "ReLU", "relu6": "ReLU6", "leaky_relu": "LeakyReLU", "elu": "ELU", "selu": "SELU",
    "celu": "CELU", "gelu": "GELU", "silu": "SiLU", "mish": "Mish", "tanh": "Tanh",
    "sigmoid": "Sigmoid", "hard_sigmoid": "Hardsigmoid", "hard_silu": "Hardswish",
    "hard_tanh": "Hardtanh", "softplus": "Softplus", "softsign": "Softsign", "softmax": "Softmax",
    "log_softmax": "LogSoftmax", "log_sigmoid": "LogSigmoid", "glu": "GLU",
    "ReLU": "ReLU", "LeakyReLU": "LeakyReLU", "PReLU": "PReLU", "ELU": "ELU", "Softmax": "Softmax",
}  # fmt: skip
DTYPES = {"float64": "F64", "float32": "F32", "float16": "F16", "bfloat16": "BF16"}
# What passes on what it gets: a non-linearity behind it belongs to the layer before it too.
_PASSES = ("Dropout", "Flatten", "Reshape", "InputLayer", "Identity")
_GATED = ("GRU", "LSTM")


def leaves_of(model: Any) -> list[Any]:
    """List the layers that do something themselves, in the order in which they stand in a model.

    Keras' own walk turns the parts of a layer round, so it is not taken.
    """
    found: dict[int, Any] = {}

    def walk(layer: Any) -> None:
        # A model lists its layers in the order in which they run.
        parts = list(getattr(layer, "layers", None) or layer._layers)  # noqa: SLF001
        if layer is not model and (not parts or _own(layer)):
            found.setdefault(id(layer), layer)
        for part in parts:
            walk(part)

    walk(model)
    return list(found.values())


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
    """Gather what can be said of a model before it runs."""
    leaves = [
        each for each in leaves_of(model)
        if not any(word in type(each).__name__ for word in _PASSES)
    ]  # fmt: skip
    known = {layer.name for layer in layers}
    last = leaves[-1] if leaves else None
    return {
        "dropout": max(map(_dropped, leaves_of(model)), default=0.0),
        "norm_layers": sum("Normalization" in type(each).__name__ for each in leaves),
        "activations": sorted({activation_of(each) for each in leaves} - {""}),
        "frozen": [
            str(each.path) for layer in leaves if not layer.trainable for each in layer.weights
            if str(each.path) not in known
        ],
        "final_module": None if last is None else activation_of(last) or type(last).__name__,
    }  # fmt: skip


def _dropped(layer: Any) -> float:
    """Give the share of its input that a layer drops in training."""
    share = getattr(layer, "rate", None) if "Dropout" in type(layer).__name__ else None
    return float(share) if isinstance(share, (int, float)) else 0.0
