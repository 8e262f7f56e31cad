"""A real Keras `fit`, watched, on each backend that is here, in its own process."""

import json
import os
import subprocess
import sys

import pytest

from difflens.history import read_history

SCRIPT = """
import json, sys
import keras, numpy as np
from difflens.callbacks.keras import keras_callback

keras.utils.set_random_seed(0)
x = np.random.default_rng(0).normal(size=(64, 6)).astype("float32")
y = x.sum(axis=1, keepdims=True)
model = keras.Sequential([keras.Input((6,)), keras.layers.Dense(8, "tanh"), keras.layers.Dense(1)])
rate = float(sys.argv[2])
model.compile(keras.optimizers.SGD(rate), "mse")
before = [np.array(each) for each in model.trainable_variables]
callback = keras_callback(sys.argv[1], stop_on="critical", diagnose_every=1)
fitted = model.fit(x, y, batch_size=16, epochs=int(sys.argv[3]), shuffle=False, verbose=0,
                   callbacks=[callback])
after = [np.array(each) for each in model.trainable_variables]
weights = [float(np.linalg.norm(each)) for each in after]
print(json.dumps({"weights": weights, "before": [float(np.linalg.norm(each)) for each in before],
                  "epochs": len(fitted.history["loss"]), "loss": fitted.history["loss"],
                  "wrapped": "apply" in model.optimizer.__dict__}))
"""


def fitted(run, backend, rate="0.05", epochs="3"):
    environment = os.environ | {"KERAS_BACKEND": backend, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", SCRIPT, str(run), rate, epochs],
        capture_output=True, text=True, env=environment, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("backend", ["torch", "jax"])
class TestOnEachBackend:
    def test_every_batch_is_a_frame_with_numbers_that_fit_the_model(self, tmp_path, backend):
        told = fitted(tmp_path / "run", backend)

        history = read_history(tmp_path / "run")
        course = history.course
        assert course.steps.tolist() == list(range(12))
        assert course.field("weight_l2")[0].tolist() == pytest.approx(told["before"], rel=1e-5)
        # Plain SGD: an update is the rate times the gradient.
        updates, gradients = course.field("update_l2"), course.field("grad_l2")
        assert updates == pytest.approx(0.05 * gradients, rel=2e-3, abs=1e-7)
        assert course.scalar("loss")[:4].mean() == pytest.approx(told["loss"][0], rel=1e-4)
        assert not told["wrapped"]

    def test_a_finding_as_grave_as_asked_for_ends_the_fit(self, tmp_path, backend):
        assert fitted(tmp_path / "run", backend, rate="1e15", epochs="400")["epochs"] < 400
