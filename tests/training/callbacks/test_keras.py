"""A real Keras `fit`, watched, on each backend that is here, in its own process."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from training.callbacks.healthy import assert_sound

from difflens.training.history import read_history

SCRIPT = """
import json, sys
import keras, numpy as np
from difflens.training.callbacks.keras import keras_callback

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


FITS = Path(__file__).parent / "programs" / "keras_fits.py"


@pytest.fixture(scope="module", params=["torch", "jax"])
def fits(request, tmp_path_factory):
    """Return the folder of the runs of `keras_fits.py`, and what it said."""
    folder = tmp_path_factory.mktemp(request.param)
    environment = os.environ | {"KERAS_BACKEND": request.param, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, FITS, folder],
        capture_output=True, text=True, env=environment, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return folder, json.loads(done.stdout.splitlines()[-1])


class TestWhatTheDiagnosesReadOfAFit:
    def test_layers_are_told_with_what_they_are_and_what_is_behind_them(self, fits):
        layers = {each.name.split("/", 1)[1]: each for each in history(fits, "first").info.layers}

        assert {name: (each.kind, each.activation) for name, each in layers.items()} == {
            "dead/kernel": ("Dense", "ReLU"), "dead/bias": ("Dense", "ReLU"),
            "plain/kernel": ("Dense", "Tanh"), "plain/bias": ("Dense", "Tanh"),
            "norm/gamma": ("LayerNormalization", "Tanh"),
            "norm/beta": ("LayerNormalization", "Tanh"),
            "out/kernel": ("Dense", "Softmax"), "out/bias": ("Dense", "Softmax"),
        }  # fmt: skip
        depths = [each.depth for each in layers.values()]
        assert depths == sorted(depths)
        assert all(each.optimised and each.dtype == "F32" for each in layers.values())

    def test_input_and_output_are_described(self, fits):
        told = history(fits, "first")

        assert told.fact("final_module") == "Softmax"
        assert told.fact("output")["shape"] == [16, 3]
        assert told.fact("output")["rows_sum_to_one"] is True
        assert told.fact("input")["mean"] == pytest.approx(3.0, abs=0.5)
        assert told.fact("input")["features_std_max"] == pytest.approx(2.0, abs=0.8)

    def test_each_batch_has_its_own_loss_also_the_short_one(self, fits):
        course = history(fits, "first").course

        assert course.scalar("loss")[:3].tolist() == pytest.approx(fits[1]["losses"], rel=1e-4)

    def test_each_batch_has_the_rate_with_which_it_was_taken(self, fits):
        rates = history(fits, "first").course.scalar("lr")

        assert rates.tolist() == pytest.approx([0.1 * 0.5**step for step in range(6)], rel=1e-5)

    def test_what_was_measured_on_held_back_data_stands_at_the_end_of_each_epoch(self, fits):
        values = history(fits, "first").course.scalar("val_loss")

        assert [bool(each > 0) for each in values] == [False, False, True, False, False, True]

    def test_dead_units_are_counted_where_units_are_looked_at(self, fits):
        told = history(fits, "first")
        place = [each.name.split("/", 1)[1] for each in told.info.layers].index("dead/kernel")

        assert told.course.field("act_dead")[:, place].tolist() == [1.0] * 6
        sampled = history(fits, "again").course.field("act_mean")[:, place]
        assert [bool(each == 0) for each in sampled] == [True, False] * 3

    def test_a_second_fit_is_recorded_as_the_first(self, fits):
        """What an earlier fit compiled must not stand in the way, and nothing may stay behind."""
        for run in ("again", "late"):
            course = history(fits, run).course
            assert course.steps.tolist() == list(range(6))
            assert (course.field("update_l2")[:, -1] > 0).all()
        assert history(fits, "first").frames == 6
        assert fits[1]["left"] == []

    def test_the_largest_share_that_is_dropped_is_a_fact(self, fits):
        assert history(fits, "last").fact("dropout") == pytest.approx(0.3)
        assert history(fits, "first").fact("dropout") == 0

    def test_variables_that_the_optimizer_was_not_given_are_told(self, fits):
        told = history(fits, "last")

        assert [each.optimised for each in told.info.layers] == [False, False, True, True]
        moved = told.course.field("update_l2")
        assert (moved[:, 2:] > 0).all()
        assert told.course.missing("update_l2")[:, :2].all()

    def test_a_step_that_is_never_taken_shows(self, fits):
        course = history(fits, "never").course

        assert course.scalar("optimizer_steps").tolist() == [0] * 6
        assert course.missing("update_l2").all()

    def test_an_error_of_ours_does_not_reach_the_fit(self, fits):
        told = history(fits, "broken")

        assert told.frames == 6
        assert told.course.missing("grad_l2").all()
        assert told.course.scalar("optimizer_steps") is None
        assert any("ZeroDivisionError" in note.text for note in told.notes)


def history(fits, run):
    return read_history(fits[0] / run)


@pytest.mark.parametrize("backend", ["torch", "jax"])
def test_healthy_runs_with_validation_stay_silent(tmp_path, backend):
    tests = Path(__file__).parents[2]
    paths = os.pathsep.join([str(tests), os.environ.get("PYTHONPATH", "")])
    environment = os.environ | {
        "KERAS_BACKEND": backend, "OMP_NUM_THREADS": "1", "PYTHONPATH": paths,
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, str(Path(__file__).parent / "programs" / "keras_sound.py"), str(tmp_path)],
        capture_output=True, text=True, env=environment, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr

    batches = 16  # an epoch
    assert_sound(tmp_path / "validated", [batches * each - 1 for each in range(1, 13)])
    assert_sound(tmp_path / "seldom", [batches * each - 1 for each in range(3, 13, 3)])
    assert_sound(tmp_path / "accumulated", [batches * each - 1 for each in range(1, 25)])
