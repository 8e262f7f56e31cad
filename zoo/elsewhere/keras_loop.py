"""Trains the networks of the zoo with `keras.Model.fit`, watched by the Keras callback of difflens.

Keras fixes its backend when it is imported, so each backend has a process of its own.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ..configs.config import Config
from ..data import Data, batches, load
from ..loop import VALIDATE_EVERY, rate_at
from .start import starts


def train(config: Config, seed: int, folder: Path | None) -> dict[str, Any]:
    """Train to the end, recorded where a folder is given, and measure on what was held back."""
    import keras

    from difflens.training.callbacks.keras import keras_callback

    keras.utils.set_random_seed(seed)
    data = load(config, seed)
    model = build(config, data, seed)
    losses = _losses()
    callbacks: list[Any] = [losses]
    if folder is not None:
        callbacks.append(keras_callback(folder, activations=5, diagnose_every=None))
    fitted = model.fit(
        _stream(config, data, seed),
        epochs=config.steps // VALIDATE_EVERY,
        steps_per_epoch=VALIDATE_EVERY,
        validation_data=(data.held_inputs, data.held_targets),
        validation_batch_size=len(data.held_inputs),
        verbose=0,
        callbacks=callbacks,
    )
    scale = 1.0 if data.classes else config.target_scale**2
    held_back = [each * config.loss_sign / scale for each in fitted.history["val_loss"]]
    outcome: dict[str, Any] = {
        "val_loss": held_back[-1],
        "losses": losses.of_batches,
        "val_losses": {
            place * VALIDATE_EVERY + VALIDATE_EVERY - 1: each
            for place, each in enumerate(held_back)
        },
    }
    if data.classes:
        scores = keras.ops.convert_to_numpy(model(data.held_inputs, training=False))
        right = (scores.argmax(-1) == data.held_targets) & np.isfinite(scores).all(-1)
        outcome["val_accuracy"] = float(right.mean())
    return outcome


def _losses() -> Any:
    """Return a callback that notes the loss of each batch: `fit` logs a mean over the epoch."""
    import keras

    class Losses(keras.callbacks.Callback):  # type: ignore[misc,unused-ignore]
        def __init__(self) -> None:
            super().__init__()
            self.of_batches: list[float] = []
            self._sum = 0.0

        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            before = self._sum if batch else 0.0
            self._sum = float(logs["loss"]) * (batch + 1)
            self.of_batches.append(self._sum - before)

    return Losses()


def _stream(config: Config, data: Data, seed: int) -> Iterator[tuple[Any, Any]]:
    """Yield the batches that the torch loop gets."""
    for step, places in enumerate(batches(config, len(data.inputs), seed)):
        inputs = data.inputs[places]
        if step == config.bad_step:
            inputs = inputs.copy()
            inputs[0] = math.nan
        yield inputs, data.targets[places]


def build(config: Config, data: Data, seed: int) -> Any:
    """Build and compile a model with the weights of the seed."""
    import keras

    layers: list[Any] = [keras.Input((int(data.inputs.shape[1]),))]
    found = starts(config, data, seed)
    for place, start in enumerate(found[:-1]):
        name = f"hidden_{place}"
        trains = place >= config.frozen
        layers.append(
            keras.layers.Dense(len(start.bias), config.activation, name=name, trainable=trains)
        )
        if config.dropout:
            layers.append(keras.layers.Dropout(config.dropout, seed=seed + place))
    ending = "softmax" if config.softmax else None
    layers.append(keras.layers.Dense(len(found[-1].bias), ending, name="output"))
    kind = _last_only() if config.optimised == "last" else keras.Sequential
    model = kind(layers)
    dense = [layer for layer in model.layers if layer.weights]
    for layer, start in zip(dense, found, strict=True):
        layer.set_weights([start.kernel, start.bias])
    model.compile(_optimizer(config), _loss(config, data))
    if config.optimised == "last":
        model.optimizer.build(model.trainable_variables[-2:])
    return model


def _loss(config: Config, data: Data) -> Any:
    import keras

    fitting: Any = (
        keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        if data.classes
        else keras.losses.MeanSquaredError()
    )
    if config.loss_sign > 0:
        return fitting
    return lambda targets, scores: -fitting(targets, scores)


def _optimizer(config: Config) -> Any:
    import keras

    rate = config.lr if config.schedule == "constant" and not config.warmup else _schedule(config)
    kinds = {
        "sgd": lambda: keras.optimizers.SGD(rate, momentum=config.momentum),
        "adam": lambda: keras.optimizers.Adam(rate, epsilon=1e-8),
        "adamw": lambda: keras.optimizers.AdamW(
            rate, weight_decay=config.weight_decay, epsilon=1e-8
        ),
    }
    return kinds[config.optimiser]()


def _schedule(config: Config) -> Any:
    """Return the rates of the torch loop as a schedule of Keras."""
    import keras

    rates = np.array([rate_at(config, step) for step in range(config.steps)], np.float32)

    class Rates(keras.optimizers.schedules.LearningRateSchedule):  # type: ignore[misc,unused-ignore]
        def __call__(self, step: Any) -> Any:
            place = keras.ops.minimum(keras.ops.cast(step, "int32"), len(rates) - 1)
            return keras.ops.take(keras.ops.convert_to_tensor(rates), place)

    return Rates()


def _last_only() -> Any:
    """Return a model whose own step hands the last layer to the optimizer and no other."""
    import keras

    if keras.backend.backend() == "torch":
        import torch

        class OnTorch(keras.Sequential):  # type: ignore[misc,unused-ignore]
            def train_step(self, data: Any) -> Any:
                inputs, targets = data[:2]
                loss = self.compute_loss(y=targets, y_pred=self(inputs, training=True))
                self.zero_grad()
                loss.backward()
                chosen = self.trainable_weights[-2:]
                with torch.no_grad():
                    self.optimizer.apply([each.value.grad for each in chosen], chosen)
                self._loss_tracker.update_state(loss)
                return {"loss": self._loss_tracker.result()}

        return OnTorch
    import jax

    class OnJax(keras.Sequential):  # type: ignore[misc,unused-ignore]
        def train_step(self, state: Any, data: Any) -> Any:
            trained, others, optimizer, metrics = state
            inputs, targets = data[:2]
            gradient = jax.value_and_grad(self.compute_loss_and_updates, has_aux=True)
            (loss, aux), grads = gradient(
                trained, others, metrics, inputs, targets, None, training=True,
                optimizer_variables=optimizer,
            )  # fmt: skip
            last, optimizer = self.optimizer.stateless_apply(optimizer, grads[-2:], trained[-2:])
            metrics = self._loss_tracker.stateless_update_state(aux[3], loss)
            logs = {"loss": self._loss_tracker.stateless_result(metrics)}
            return logs, ([*trained[:-2], *last], aux[2], optimizer, metrics)

    return OnJax
