"""JAX: the order of layers from the program of a forward pass, and numbers from inside the step.

Parameters of JAX are a tree of arrays in the order of the alphabet, and no module says what they
are. The program of the pass (its jaxpr) does: which leaf is multiplied first, which non-linearity
its product goes through, what the last one is. It is traced once and never run.

A hook has nothing to hang on to in JAX: the step is one compiled function. So the numbers of a
gradient are an output of it, one small array for all layers, and are fetched when the next step is
under way.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from ..records.runs import MISSING_BITS, Layer

_NONE: frozenset[int] = frozenset()
# How JAX names a non-linearity, as a function or as a primitive, and how the house does.
_NAMES = {
    "relu": "ReLU",
    "relu6": "ReLU6",
    "leaky_relu": "LeakyReLU",
    "elu": "ELU",
    "selu": "SELU",
    "celu": "CELU",
    "gelu": "GELU",
    "silu": "SiLU",
    "swish": "SiLU",
    "mish": "Mish",
    "tanh": "Tanh",
    "hard_tanh": "Hardtanh",
    "sigmoid": "Sigmoid",
    "logistic": "Sigmoid",
    "hard_sigmoid": "Hardsigmoid",
    "hard_silu": "Hardswish",
    "hard_swish": "Hardswish",
    "softplus": "Softplus",
    "soft_sign": "Softsign",
    "log_sigmoid": "LogSigmoid",
    "glu": "GLU",
    "softmax": "Softmax",
    "log_softmax": "LogSoftmax",
    "erf": "Erf",
    "erfc": "Erf",
}
# What a value multiplied by its own gate is.
_GATED = {"Tanh": "GELU", "Erf": "GELU", "Sigmoid": "SiLU"}
_PRODUCTS = {"dot_general": "Dense", "conv_general_dilated": "Conv"}
_VIEWS = frozenset(
    """
    reshape transpose convert_element_type broadcast_in_dim squeeze copy stop_gradient rev
    slice expand_dims device_put sharding_constraint
""".split()
)
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
            meeting = self._meets(equation, entering)
            known |= dict(zip(equation.outvars, meeting, strict=True))
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


_ROWS = 256  # of inputs that are looked at to describe them


def layers_of(parameters: Any, passed: Passed | None = None) -> tuple[Layer, ...]:
    """Describe the leaves of a tree of parameters, in the order in which JAX flattens it.

    Their depth is the order in which a forward pass uses them. Where none was read it is that of
    their names, in which layer 10 comes behind layer 2.
    """
    from jax.tree_util import tree_flatten_with_path

    leaves, _ = tree_flatten_with_path(parameters)
    names = [_name(path) for path, _ in leaves]
    seen = passed or Passed({}, {}, {}, "", ())
    by_name = sorted(range(len(names)), key=lambda place: _counted(names[place]))
    # What the pass does not use stands behind what it does.
    order = sorted(by_name, key=lambda place: seen.depths.get(place, len(names)))
    depths = {place: depth for depth, place in enumerate(order)}
    return tuple(
        Layer(
            names[place],
            tuple(int(size) for size in leaf.shape),
            seen.kinds.get(place, ""),
            role=_name(path[-1:]),
            depth=depths[place],
            dtype=str(leaf.dtype),
            activation=seen.activations.get(place, ""),
        )
        for place, (path, leaf) in enumerate(leaves)
    )


def _counted(name: str) -> list[tuple[int, str]]:
    """Return what sorts a name with its numbers as numbers."""
    return [(int(each), "") if each.isdigit() else (-1, each) for each in re.split(r"(\d+)", name)]


def _name(path: tuple[Any, ...]) -> str:
    """Write the way to a leaf as people name layers: `encoder.0.kernel`."""
    parts = (getattr(key, "key", getattr(key, "name", getattr(key, "idx", key))) for key in path)
    return ".".join(map(str, parts))


def described(batch: Any) -> dict[str, Any]:
    """Describe a batch of inputs, its first rows."""
    import numpy as np

    facts: dict[str, Any] = {"dtype": str(batch.dtype)}
    if "float" not in facts["dtype"] or not batch.size:
        return facts
    rows = np.asarray(batch[:_ROWS] if batch.ndim else batch, np.float64)
    rows = rows.reshape(len(rows) if rows.ndim else 1, -1)
    spread = rows.std(axis=0)
    figures = {
        "mean": rows.mean(),
        "std": rows.std(),
        "min": rows.min(),
        "max": rows.max(),
        "features_std_min": spread.min(),
        "features_std_max": spread.max(),
    }
    return facts | {name: float(value) for name, value in figures.items()}


def statistics(gradients: Any, parameters: Any = None, updates: Any = None) -> Any:
    """Return the fields of a frame for every leaf, as an array (7, layers); works under `jit`.

    `updates` is what is added to the parameters, as Optax gives it. What is not handed in is
    missing in the rows of weights and updates.

    Sums are in 32 bits whatever the leaves are; squares are of values scaled by the largest, so
    that neither 1e-30 nor 1e30 is lost.
    """
    import jax
    import jax.numpy as jnp

    rows = [_of_gradient(leaf) for leaf in jax.tree_util.tree_leaves(gradients)]
    unknown = [_missing()] * len(rows)
    weights, moved = (
        [_norm(jnp.asarray(leaf, jnp.float32)) for leaf in jax.tree_util.tree_leaves(tree)]
        if tree is not None
        else unknown
        for tree in (parameters, updates)
    )
    table = [*zip(*rows, strict=True), weights, moved]
    return jnp.stack([jnp.stack(list(row)) for row in table])


def _of_gradient(leaf: Any) -> tuple[Any, ...]:
    """Return the first five fields of a layer: over the finite values, and how many are not."""
    import jax.numpy as jnp

    values = jnp.asarray(leaf, jnp.float32)
    finite = jnp.isfinite(values)
    odd = jnp.sum(~finite).astype(jnp.float32)
    sizes = jnp.abs(jnp.where(finite, values, 0.0))
    left = values.size - odd
    # Of no finite value there is neither a mean nor a largest.
    share = jnp.where(left > 0, jnp.sum(sizes) / jnp.maximum(left, 1), _missing())
    largest = jnp.where(left > 0, jnp.max(sizes, initial=0.0), _missing())
    # A norm that hides what is not finite would say "healthy" of a gradient that is lost.
    norm = jnp.where(odd > 0, _norm(values), _norm(sizes))
    zeros = jnp.sum(values == 0).astype(jnp.float32)
    return norm, share, largest, odd, zeros


def _missing() -> Any:
    import jax
    import jax.numpy as jnp

    return jax.lax.bitcast_convert_type(jnp.uint32(MISSING_BITS), jnp.float32)


def _norm(values: Any) -> Any:
    import jax.numpy as jnp

    largest = jnp.max(jnp.abs(values), initial=0.0)
    scale = jnp.where((largest > 0) & jnp.isfinite(largest), largest, 1.0)
    return scale * jnp.sqrt(jnp.sum(jnp.square(values / scale)))
