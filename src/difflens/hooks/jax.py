"""JAX: the numbers of every leaf of a tree of gradients, computed inside the jitted step.

A hook has nothing to hang on to in JAX: the step is one compiled function. So the numbers are an
output of it, one small array for all layers, and are fetched when the next step is under way.
"""

from __future__ import annotations

from typing import Any

from ..runs import MISSING_BITS, Layer


def layers_of(parameters: Any) -> tuple[Layer, ...]:
    """Describe the leaves of a tree of parameters, in the order in which JAX flattens it."""
    from jax.tree_util import tree_flatten_with_path

    leaves, _ = tree_flatten_with_path(parameters)
    return tuple(
        Layer(
            _name(path),
            tuple(int(size) for size in leaf.shape),
            role=_name(path[-1:]),
            depth=place,
            dtype=str(leaf.dtype),
        )
        for place, (path, leaf) in enumerate(leaves)
    )


def _name(path: tuple[Any, ...]) -> str:
    """Write the way to a leaf as people name layers: `encoder.0.kernel`."""
    parts = (getattr(key, "key", getattr(key, "name", getattr(key, "idx", key))) for key in path)
    return ".".join(map(str, parts))


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
