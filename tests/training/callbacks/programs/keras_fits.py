"""Fits of small Keras models, recorded: run as a program, since Keras fixes its backend at import.

KERAS_BACKEND=jax python keras_fits.py FOLDER
"""

import json
import sys
import warnings
from pathlib import Path

warnings.simplefilter("ignore")

import keras  # noqa: E402
import numpy as np  # noqa: E402
from keras import layers, ops  # noqa: E402

from difflens.training.callbacks.keras import keras_callback  # noqa: E402
from difflens.training.hooks.keras import variables as keras_apply  # noqa: E402

FOLDER = Path(sys.argv[1])
BACKEND = keras.backend.backend()
INPUTS = np.random.default_rng(0).normal(3.0, 2.0, size=(40, 6)).astype("float32")
LABELS = np.random.default_rng(1).integers(0, 3, 40)
PAIRING = keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def classifier():
    """Return a network with dead units, a norm, a non-linearity of its own and a softmax."""
    keras.utils.set_random_seed(0)
    model = keras.Sequential(
        [
            keras.Input((6,)),
            layers.Dense(8, "relu", name="dead", bias_initializer=keras.initializers.Constant(-99)),
            layers.Dense(8, name="plain"),
            layers.LayerNormalization(name="norm"),
            layers.Activation("tanh"),
            layers.Dense(3, "softmax", name="out"),
        ]
    )
    rate = keras.optimizers.schedules.ExponentialDecay(0.1, 1, 0.5)
    model.compile(keras.optimizers.SGD(rate), PAIRING)
    return model


def fit(model, run, **how):
    """Record a fit of batches of 16, the last of which has 8 rows."""
    callbacks = [keras_callback(FOLDER / run, diagnose_every=None, **how)] if run else []
    held_back = (INPUTS[:8], LABELS[:8])
    model.fit(
        INPUTS, LABELS, batch_size=16, epochs=2, shuffle=False, verbose=0,
        validation_data=held_back, callbacks=callbacks,
    )  # fmt: skip
    return model


class LastOnly(keras.Sequential):
    """Hands the last layer to the optimizer and no other."""

    def train_step(self, *given):
        """Take a step of two variables."""
        if BACKEND == "torch":
            import torch

            data = given[0]
            loss = self.compute_loss(y=data[1], y_pred=self(data[0], training=True))
            self.zero_grad()
            loss.backward()
            chosen = self.trainable_weights[-2:]
            with torch.no_grad():
                self.optimizer.apply([each.value.grad for each in chosen], chosen)
            return {"loss": loss}
        import jax

        (trained, others, state, metrics), (inputs, labels) = given[0], given[1][:2]
        gradient = jax.value_and_grad(self.compute_loss_and_updates, has_aux=True)
        (loss, _), grads = gradient(
            trained, others, metrics, inputs, labels, None, training=True,
            optimizer_variables=state,
        )  # fmt: skip
        last, state = self.optimizer.stateless_apply(state, grads[-2:], trained[-2:])
        return {"loss": loss}, ([*trained[:-2], *last], others, state, metrics)


class Never(keras.Sequential):
    """Never steps."""

    def train_step(self, *given):
        """Measure the loss and change nothing."""
        if BACKEND == "torch":
            return {"loss": self.compute_loss(y=given[0][1], y_pred=self(given[0][0]))}
        return {"loss": ops.convert_to_tensor(1.0)}, given[0]


def own(kind):
    """Return a plain network with a step of its own."""
    keras.utils.set_random_seed(0)
    parts = layers.Dense(4, "tanh"), layers.Dropout(0.3), layers.Dense(3)
    model = kind([keras.Input((6,)), *parts])
    model.compile(keras.optimizers.SGD(0.1), PAIRING)
    if kind is LastOnly:
        model.optimizer.build(model.trainable_variables[-2:])
    return model


def own_losses():
    """Return the losses of the first epoch, each on the weights of its time."""
    model, told = classifier(), []
    for start in (0, 16, 32):
        part = slice(start, start + 16)
        told.append(float(model.train_on_batch(INPUTS[part], LABELS[part])))
        model.reset_metrics()
    return told


if __name__ == "__main__":
    told = {"losses": own_losses()}
    model = fit(classifier(), "first", activations=1)
    fit(model, "again", activations=2)
    wrapped = {"call", "apply", "compute_loss"}
    told["left"] = [name for each in (model, *model.layers, model.optimizer)
                    for name in wrapped & each.__dict__.keys()]  # fmt: skip
    fit(model, "")
    late = fit(classifier(), "")
    fit(late, "late")
    fit(own(LastOnly), "last")
    fit(own(Never), "never")
    vars(keras_apply)["_places"] = lambda *_: 1 / 0
    fit(classifier(), "broken")
    sys.stdout.write(json.dumps(told) + "\n")
