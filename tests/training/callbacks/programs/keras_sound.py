"""Sound fits of a Keras model, recorded: run as a program, for the backend is fixed at import.

KERAS_BACKEND=jax python keras_sound.py FOLDER
"""

import sys
import warnings
from pathlib import Path

warnings.simplefilter("ignore")

import keras  # noqa: E402
from keras import layers  # noqa: E402
from training.callbacks.healthy import BATCH, FEATURES, task  # noqa: E402

from difflens.training.callbacks.keras import keras_callback  # noqa: E402

FOLDER = Path(sys.argv[1])


def fit(name, *, accumulated=None, epochs=12, **how):
    """Record a fit with a validation at the end of epochs."""
    keras.utils.set_random_seed(0)
    x, y, held_x, held_y = task()
    model = keras.Sequential([keras.Input((FEATURES,)), layers.Dense(16, "relu"),
                              layers.Dense(16, "relu"), layers.Dense(1)])  # fmt: skip
    optimizer = keras.optimizers.Adam(3e-3, gradient_accumulation_steps=accumulated)
    model.compile(optimizer, "mse", metrics=["mae"])
    model.fit(x, y, batch_size=BATCH, epochs=epochs, verbose=0, validation_data=(held_x, held_y),
              callbacks=[keras_callback(FOLDER / name)], **how)  # fmt: skip


fit("validated")
fit("seldom", validation_freq=3)
fit("accumulated", accumulated=4, epochs=24)
