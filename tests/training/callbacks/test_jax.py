"""A JAX/Optax loop that is recorded, and what is in the run."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from training.callbacks.healthy import BATCH, EXAMPLES, FEATURES, assert_sound, task

from difflens.training.callbacks.jax import jax_monitor, jax_statistics
from difflens.training.history import read_history


def loss_of(params, batch):
    hidden = jax.nn.relu(batch @ params["first"]["kernel"] + params["first"]["bias"])
    return jnp.mean((hidden @ params["second"]["kernel"]) ** 2)


@pytest.fixture
def params():
    rng = np.random.default_rng(0)
    return {
        "first": {"kernel": jnp.asarray(rng.normal(size=(4, 8))), "bias": jnp.zeros(8)},
        "second": {"kernel": jnp.asarray(rng.normal(size=(8, 1)))},
    }


def test_the_run_holds_what_a_plain_loop_would_compute(tmp_path, params):
    optimizer = optax.adam(1e-2)
    state = optimizer.init(params)
    batch = jnp.asarray(np.random.default_rng(1).normal(size=(16, 4)))

    @jax.jit
    def train_step(params, state):
        loss, grads = jax.value_and_grad(loss_of)(params, batch)
        updates, state = optimizer.update(grads, state, params)
        told = jax_statistics(grads, params, updates)
        return optax.apply_updates(params, updates), state, loss, told

    expected = []
    with jax_monitor(params, tmp_path / "run") as watch:
        for _ in range(5):
            grads = jax.grad(loss_of)(params, batch)
            before = params
            params, state, loss, told = train_step(params, state)
            moved = np.linalg.norm(params["first"]["kernel"] - before["first"]["kernel"])
            expected.append((float(loss), np.linalg.norm(grads["first"]["kernel"]), moved))
            assert watch.step(told, loss=loss) is False

    history = read_history(tmp_path / "run")
    place = [layer.name for layer in history.info.layers].index("first.kernel")
    course = history.course
    assert course.steps.tolist() == [0, 1, 2, 3, 4]
    found = zip(
        course.scalar("loss"), course.field("grad_l2")[:, place],
        course.field("update_l2")[:, place], strict=True,
    )  # fmt: skip
    for one, other in zip(found, expected, strict=True):
        assert one == pytest.approx(other, rel=1e-5)


def test_a_run_that_is_there_is_not_written_over(tmp_path, params):
    from difflens.core.errors import RunError

    jax_monitor(params, tmp_path / "run").close()

    with pytest.raises(RunError, match="a run already"):
        jax_monitor(params, tmp_path / "run")


def output_of(params, batch):
    hidden = jax.nn.relu(batch @ params["first"]["kernel"] + params["first"]["bias"])
    return jax.nn.softmax(hidden @ params["second"]["kernel"].repeat(2, axis=1))


def test_a_forward_pass_tells_what_the_layers_are_and_is_never_run(tmp_path, params):
    calls = []

    def forward(params, batch):
        jax.debug.callback(calls.append, 1)
        return output_of(params, batch)

    batch = jnp.asarray(np.random.default_rng(1).normal(5, 2, size=(16, 4)))
    jax_monitor(params, tmp_path / "run", forward=forward, inputs=batch).close()
    history = read_history(tmp_path / "run")

    assert {each.name: each.activation for each in history.info.layers} == {
        "first.bias": "ReLU", "first.kernel": "ReLU", "second.kernel": "",
    }  # fmt: skip
    assert history.fact("output") == {"shape": [16, 2], "rows_sum_to_one": True}
    assert history.fact("input")["mean"] == pytest.approx(5, abs=0.5)
    jax.effects_barrier()
    assert not calls


def test_a_forward_pass_that_cannot_be_traced_is_a_warning_and_no_more(tmp_path, params, capfd):
    def broken(*_given):
        raise ValueError("of a shape of its own")

    jax_monitor(params, tmp_path / "run", forward=broken, inputs=jnp.ones((2, 4))).close()

    assert "of a shape of its own" in capfd.readouterr().err
    assert read_history(tmp_path / "run").fact("output") is None


def forward(params, x):
    hidden = jax.nn.relu(x @ params["first"]["kernel"] + params["first"]["bias"])
    hidden = jax.nn.relu(hidden @ params["second"]["kernel"] + params["second"]["bias"])
    return hidden @ params["third"]["kernel"] + params["third"]["bias"]


@pytest.mark.parametrize("accumulated", [1, 4])
@pytest.mark.parametrize("every", [1, 10], ids=["every step recorded", "every tenth recorded"])
def test_a_healthy_run_with_validation_stays_silent(tmp_path, accumulated, every):
    random, data = np.random.default_rng(2), task()
    sizes = (("first", FEATURES, 16), ("second", 16, 16), ("third", 16, 1))
    params = {
        name: {
            "kernel": jnp.asarray(random.normal(size=(before, after)) * (2 / before) ** 0.5),
            "bias": jnp.zeros(after),
        }
        for name, before, after in sizes
    }
    optimizer = optax.MultiSteps(optax.adam(3e-3), accumulated)
    state = optimizer.init(params)

    def mse(params, x, y):
        return jnp.mean((forward(params, x) - y) ** 2)

    @jax.jit
    def train_step(params, state, x, y):
        loss, grads = jax.value_and_grad(mse)(params, x, y)
        updates, state = optimizer.update(grads, state, params)
        told = jax_statistics(grads, params, updates)
        return optax.apply_updates(params, updates), state, loss, told

    steps, validated = 200 * max(accumulated, every // 2), []
    with jax_monitor(params, tmp_path / "run", forward=forward, inputs=data[0][:BATCH]) as watch:
        for step in range(steps):
            rows = random.choice(EXAMPLES, BATCH, replace=False)
            params, state, loss, told = train_step(params, state, data[0][rows], data[1][rows])
            if step % every == 0:
                held_back = {}
                if step % (20 * every) == 0:
                    held_back["val_loss"] = mse(params, data[2], data[3])
                    validated.append(step)
                watch.step(told, loss=loss, step=step, **held_back)

    assert_sound(tmp_path / "run", validated)
