"""JAX: the numbers of every leaf of a tree of gradients, computed inside the jitted step.

A hook has nothing to hang on to in JAX: the step is one compiled function. So the numbers are an
output of it, one small array for all layers, and are fetched when the next step is under way.
"""

from __future__ import annotations

import re
from typing import Any

from ..runs import MISSING_BITS, Layer
from .jax_forward import Passed

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
    """Give what sorts a name with its numbers as numbers."""
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
        "mean": rows.mean(), "std": rows.std(), "min": rows.min(), "max": rows.max(),
        "features_std_min": spread.min(), "features_std_max": spread.max(),
    }  # fmt: skip
    return facts | {name: float(value) for name, value in figures.items()}


def statistics(gradients: Any, parameters: Any = None, updates: Any = None) -> Any:
    """Give the fields of a frame for every leaf, as an array (7, layers); works under `jit`.

    `updates` is what is added to the parameters, as Optax gives it. What is not handed in is
    missing in the rows of weights and updates.

    Sums are in 32 bits whatever the leaves are; squares are of values scaled by the largest, so
    that neither 1e-30 nor 1e30 is lost.
    """
    import jax
    import jax.numpy as jnp

    rows = [_of_gradient(leaf) for leaf in jax.tree_util.tree_leaves(gradients)]
    missing = jax.lax.bitcast_convert_type(jnp.uint32(MISSING_BITS), jnp.float32)
    unknown = [missing] * len(rows)
    weights, moved = (
        [_norm(jnp.asarray(leaf, jnp.float32)) for leaf in jax.tree_util.tree_leaves(tree)]
        if tree is not None
        else unknown
        for tree in (parameters, updates)
    )
    table = [*zip(*rows, strict=True), weights, moved]
    return jnp.stack([jnp.stack(list(row)) for row in table])


def _of_gradient(leaf: Any) -> tuple[Any, ...]:
    """Give the first five fields of a layer: over the finite values, and how many are not."""
    import jax.numpy as jnp

    values = jnp.asarray(leaf, jnp.float32)
    finite = jnp.isfinite(values)
    odd = jnp.sum(~finite).astype(jnp.float32)
    sizes = jnp.abs(jnp.where(finite, values, 0.0))
    share = jnp.sum(sizes) / jnp.maximum(values.size - odd, 1)
    # A norm that hides what is not finite would say "healthy" of a gradient that is lost.
    norm = jnp.where(odd > 0, _norm(values), _norm(sizes))
    zeros = jnp.sum(values == 0).astype(jnp.float32)
    return norm, share, jnp.max(sizes, initial=0.0), odd, zeros


def _norm(values: Any) -> Any:
    import jax.numpy as jnp

    largest = jnp.max(jnp.abs(values), initial=0.0)
    scale = jnp.where((largest > 0) & jnp.isfinite(largest), largest, 1.0)
    return scale * jnp.sqrt(jnp.sum(jnp.square(values / scale)))
