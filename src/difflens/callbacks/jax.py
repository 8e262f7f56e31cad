"""JAX and Optax: numbers made inside the jitted step, recorded outside of it.

watch = difflens.jax_monitor(params, "runs/one")

@jax.jit
def train_step(params, state, batch):
    loss, grads = jax.value_and_grad(loss_of)(params, batch)
    updates, state = optimizer.update(grads, state, params)
    told = difflens.jax_statistics(grads, params, updates)
    return optax.apply_updates(params, updates), state, loss, told

for batch in data:
    params, state, loss, told = train_step(params, state, batch)
    watch.step(told, loss=loss)
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..hooks.jax import layers_of, statistics
from ..runs import RunInfo
from ..watching.plain import PlainMonitor

jax_statistics = statistics


def jax_monitor(parameters: Any, run: str | Path = "runs/run", **how: Any) -> JaxMonitor:
    """Record a run of a model whose parameters are a tree; `how` is that of `difflens.monitor`.

    Only the shapes and names of the tree are read, and nothing of it is kept.
    """
    import jax

    device = jax.devices()[0]
    info = RunInfo(
        layers=layers_of(parameters),
        framework=f"jax {jax.__version__}",
        device=f"{device.platform}: {device.device_kind}",
        gradient="as handed in",
    )
    return JaxMonitor(run, info, **how)


class JaxMonitor(PlainMonitor):
    """A run that is fed with what `jax_statistics` made."""

    def step(self, told: Any, loss: Any = None, *, step: int | None = None, **scalars: Any) -> bool:
        """Close a frame; nothing is waited for here, the recorder's thread fetches the numbers."""
        if loss is not None:
            scalars["loss"] = loss
        return self.take(lambda: _fetched(told), scalars, step)


def _fetched(told: Any) -> Any:
    """Wait for the device, on the recorder's thread."""
    import numpy as np

    return np.asarray(told, np.float32)
