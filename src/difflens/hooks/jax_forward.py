"""JAX: a forward pass read as a program: in which order leaves are used, and what is behind them.

Parameters of JAX are a tree of arrays in the order of the alphabet, and no module says what they
are. The program of the pass (its jaxpr) does: which leaf is multiplied first, which non-linearity
its product goes through, what the last one is. It is traced once and never run.
"""

from __future__ import annotations

from typing import Any, NamedTuple

_NONE: frozenset[int] = frozenset()
# How JAX names a non-linearity, as a function or as a primitive, and how the house does.
_NAMES = {
    "relu": "ReLU", "relu6": "ReLU6", "leaky_relu": "LeakyReLU", "elu": "ELU", "selu": "SELU",
    "celu": "CELU", "gelu": "GELU", "silu": "SiLU", "swish": "SiLU", "mish": "Mish",
    "tanh": "Tanh", "hard_tanh": "Hardtanh", "sigmoid": "Sigmoid", "logistic": "Sigmoid",
    "hard_sigmoid": "Hardsigmoid", "hard_silu": "Hardswish", "hard_swish": "Hardswish",
    "softplus": "Softplus", "soft_sign": "Softsign", "log_sigmoid": "LogSigmoid", "glu": "GLU",
    "softmax": "Softmax", "log_softmax": "LogSoftmax", "erf": "Erf", "erfc": "Erf",
}  # fmt: skip
# What a value multiplied by its own gate is.
_GATED = {"Tanh": "GELU", "Erf": "GELU", "Sigmoid": "SiLU"}
_PRODUCTS = {"dot_general": "Dense", "conv_general_dilated": "Conv"}
_VIEWS = frozenset({
    "reshape", "transpose", "convert_element_type", "broadcast_in_dim", "squeeze", "copy",
    "stop_gradient", "rev", "slice", "expand_dims", "device_put", "sharding_constraint",
})  # fmt: skip
_BY_ELEMENT = frozenset({"add", "sub", "mul", "div", "add_any", "select_n", "neg", "integer_pow"})


class _Value(NamedTuple):
    """What is known of a value: the leaf that it is, whose products it holds, what made it."""

    leaf: int | None = None
    of: frozenset[int] = _NONE
    made: str = ""
    source: Any = None  # of an exponential, and of the sum over one
    gate: tuple[str, frozenset[int]] = ("", _NONE)  # a non-linearity, and whose products it took


class Passed(NamedTuple):
    """What a pass shows of the leaves, by their places, and of its end."""

    depths: dict[int, int]
    kinds: dict[int, str]
    activations: dict[int, str]
    final: str
    output: tuple[int, ...]


def read_pass(forward: Any, parameters: Any, inputs: Any) -> Passed:
    """Trace a pass and read it."""
    import jax

    program = jax.make_jaxpr(forward)(parameters, inputs)
    count = len(jax.tree_util.tree_leaves(parameters))
    reader = _Reader()
    values = [_Value(place) for place in range(count)]
    others = [_Value()] * (len(program.jaxpr.invars) - count)
    ends = reader.read(program.jaxpr, [*values, *others])
    return Passed(
        reader.depths,
        reader.kinds,
        reader.activations,
        ends[0].made if ends else "",
        tuple(int(size) for size in program.out_avals[0].shape) if program.out_avals else (),
    )


class _Reader:
    """Walks through the equations of a program."""

    def __init__(self) -> None:
        self.depths: dict[int, int] = {}
        self.kinds: dict[int, str] = {}
        self.activations: dict[int, str] = {}

    def read(self, program: Any, given: list[_Value]) -> list[_Value]:
        """Read a program whose inputs are known so far; give what is known of its outputs."""
        known: dict[Any, _Value] = dict(zip(program.invars, given, strict=True))

        def look(atom: Any) -> _Value:
            return known.get(atom, _Value()) if not hasattr(atom, "val") else _Value()

        for equation in program.eqns:
            entering = [look(each) for each in equation.invars]
            found = self._meets(equation, entering)
            known |= dict(zip(equation.outvars, found, strict=True))
        return [look(each) for each in program.outvars]

    def _meets(self, equation: Any, given: list[_Value]) -> list[_Value]:
        primitive, outputs = equation.primitive.name, len(equation.outvars)
        inner = equation.params.get("jaxpr") or equation.params.get("call_jaxpr")
        name = _activation(equation)
        if name:
            leaves = _NONE.union(*(each.of for each in given))
            for leaf in leaves:
                self.activations.setdefault(leaf, name)
            return [_Value(made=name, gate=(name, leaves))] * outputs
        if inner is not None and primitive not in {"scan", "while"}:
            program = getattr(inner, "jaxpr", inner)
            if len(program.invars) == len(given):
                return self.read(program, given)
        if primitive in _VIEWS:
            return [given[0]] * outputs
        for each in given:
            self._uses(each.leaf, _PRODUCTS.get(primitive, ""))
        return [self._made(equation, primitive, given)] * outputs

    def _uses(self, leaf: int | None, kind: str) -> None:
        if leaf is not None:
            self.depths.setdefault(leaf, len(self.depths))
            if kind:
                self.kinds.setdefault(leaf, kind)

    def _made(self, equation: Any, primitive: str, given: list[_Value]) -> _Value:
        leaves = {each.leaf for each in given if each.leaf is not None}
        if primitive in _PRODUCTS:
            return _Value(of=frozenset(leaves))
        softened = _softened(equation, primitive, given)
        if softened is not None:
            return softened
        if primitive not in _BY_ELEMENT:
            return _Value()
        products = _NONE.union(*(each.of for each in given))
        gate = next((each.gate for each in given if each.gate[0]), ("", _NONE))
        if primitive == "mul" and gate[0] in _GATED and gate[1] & products:
            for leaf in gate[1] & products:
                self.activations[leaf] = _GATED[gate[0]]
            return _Value(made=_GATED[gate[0]])
        return _Value(of=products | leaves, gate=gate)


def _softened(equation: Any, primitive: str, given: list[_Value]) -> _Value | None:
    """Follow a softmax that is written out: exponentials by their own sum; None: it is none."""
    if primitive == "exp":
        return _Value(source=equation.outvars[0])
    if given[:1] and given[0].source is not None:
        if primitive == "reduce_sum":
            return _Value(source=("sum", given[0].source))
        if primitive == "div":
            own = given[-1].source == ("sum", given[0].source)
            return _Value(made="Softmax" if own else "")
    return None


def _activation(equation: Any) -> str:
    """Name the non-linearity that an equation is; "" where it is none."""
    primitive = equation.primitive.name
    if primitive == "max":
        zero = any(hasattr(each, "val") and _is_zero(each.val) for each in equation.invars)
        return "ReLU" if zero else ""
    called = equation.params.get("name") if {"jaxpr", "call_jaxpr"} & set(equation.params) else None
    return _NAMES.get(str(called) if called else primitive, "")


def _is_zero(value: Any) -> bool:
    import numpy as np

    return np.ndim(value) == 0 and float(value) == 0.0
