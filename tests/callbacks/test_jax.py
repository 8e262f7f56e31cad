"""A JAX/Optax loop that is recorded, and what is in the run."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from difflens.callbacks.jax import jax_monitor, jax_statistics
from difflens.history import read_history


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
    from difflens.errors import RunError

    jax_monitor(params, tmp_path / "run").close()

    with pytest.raises(RunError, match="a run already"):
        jax_monitor(params, tmp_path / "run")
