"""Watch a Keras `fit`: `KERAS_BACKEND=torch python examples/training/watch_keras.py RUN`."""

import sys

import keras
import numpy as np

import difflens

keras.utils.set_random_seed(0)
inputs = np.random.default_rng(0).normal(size=(512, 16)).astype("float32")
targets = (inputs.sum(axis=1) > 0).astype("int32")
model = keras.Sequential(
    [keras.Input((16,)), keras.layers.Dense(32, "tanh"), keras.layers.Dense(2)]
)
model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
model.fit(
    inputs, targets, batch_size=64, epochs=5, verbose=0,
    callbacks=[difflens.keras_callback(sys.argv[1])],
)  # fmt: skip
