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

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from ..hooks.jax import layers_of, statistics
from ..runs import RunFinding, RunInfo
from ..watching.plain import PlainMonitor

jax_statistics = statistics


def jax_monitor(parameters: Any, run: str | Path = "runs/run", **how: Any) -> JaxMonitor:
    """Record a run of a model whose parameters are a tree; `how` is that of `difflens.monitor`.

    Only the shapes and names of the tree are read, and nothing of it is kept.
    """
    return JaxMonitor(parameters, run, how)


class JaxMonitor:
    """A run that is fed with what `jax_statistics` made."""

    def __init__(self, parameters: Any, run: str | Path, how: Mapping[str, Any]) -> None:
        """Begin the run."""
        import jax

        device = jax.devices()[0]
        info = RunInfo(
            layers=layers_of(parameters),
            framework=f"jax {jax.__version__}",
            device=f"{device.platform}: {device.device_kind}",
            gradient="as handed in",
        )
        self._run = PlainMonitor(run, info, **how)

    def step(self, told: Any, loss: Any = None, *, step: int | None = None, **scalars: Any) -> bool:
        """Close a frame; nothing is waited for here, the recorder's thread fetches the numbers."""
        if loss is not None:
            scalars["loss"] = loss
        return self._run.take(lambda: _fetched(told), scalars, step)

    @property
    def findings(self) -> tuple[RunFinding, ...]:
        """What the diagnoses said when they last looked, the most likely cause first."""
        return self._run.findings

    @property
    def should_stop(self) -> bool:
        """Was there a finding as grave as `stop_on`?"""
        return self._run.should_stop

    def flush(self) -> bool:
        """Wait until every step so far is on disk, two seconds at the most; is it?"""
        return self._run.flush()

    def close(self) -> None:
        """End the run."""
        self._run.close()

    def __enter__(self) -> Self:
        """Use it in a `with`."""
        return self

    def __exit__(self, *_error: object) -> None:
        """Close it."""
        self.close()


def _fetched(told: Any) -> Any:
    """Wait for the device, on the recorder's thread."""
    import numpy as np

    return np.asarray(told, np.float32)
