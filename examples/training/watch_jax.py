"""Watch a JAX loop with Optax: `python examples/training/watch_jax.py RUN`."""

import sys
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

import difflens

rng = np.random.default_rng(0)
inputs = jnp.asarray(rng.normal(size=(512, 16)), jnp.float32)
targets = (inputs.sum(axis=1) > 0).astype(jnp.int32)
params = {
    "hidden": {"kernel": jnp.asarray(rng.normal(0, 0.25, (16, 32)), jnp.float32)},
    "output": {"kernel": jnp.asarray(rng.normal(0, 0.18, (32, 2)), jnp.float32)},
}
optimizer = optax.adam(1e-2)


def loss_of(params: dict[str, Any], batch: jax.Array, labels: jax.Array) -> jax.Array:
    """Return the cross entropy of a batch."""
    hidden = jnp.tanh(batch @ params["hidden"]["kernel"])
    logits = hidden @ params["output"]["kernel"]
    return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()


@jax.jit
def train_step(
    params: dict[str, Any], state: tuple[Any, ...], batch: jax.Array, labels: jax.Array
) -> tuple[Any, ...]:
    """Take a step, and tell what the gradients were."""
    loss, grads = jax.value_and_grad(loss_of)(params, batch, labels)
    updates, state = optimizer.update(grads, state, params)
    told = difflens.jax_statistics(grads, params, updates)
    return optax.apply_updates(params, updates), state, loss, told


state = optimizer.init(params)
with difflens.jax_monitor(params, sys.argv[1]) as watch:
    for step in range(100):
        part = slice(64 * (step % 8), 64 * (step % 8) + 64)
        params, state, loss, told = train_step(params, state, inputs[part], targets[part])
        watch.step(told, loss=loss)
