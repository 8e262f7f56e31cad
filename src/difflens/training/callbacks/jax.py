"""JAX and Optax: numbers made inside the jitted step, recorded outside of it.

watch = difflens.jax_monitor(params, "runs/one", forward=model, inputs=batch)

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

from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..hooks.jax import Passed, described, layers_of, read_pass, statistics
from ..recorder.alarm import warn
from ..recorder.monitors import PlainMonitor
from ..records.runs import RunInfo

jax_statistics = statistics


def jax_monitor(
    parameters: Any,
    run: str | Path = "runs/run",
    *,
    forward: Callable[[Any, Any], Any] | None = None,
    inputs: Any = None,
    **how: Any,
) -> JaxMonitor:
    """Record a run of a model whose parameters are a tree; `how` is that of `difflens.monitor`.

    Only the shapes and names of the tree are read, and nothing of it is kept. `forward` takes the
    parameters and `inputs`, a batch of them, and gives the output: it is traced and never run, and
    shows in which order layers stand, what is behind them and what the output is. Some diagnoses
    need that: dead units, probabilities where logits belong, labels that say nothing.
    """
    import jax

    device = jax.devices()[0]
    passed = _passed(forward, parameters, inputs)
    info = RunInfo(
        layers=layers_of(parameters, passed),
        framework=f"jax {jax.__version__}",
        device=f"{device.platform}: {device.device_kind}",
        gradient="as handed in",
        facts=_facts(passed, inputs),
    )
    return JaxMonitor(run, info, **how)


def _passed(forward: Any, parameters: Any, inputs: Any) -> Passed | None:
    """Read the forward pass; one that cannot be traced is a word of warning and no more."""
    if forward is None:
        return None
    try:
        return read_pass(forward, parameters, inputs)
    except Exception as error:  # noqa: BLE001  a stranger's function may fail in any way
        warn(f"the forward pass could not be traced: {type(error).__name__}: {error}")
        return None


def _facts(passed: Passed | None, inputs: Any) -> dict[str, Any]:
    """Say what goes into the pass, and what comes out of it."""
    facts: dict[str, Any] = {}
    if passed is not None:
        facts["final_module"] = passed.final or None
        facts["activations"] = sorted(set(passed.activations.values()))
        if passed.output:
            sums = passed.final == "Softmax" and passed.output[-1] > 1
            facts["output"] = {"shape": list(passed.output), "rows_sum_to_one": sums}
    if inputs is not None:
        import jax

        leaves = [each for each in jax.tree_util.tree_leaves(inputs) if hasattr(each, "shape")]
        facts |= {"input": described(leaves[0])} if leaves else {}
    return facts


class JaxMonitor(PlainMonitor):
    """A run that is fed with what `jax_statistics` made."""

    def step(self, told: Any, loss: Any = None, *, step: int | None = None, **scalars: Any) -> bool:
        """Close a frame; nothing is waited for here, the recorder's thread fetches the numbers."""
        if loss is not None:
            scalars["loss"] = loss
        return self.end_step(lambda: _fetched(told), scalars, step)


def _fetched(told: Any) -> Any:
    """Wait for the device, on the recorder's thread."""
    import numpy as np

    return np.asarray(told, np.float32)
