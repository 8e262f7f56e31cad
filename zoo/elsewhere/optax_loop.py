"""Trains the networks of the zoo in JAX with Optax, watched by the JAX monitor of difflens."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import nullcontext
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..configs.config import Config
from ..data import Data, batches, load
from ..loop import VALIDATE_EVERY, rate_at
from .start import starts

Tree = Any


class Program(NamedTuple):
    """What is compiled once for all seeds of a configuration."""

    forward: Callable[..., Any]
    step: Callable[..., Any]
    measure: Callable[..., Any]
    optimizer: Any


def train(config: Config, seed: int, folder: Path | None) -> dict[str, Any]:
    """Train to the end, recorded where a folder is given, and measure on what was held back."""
    import jax

    from difflens.training.callbacks.jax import jax_monitor

    data, program = load(config, seed), program_of(config)
    layers = [each._asdict() for each in starts(config, data, seed)]
    frozen, params = layers[: config.frozen], _named(layers, config.frozen)
    state, key = program.optimizer.init(params), jax.random.key(seed)
    losses: list[float] = []
    held_back: dict[int, float] = {}
    stream = batches(config, len(data.inputs), seed)
    first = data.inputs[: config.batch]
    watching = (
        nullcontext()
        if folder is None
        else jax_monitor(
            params, folder, diagnose_every=None, inputs=first,
            forward=lambda params, inputs: program.forward(params, frozen, inputs, None),
        )
    )  # fmt: skip
    with watching as watch:
        for step in range(config.steps):
            places, rate = next(stream), rate_at(config, step)
            inputs = data.inputs[places]
            if step == config.bad_step:
                inputs = inputs.copy()
                inputs[0] = math.nan
            batch = (inputs, data.targets[places], jax.random.fold_in(key, step))
            params, state, loss, told = program.step(params, frozen, state, batch, np.float32(rate))
            losses.append(float(loss))
            more: dict[str, Any] = {}
            if step % VALIDATE_EVERY == VALIDATE_EVERY - 1:
                more["val_loss"] = _measured(program, config, data, params, frozen)["val_loss"]
                held_back[step] = more["val_loss"]
            if watch is not None:
                watch.step(told, loss=loss, lr=rate, **more)
    measured = _measured(program, config, data, params, frozen)
    return {**measured, "losses": losses, "val_losses": held_back}


def _named(layers: list[Any], frozen: int) -> Tree:
    """Return the tree of what trains: hidden layers in a list by number, and the output."""
    hidden = {str(place): each for place, each in enumerate(layers[:-1]) if place >= frozen}
    return {"hidden": hidden, "output": layers[-1]}


def _measured(
    program: Program, config: Config, data: Data, params: Tree, frozen: Any
) -> dict[str, float]:
    loss, right = program.measure(params, frozen, data.held_inputs, data.held_targets)
    scale = 1.0 if data.classes else config.target_scale**2
    accuracy = {"val_accuracy": float(right)} if data.classes else {}
    return {"val_loss": float(loss) / scale, **accuracy}


@cache
def program_of(config: Config) -> Program:
    """Compile what a configuration does; seeds change its arguments alone."""
    import jax
    import jax.numpy as jnp
    import optax  # type: ignore[import-untyped,unused-ignore]

    from difflens.training.callbacks.jax import jax_statistics

    known: dict[str, Callable[[Any], Any]] = {
        "relu": jax.nn.relu, "tanh": jnp.tanh, "sigmoid": jax.nn.sigmoid, "gelu": jax.nn.gelu,
    }  # fmt: skip
    activation, optimizer = known[config.activation], _optimizer(config)

    def forward(params: Tree, frozen: Any, values: Any, key: Any) -> Any:
        hidden = params["hidden"]
        for layer in (*frozen, *(hidden[name] for name in sorted(hidden, key=int))):
            values = activation(values @ layer["kernel"] + layer["bias"])
            if config.dropout and key is not None:
                key, own = jax.random.split(key)
                keep = jax.random.bernoulli(own, 1 - config.dropout, values.shape)
                values = jnp.where(keep, values / (1 - config.dropout), 0.0)
        scores = values @ params["output"]["kernel"] + params["output"]["bias"]
        return jax.nn.softmax(scores) if config.softmax else scores

    def loss_of(scores: Any, targets: Any) -> Any:
        if config.data in {"regression", "autoencoder"}:
            return jnp.mean((scores - targets) ** 2)
        return optax.softmax_cross_entropy_with_integer_labels(scores, targets).mean()

    def signed(params: Tree, frozen: Any, batch: Any) -> Any:
        inputs, targets, key = batch
        return config.loss_sign * loss_of(forward(params, frozen, inputs, key), targets)

    @jax.jit
    def step(params: Tree, frozen: Any, state: Any, batch: Any, rate: Any) -> Any:
        loss, grads = jax.value_and_grad(signed)(params, frozen, batch)
        state.hyperparams["learning_rate"] = rate
        updates, state = optimizer.update(grads, state, params)
        told = jax_statistics(grads, params, updates)
        return optax.apply_updates(params, updates), state, loss, told

    @jax.jit
    def measure(params: Tree, frozen: Any, inputs: Any, targets: Any) -> Any:
        scores = forward(params, frozen, inputs, None)
        right = (scores.argmax(-1) == targets.reshape(len(targets), -1)[:, 0]) & jnp.isfinite(
            scores
        ).all(-1)
        return loss_of(scores, targets), right.mean()

    return Program(forward, step, measure, optimizer)


def _optimizer(config: Config) -> Any:
    """Return the optimizer; its rate is an argument of each step."""
    import optax

    def made(learning_rate: Any) -> Any:
        kinds: dict[str, Callable[[], Any]] = {
            "sgd": lambda: optax.sgd(learning_rate, config.momentum or None),
            "adam": lambda: optax.adam(learning_rate),
            "adamw": lambda: optax.adamw(learning_rate, weight_decay=config.weight_decay),
        }
        chosen = kinds[config.optimiser]()
        if config.optimised == "last":
            still = {"hidden": "still", "output": "moves"}
            parts = {"still": optax.set_to_zero(), "moves": chosen}
            return optax.multi_transform(parts, still)
        return chosen

    return optax.inject_hyperparams(made)(learning_rate=config.lr)
